"""Cluster whose nodes have several addresses, seen from inside and outside its network."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.pair import OPTIONS
from tests.trio_client.test_end_to_end_cluster import people_of, read_all, write_all
from triclinium import Cluster, Service, TimeoutOptions, errors, fail_after, open_cluster
from triclinium.health import ClusterState, PingState
from triclinium.testing import open_fake_cluster

FORWARDED = replace(OPTIONS, alternate_addresses={"external": ("ext.example", 31210)})
OUTSIDE = "couchbase://ext.example:31210"


@pytest.mark.parametrize("network", ["auto", "external"])
async def test_the_external_network_is_used(autojump_clock: MockClock, network: str) -> None:
    """A client in another network uses the external addresses of all nodes."""
    async with (
        open_fake_cluster(options=FORWARDED, nodes=3) as fake,
        open_cluster(OUTSIDE, fake.authenticator, connector=fake.connector, network=network) as cluster,
    ):
        people = people_of(cluster)
        await write_all(people, 1)

        assert {1} == await read_all(people)
        assert {f"ext.example:{port}" for port in (31210, 31212, 31214)} == {
            each.node for each in cluster.statistics().connections if each.bucket == "travel"
        }


NOWHERE = (
    r"no node of the cluster is in network 'external'; the networks of its config are default: open the cluster with "
)


async def query(cluster: Cluster) -> None:
    """Send a query."""
    async with cluster.query("SELECT 1") as result:
        await result.rows()


@rows(
    ("call", "reported"),
    [
        (query, r"the query service is on 127\.0\.0\.1:8093, 127\.0\.0\.1:8\d+, and " + NOWHERE),
        (lambda cluster: cluster.buckets().get_all_buckets(), r"the management service is on .*, and " + NOWHERE),
        (lambda cluster: people_of(cluster).upsert("a", 1), NOWHERE),
    ],
)
async def test_no_node_is_in_the_network(
    autojump_clock: MockClock, call: Callable[[Cluster], Awaitable[object]], reported: str
) -> None:
    """If no node is in the network, errors name it, the available ones and the next step; services receive nothing."""
    timeouts = TimeoutOptions(query=3.0, management=3.0)
    async with (
        open_fake_cluster(options=OPTIONS, nodes=2) as fake,
        fake.open_client(network="external", timeouts=timeouts) as cluster,
    ):
        with pytest.raises(errors.UnambiguousTimeoutException, match=reported) as caught:
            await call(cluster)

        assert {"NODE_NOT_AVAILABLE"} == caught.value.context.retry_reasons
        assert [] == [each for node in fake.nodes for each in node.request_log]


async def test_a_ping_of_nodes_outside_the_network(autojump_clock: MockClock) -> None:
    """A ping reports the services of a node without an address in the network as unreachable."""
    async with open_fake_cluster(options=FORWARDED, nodes=2) as fake:
        fake.nodes.set_alternate_addresses(1, {})
        async with open_cluster(OUTSIDE, fake.authenticator, connector=fake.connector) as cluster:
            await cluster.wait_until_ready()
            endpoints = (await cluster.ping()).endpoints
        asked = list(fake.nodes[1].request_log)

    for service in (Service.QUERY, Service.SEARCH, Service.ANALYTICS, Service.MANAGEMENT):
        reached, outside = endpoints[service]
        assert (PingState.OK, PingState.ERROR) == (reached.state, outside.state)
        assert f"{outside.remote}: the node has no address in network 'external'" == outside.error
    assert [] == asked


async def test_a_cluster_without_reachable_nodes(autojump_clock: MockClock) -> None:
    """If no node has an address in the network, waiting times out although the first connection is open."""
    async with (
        open_fake_cluster(options=OPTIONS, nodes=2) as fake,
        fake.open_client(network="external") as cluster,
    ):
        for waits in (cluster.wait_until_ready, cluster.bucket("travel").wait_until_ready):
            for state in (ClusterState.ONLINE, ClusterState.DEGRADED):
                with pytest.raises(errors.UnambiguousTimeoutException, match=NOWHERE), fail_after(5.0):
                    await waits(desired_state=state)
