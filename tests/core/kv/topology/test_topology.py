"""Topology of a cluster, and its changes."""

from __future__ import annotations

import pytest

from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.cluster_config import AlternateAddress, ClusterConfig, NodeEntry, VBucketServerMap
from triclinium_core.kv.topology.topology import Topology, TopologyChange, TopologyNode, topology_of

SOURCE = Address("seed", 11210)


def node(port: int, **others: int) -> TopologyNode:
    """Return a node of one host."""
    return TopologyNode("host", {"kv": port, **others})


def version(revision: int, *nodes: TopologyNode) -> Topology:
    """Return one version."""
    return Topology(None, (1, revision), nodes)


@pytest.mark.parametrize(
    ("expected", "ports"),
    [
        ("host:11210", {"mgmt": 8091, "kvSSL": 11207, "kv": 11210}),
        ("host:11207", {"mgmt": 8091, "kvSSL": 11207}),
        ("host:8091", {"n1ql": 8093, "mgmt": 8091, "mgmtSSL": 18091}),
        ("host:18091", {"mgmtSSL": 18091}),
        ("host", {"n1ql": 8093}),
    ],
)
def test_the_name_of_a_node(expected: str, ports: dict[str, int]) -> None:
    """Nodes of one host are named by the port of a common service."""
    assert expected == TopologyNode("host", ports).name


def test_nodes_may_be_kept_in_sets() -> None:
    """Equal nodes and equal topologies are one element of a set."""
    assert {node(1), node(2)} == {node(2), node(1), node(1)}
    assert 1 == len({version(1, node(1)), version(1, node(1))})


def test_the_next_version() -> None:
    """Added and removed nodes have the order of their topology; a node with more services is the same node."""
    change = TopologyChange(version(1, node(1), node(2)), version(2, node(4), node(2, n1ql=8093), node(3)))

    assert ((node(4), node(3)), (node(1),)) == (change.added, change.removed)


def test_two_changes_are_one() -> None:
    """Two consecutive changes combine into one, without the topology in between."""
    first, second, third = version(1, node(1)), version(2, node(2)), version(3, node(1), node(3))
    change = TopologyChange(first, second).followed_by(TopologyChange(second, third))

    assert TopologyChange(first, third) == change
    assert ((node(3),), ()) == (change.added, change.removed)


def test_the_nodes_of_a_global_config() -> None:
    """A node without a host has that of the source, and brackets are not part of an address."""
    entries = [NodeEntry({"kv": 1}), NodeEntry({"mgmt": 2}, "[::1]"), NodeEntry({}, "other")]
    topology = topology_of(ClusterConfig(7, 3, nodes_ext=entries), bucket=None, source=SOURCE)

    assert (None, (3, 7)) == (topology.bucket, topology.revision)
    assert ["seed:1", "[::1]:2", "other"] == [each.name for each in topology.nodes]
    assert topology.source is None


def test_the_source_of_a_config() -> None:
    """The source of a config is the node with ``thisNode``, if one has it."""
    entries = [NodeEntry({"kv": 1}, "a"), NodeEntry({"kv": 1}, "b", this_node=True)]
    topology = topology_of(ClusterConfig(7, 3, nodes_ext=entries), bucket=None, source=SOURCE)

    assert TopologyNode("b", {"kv": 1}) == topology.source


def test_the_network_of_the_client() -> None:
    """A node has its address in the client's network, or its own if it has none there."""
    external = {"external": AlternateAddress("public", {"kv": 31210}), "bare": AlternateAddress("nat")}
    entries = [NodeEntry({"kv": 1}, "private", alternate_addresses=external), NodeEntry({"kv": 2}, "other")]

    def names(network: str) -> list[str]:
        config = ClusterConfig(1, nodes_ext=entries)
        return [each.name for each in topology_of(config, bucket=None, source=SOURCE, network=network).nodes]

    assert ["public:31210", "other:2"] == names("external")
    assert ["nat:1", "other:2"] == names("bare")
    assert ["private:1", "other:2"] == names("default")


def test_nodes_that_the_client_does_not_reach() -> None:
    """Nodes and servers without an address in the client's network are not reached and have their own address."""
    entries = [
        NodeEntry({"kv": 1}, "a", alternate_addresses={"external": AlternateAddress("public")}),
        NodeEntry({"kv": 1}, "b", alternate_addresses={"default": AlternateAddress("misnamed")}),
    ]
    servers = VBucketServerMap(["a:1", "b:1", "c:1"], [[0]])
    config = ClusterConfig(1, name="travel", nodes_ext=entries, v_bucket_server_map=servers)

    def reached(network: str) -> list[tuple[str, bool]]:
        topology = topology_of(config, bucket="travel", source=SOURCE, network=network)
        return [(each.host, each.is_reached) for each in topology.nodes]

    assert [("public", True), ("b", False), ("c", False)] == reached("external")
    assert [("a", True), ("b", True), ("c", True)] == reached("default")


def test_the_nodes_of_an_old_config() -> None:
    """Servers without an entry have their listed address, and invalid ones are omitted."""
    servers = VBucketServerMap(["a:1", "b:2", "nonsense"], [[0]])
    config = ClusterConfig(1, name="travel", nodes_ext=[NodeEntry({"kv": 9})], v_bucket_server_map=servers)
    topology = topology_of(config, bucket="travel", source=SOURCE)

    assert "travel" == TopologyChange(None, topology).bucket
    assert ["seed:9", "b:2"] == [each.name for each in topology.nodes]
