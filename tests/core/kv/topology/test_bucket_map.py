"""Map of a bucket, which has the address of each node and the nodes of each vbucket."""

from __future__ import annotations

import json
from typing import Any

from tests.rows import rows
from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.bucket_map import BucketMap, map_of
from triclinium_core.kv.topology.cluster_config import parse_cluster_config

SOURCE = Address("seed.example", 11210)
TWO_NODES: list[dict[str, Any]] = [
    {"services": {"kv": 11210, "kvSSL": 11207}, "hostname": "a.example", "thisNode": True},
    {"services": {"kv": 11212}, "hostname": "b.example"},
]


def parsed(
    nodes: list[dict[str, Any]],
    servers: list[str],
    *,
    tls: bool = False,
    network: str = "default",
    vbuckets: list[list[int]] | None = None,
    forward: list[list[int]] | None = None,
) -> BucketMap:
    """Parse a config with these nodes and servers, and return its map."""
    document = {
        "rev": 1,
        "name": "travel",
        "nodesExt": nodes,
        "vBucketServerMap": {
            "serverList": servers,
            "vBucketMap": vbuckets or [[0]],
            "vBucketMapForward": forward or [],
        },
    }
    config = parse_cluster_config(json.dumps(document).encode(), host=SOURCE.host)
    return map_of(config, source=SOURCE, tls=tls, network=network)


def test_nodes_in_the_order_of_the_servers() -> None:
    """The nodes of a map have the order of the server list, and the ports of the protocol in use."""
    found = parsed(TWO_NODES, ["a.example:11210", "b.example:11212"], vbuckets=[[1, 0], [0, 1], [-1, 1]])

    assert (Address("a.example", 11210), Address("b.example", 11212)) == found.nodes == found.addresses
    assert [Address("b.example", 11212), Address("a.example", 11210), None] == [
        found.holder(each, 0) for each in range(3)
    ]
    assert Address("a.example", 11210) == found.here


def test_copies_of_a_vbucket() -> None:
    """The first copy of a vbucket is the active one; a copy that is missing or -1 has no node."""
    found = parsed(TWO_NODES, ["a.example:11210", "b.example:11212"], vbuckets=[[1, 0, -1], [-1, 1]])
    first, second = Address("a.example", 11210), Address("b.example", 11212)

    assert [second, first, None, None] == [found.holder(0, copy) for copy in range(4)]
    assert [None, second, None] == [found.holder(1, copy) for copy in range(3)]


def test_ports_for_tls() -> None:
    """With TLS, a node without a TLS port has no address."""
    found = parsed(TWO_NODES, ["a.example:11210", "b.example:11212"], tls=True, vbuckets=[[0], [1]])

    assert (Address("a.example", 11207), None) == found.nodes
    assert (Address("a.example", 11207),) == found.addresses
    assert found.holder(1, 0) is None


def test_nodes_that_do_not_name_themselves() -> None:
    """A node without a host name gets the host of the node that sent the map."""
    found = parsed([{"services": {"kv": 12000}, "thisNode": True}], ["$HOST:12000"])

    assert (Address("seed.example", 12000),) == found.nodes


def test_the_source_node_without_a_port() -> None:
    """The node that sent the map keeps the address at which the client reached it, even if the map lacks its port."""
    found = parsed([{"services": {"mgmt": 8091}, "thisNode": True}], ["a.example:11210"])

    assert (SOURCE,) == found.nodes
    assert SOURCE == found.here


INVALID_PORTS = (
    *("", "0", "00080", "-1", "+1", " 1", "1_1", "1.0", "\u0661", "1\u0661", "65536", "99999"),
    *("0" * 5000, "9" * 5000),
)


@rows(
    ("server", "address"),
    [
        ("c.example:11210", Address("c.example", 11210)),
        ("c.example:65535", Address("c.example", 65535)),
        ("[::1]:11210", Address("::1", 11210)),
        ("$HOST:11210", Address("seed.example", 11210)),
        ("c.example", None),
        (":11210", None),
        *((f"c.example:{port}", None) for port in INVALID_PORTS),
    ],
)
def test_servers_without_an_entry(server: str, address: Address | None) -> None:
    """A server without a node entry has the address in the server list, or none if that address is invalid; the other
    servers keep theirs.
    """
    assert (address, Address("b.example", 1)) == parsed([], [server, "b.example:1"], vbuckets=[[0], [1]]).nodes


def test_servers_without_an_entry_over_tls() -> None:
    """With TLS, a server without a node entry has no address."""
    assert (None,) == parsed([], ["c.example:11210"], tls=True).nodes


def test_an_unmarked_source_node() -> None:
    """If no entry has ``thisNode``, the source is the listed node with the address that the client reached."""
    assert SOURCE == parsed([], ["a.example:11210", "seed.example:11210"]).here
    assert parsed([], ["a.example:11210"]).here is None


def test_another_network() -> None:
    """A node without an address in the client's network is unreachable; the reason names the network."""
    nodes = [{**TWO_NODES[0], "alternateAddresses": {"external": {"hostname": "x.example"}}}, TWO_NODES[1]]
    servers = ["a.example:11210", "b.example:11212", "c.example:11214"]
    found = parsed(nodes, servers, network="external", vbuckets=[[0], [1], [2], [-1]])

    assert (Address("x.example", 11210), None, None) == found.nodes
    assert Address("x.example", 11210) == found.here
    assert "vbucket 1 is on node 1 of the map, which has no address in network 'external'" == found.obstacle(1)
    assert "vbucket 3 has no active node now" == found.obstacle(3)
    assert not any(found.lacks_service(vbucket) for vbucket in range(5))


def test_an_unknown_network() -> None:
    """If no node is in the client's network, the reason lists the networks in the config."""
    nodes = [{**TWO_NODES[0], "alternateAddresses": {"external": {"hostname": "x.example"}}}]
    found = parsed(nodes, ["a.example:11210"], network="extern")

    assert () == found.addresses
    assert (
        "no node of the cluster is in network 'extern'; the networks of its config are default, external: "
        "open the cluster with network='auto', or with the name of one of them" == found.obstacle(0)
    )


def test_no_port_for_tls_is_a_reason() -> None:
    """If a node has no TLS port, the reason names the missing port and not the network."""
    found = parsed(TWO_NODES, ["a.example:11210", "b.example:11212"], tls=True, vbuckets=[[1]])

    assert "vbucket 0 is on node 1 of the map, which has no port for this service" == found.obstacle(0)
    assert found.lacks_service(0)


def test_forward_map() -> None:
    """During a rebalance, the forward map has the next node of each vbucket that moves."""
    servers = ["a.example:11210", "b.example:11212"]
    found = parsed(TWO_NODES, servers, vbuckets=[[0], [0]], forward=[[1], [-1]])

    assert [Address("b.example", 11212), None] == [found.next_holder(0, 0), found.next_holder(1, 0)]
    assert parsed(TWO_NODES, servers, vbuckets=[[0], [0]]).next_holder(0, 0) is None
