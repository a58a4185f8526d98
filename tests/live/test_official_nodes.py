"""The official client with a fake cluster of three nodes whose map changes."""

from __future__ import annotations

import pytest

from tests.live.official import Official, official_client, placed, written
from tests.live.waiting import until
from triclinium.testing import open_tcp_cluster
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing import IMPLEMENTED_FEATURES, FakeNodeOptions, FakeNodes

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("couchbase_package")]

KEYS = [f"key-{number}" for number in range(300)]
PUSHED = IMPLEMENTED_FEATURES
FOUND_OUT = IMPLEMENTED_FEATURES - {
    HelloFeature.CLUSTERMAP_NOTIFICATION,
    HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF,
}
"""Features without pushed configs: the client gets a new config with NOT_MY_VBUCKET or by polling."""


async def store_and_read(official: Official, value: int) -> None:
    """Write and read all documents."""
    for key in KEYS:
        stored = await official.ask(do="upsert", key=key, value=value)
        found = await official.ask(do="get", key=key)
        assert {"result": {"content": value, "cas": stored.get("result", stored)}} == found


@pytest.mark.parametrize("features", [PUSHED, FOUND_OUT], ids=["pushed", "found out"])
async def test_the_client_follows_the_map(safety_net: None, features: frozenset[HelloFeature]) -> None:
    """Documents are written to and read from the nodes of their vbuckets, as these move and as nodes leave and join."""
    nodes = FakeNodes(FakeNodeOptions(features=features), nodes=3)
    async with open_tcp_cluster(nodes) as fake, official_client(fake) as official:
        await store_and_read(official, 1)
        assert all(any(nodes.owner_of(key) == index for key in KEYS) for index in range(3))
        assert placed(nodes, KEYS) == written(nodes)

        nodes.move(nodes.vbuckets_of(0)[::2], to=1)
        await store_and_read(official, 2)
        assert placed(nodes, KEYS) == written(nodes)

        connections = nodes[2].connections
        nodes.remove_node(2)
        if features is PUSHED:
            # The client treats writes to a node as lost if the node leaves the map before the client gets the new map.
            # After that, it closes the bucket's connection, but keeps the one through which it found the cluster.
            await until(lambda: nodes[2].connections < connections)
        await store_and_read(official, 3)
        assert placed(nodes, KEYS) == written(nodes)

        nodes.add_node(2)
        nodes.rebalance()
        await store_and_read(official, 4)
        assert placed(nodes, KEYS) == written(nodes)


async def test_a_moved_vbucket_is_refused_first(safety_net: None) -> None:
    """Without pushed configs, the client gets the new config from the previous node of the vbucket."""
    nodes = FakeNodes(FakeNodeOptions(features=FOUND_OUT), nodes=3)
    async with open_tcp_cluster(nodes) as fake, official_client(fake, poll_seconds=3600.0) as official:
        moved = next(key for key in KEYS if nodes.owner_of(key) == 0)
        await official.ask(do="upsert", key=moved, value=1)
        written(nodes)
        nodes.move(nodes.vbuckets_of(0), to=2)
        await official.ask(do="upsert", key=moved, value=2)

        refused = [each for each in nodes[0].command_log if each.opcode == Opcode.SET]
        assert [(moved, Status.NOT_MY_VBUCKET)] == [(each.key.decode(), each.status) for each in refused]
        assert [set(), set(), {(moved, 0)}] == written(nodes)


async def test_the_client_survives_a_dead_node(safety_net: None) -> None:
    """After a failover and a rebalance, every document can be written and read again."""
    nodes = FakeNodes(nodes=3)
    async with open_tcp_cluster(nodes) as fake, official_client(fake) as official:
        await store_and_read(official, 1)
        assert placed(nodes, KEYS) == written(nodes)
        nodes.kill(1)
        nodes.fail_over(1)
        nodes.rebalance()
        commands = (nodes[0].command_log, nodes[2].command_log)
        await until(lambda: any(each.opcode == Opcode.GET_CLUSTER_CONFIG for log in commands for each in log))
        await store_and_read(official, 2)
        assert placed(nodes, KEYS) == written(nodes)
        nodes.revive(1)
        nodes.add_node(1)
        nodes.rebalance()
        await store_and_read(official, 3)
        assert placed(nodes, KEYS) == written(nodes)
