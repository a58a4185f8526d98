"""Addresses of nodes in the default network, looked up by the addresses that the client uses."""

from __future__ import annotations

from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.cluster_config import ClusterConfig, parse_cluster_config
from triclinium_core.kv.topology.own_addresses import OwnAddresses

SOURCE = Address("ext.example", 31210)
DOCUMENT = b"""
{"rev": 1, "nodesExt": [{"hostname": "10.0.0.1", "services": {"kv": 11210, "n1ql": 8093},
 "alternateAddresses": {"external": {"hostname": "ext.example", "ports": {"kv": 31210, "n1ql": 38093}}}}]}
"""


def config() -> ClusterConfig:
    """Return a config of one node that has an address in another network."""
    return parse_cluster_config(DOCUMENT, host=SOURCE.host)


def test_a_node_that_is_reached_elsewhere() -> None:
    """The address of each service maps to its address in the default network; an unknown address is unchanged."""
    known = OwnAddresses()
    known.learn("travel", config(), network="external", source=SOURCE)

    assert Address("10.0.0.1", 11210) == known.of(Address("ext.example", 31210))
    assert Address("10.0.0.1", 8093) == known.of(Address("ext.example", 38093))
    assert Address("other", 1) == known.of(Address("other", 1))


def test_the_network_of_the_nodes() -> None:
    """In the default network no address is translated; a newer config replaces the addresses of an older one."""
    known = OwnAddresses()
    known.learn("travel", config(), network="external", source=SOURCE)
    known.learn("travel", config(), network="default", source=SOURCE)

    assert Address("ext.example", 31210) == known.of(Address("ext.example", 31210))
