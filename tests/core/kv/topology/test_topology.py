"""Topology of a cluster, and the changes from one version to the next."""

from __future__ import annotations

import pytest

from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.cluster_config import AlternateAddress, ClusterConfig, NodeEntry, VBucketServerMap
from triclinium_core.kv.topology.topology import Topology, TopologyChange, TopologyNode, topology_of

SOURCE = Address("seed", 11210)


def node(port: int, **others: int) -> TopologyNode:
    """Return a node on the host ``host``, with its ports by service."""
    return TopologyNode("host", {"kv": port, **others})


def version(revision: int, *nodes: TopologyNode) -> Topology:
    """Return a version of the topology with these nodes."""
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
    """The name of a node is its host, with the port of key-value or management if the node has one."""
    assert expected == TopologyNode("host", ports).name


def test_nodes_may_be_kept_in_sets() -> None:
    """A set keeps only one of two equal nodes, and one of two equal topologies."""
    assert {node(1), node(2)} == {node(2), node(1), node(1)}
    assert 1 == len({version(1, node(1)), version(1, node(1))})


def test_the_next_version() -> None:
    """``added`` and ``removed`` keep the order of their topology; a node that gets a service is the same node."""
    change = TopologyChange(version(1, node(1), node(2)), version(2, node(4), node(2, n1ql=8093), node(3)))

    assert ((node(4), node(3)), (node(1),)) == (change.added, change.removed)


def test_two_changes_are_one() -> None:
    """Two consecutive changes combine into one, which omits the topology between them."""
    first, second, third = version(1, node(1)), version(2, node(2)), version(3, node(1), node(3))
    change = TopologyChange(first, second).followed_by(TopologyChange(second, third))

    assert TopologyChange(first, third) == change
    assert ((node(3),), ()) == (change.added, change.removed)


def test_the_nodes_of_a_global_config() -> None:
    """A node without a host has the host of the source; the parser removes the brackets of an IPv6 host."""
    entries = [NodeEntry({"kv": 1}), NodeEntry({"mgmt": 2}, "[::1]"), NodeEntry({}, "other")]
    topology = topology_of(ClusterConfig(7, 3, nodes_ext=entries), bucket=None, source=SOURCE)

    assert (None, (3, 7)) == (topology.bucket, topology.revision)
    assert ["seed:1", "[::1]:2", "other"] == [each.name for each in topology.nodes]
    assert topology.source is None


def test_the_source_of_a_config() -> None:
    """The source of a config is the node that has ``thisNode``, if any."""
    entries = [NodeEntry({"kv": 1}, "a"), NodeEntry({"kv": 1}, "b", this_node=True)]
    topology = topology_of(ClusterConfig(7, 3, nodes_ext=entries), bucket=None, source=SOURCE)

    assert TopologyNode("b", {"kv": 1}) == topology.source


def test_the_network_of_the_client() -> None:
    """A node has its address in the client's network, or its default address if it is not in that network."""
    external = {"external": AlternateAddress("public", {"kv": 31210}), "bare": AlternateAddress("nat")}
    entries = [NodeEntry({"kv": 1}, "private", alternate_addresses=external), NodeEntry({"kv": 2}, "other")]

    def names(network: str) -> list[str]:
        config = ClusterConfig(1, nodes_ext=entries)
        return [each.name for each in topology_of(config, bucket=None, source=SOURCE, network=network).nodes]

    assert ["public:31210", "other:2"] == names("external")
    assert ["nat:1", "other:2"] == names("bare")
    assert ["private:1", "other:2"] == names("default")


def test_nodes_that_the_client_does_not_reach() -> None:
    """A node or server that is not in the client's network is marked as not reached and has its default address."""
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
    """A server without a node entry has the address in the server list; an invalid address is left out."""
    servers = VBucketServerMap(["a:1", "b:2", "nonsense"], [[0]])
    config = ClusterConfig(1, name="travel", nodes_ext=[NodeEntry({"kv": 9})], v_bucket_server_map=servers)
    topology = topology_of(config, bucket="travel", source=SOURCE)

    assert "travel" == TopologyChange(None, topology).bucket
    assert ["seed:9", "b:2"] == [each.name for each in topology.nodes]
