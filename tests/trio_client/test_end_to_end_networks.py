"""A cluster whose nodes have several addresses, seen from the inside and from the outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from trio.testing import MockClock

import triclinium
from tests.rows import rows
from tests.trio_client.pair import OPTIONS
from tests.trio_client.test_end_to_end_cluster import KEYS, people_of, read_all, write_all
from triclinium import errors
from triclinium.testing import open_fake_cluster

FORWARDED = replace(OPTIONS, alternate_addresses={"external": ("ext.example", 31210)})
OUTSIDE = "couchbase://ext.example:31210"


@pytest.mark.parametrize("network", ["auto", "external"])
async def test_from_the_outside(autojump_clock: MockClock, network: str) -> None:
    """All nodes are reached by the addresses that they have there, although their own would not lead anywhere."""
    async with (
        open_fake_cluster(options=FORWARDED, nodes=3) as fake,
        triclinium.open_cluster(OUTSIDE, fake.authenticator, connector=fake.connector, network=network) as cluster,
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


async def query(cluster: triclinium.Cluster) -> None:
    """Ask the query service."""
    async with cluster.query("SELECT 1") as result:
        await result.rows()


@rows(
    ("call", "told"),
    [
        (query, r"the query service is on 127\.0\.0\.1:8093, 127\.0\.0\.1:8\d+, and " + NOWHERE),
        (lambda cluster: cluster.buckets().get_all_buckets(), r"the management service is on .*, and " + NOWHERE),
        (lambda cluster: people_of(cluster).upsert("a", 1), NOWHERE),
    ],
)
async def test_no_node_is_in_the_network(
    autojump_clock: MockClock, call: Callable[[triclinium.Cluster], Awaitable[object]], told: str
) -> None:
    """Each error names the network, the nodes, the networks that there are, and what to do; nothing was sent to any of them."""
    timeouts = triclinium.TimeoutOptions(query=3.0, management=3.0)
    async with (
        open_fake_cluster(options=OPTIONS, nodes=2) as fake,
        fake.open_client(network="external", timeouts=timeouts) as cluster,
    ):
        with pytest.raises(errors.UnambiguousTimeoutException, match=told) as caught:
            await call(cluster)

        assert {"NODE_NOT_AVAILABLE"} == caught.value.context.retry_reasons
        assert [] == [each for node in fake.nodes for each in node.request_log]


async def test_a_ping_of_nodes_elsewhere(autojump_clock: MockClock) -> None:
    """A service of a node that has no address in the network stands in the report, as what cannot be reached does."""
    async with open_fake_cluster(options=FORWARDED, nodes=2) as fake:
        fake.nodes.set_alternate_addresses(1, {})
        async with triclinium.open_cluster(OUTSIDE, fake.authenticator, connector=fake.connector) as cluster:
            await cluster.wait_until_ready()
            endpoints = (await cluster.ping()).endpoints
        asked = list(fake.nodes[1].request_log)

    for service in (
        triclinium.Service.QUERY,
        triclinium.Service.SEARCH,
        triclinium.Service.ANALYTICS,
        triclinium.Service.MANAGEMENT,
    ):
        reached, outside = endpoints[service]
        assert (triclinium.PingState.OK, triclinium.PingState.ERROR) == (reached.state, outside.state)
        assert f"{outside.remote}: the node has no address in network 'external'" == outside.error
    assert [] == asked


async def test_a_cluster_of_which_nothing_is_reached_is_not_ready(autojump_clock: MockClock) -> None:
    """The connection that has told of the nodes is well, and no good for anything else."""
    async with (
        open_fake_cluster(options=OPTIONS, nodes=2) as fake,
        fake.open_client(network="external") as cluster,
    ):
        for waits in (cluster.wait_until_ready, cluster.bucket("travel").wait_until_ready):
            for state in (triclinium.ClusterState.ONLINE, triclinium.ClusterState.DEGRADED):
                with pytest.raises(errors.UnambiguousTimeoutException, match=NOWHERE), triclinium.fail_after(5.0):
                    await waits(desired_state=state)


async def test_a_node_that_the_outside_cannot_reach(autojump_clock: MockClock) -> None:
    """The error of its documents says what is missing."""
    async with open_fake_cluster(options=FORWARDED, nodes=2) as fake:
        fake.nodes.set_alternate_addresses(1, {})
        lost = next(key for key in KEYS if fake.nodes.owner_of(key) == 1)
        async with triclinium.open_cluster(OUTSIDE, fake.authenticator, connector=fake.connector) as cluster:
            with pytest.raises(errors.UnambiguousTimeoutException, match="no address in network 'external'"):
                await people_of(cluster).upsert(lost, 1)
