"""Networks: how the client chooses one, and which address a node has in it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.rows import rows
from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.cluster_config import AlternateAddress, NodeEntry
from triclinium_core.kv.topology.networks import AUTO, Network, address_in, choose_network

SEED = Address("seed.example", 11210)


def node(hostname: str | None = "10.0.0.1", port: int = 11210, **alternates: AlternateAddress) -> NodeEntry:
    """Return a node with key-value ports and alternate addresses."""
    return NodeEntry({"kv": port, "kvSSL": port - 3}, hostname, alternate_addresses=alternates)


EXTERNAL = AlternateAddress("ext.example", {"kv": 31210, "kvSSL": 31207})
NODES = [node("10.0.0.1", external=EXTERNAL), node("10.0.0.2", external=AlternateAddress("other.example"))]


@pytest.mark.parametrize(
    ("seed", "network"),
    [
        (Address("10.0.0.1", 11210), "default"),
        (Address("10.0.0.2", 11207), "default"),
        (Address("ext.example", 31210), "external"),
        (Address("ext.example", 31207), "external"),
        (Address("other.example", 11210), "external"),
        (Address("ext.example", 9), "external"),
        (Address("10.0.0.1", 9), "default"),
        (Address("balancer.example", 11210), "default"),
    ],
)
def test_choice(seed: Address, network: str) -> None:
    """The client uses the network that has the seed's host and port, else its host, else the default network."""
    assert network == choose_network(NODES, [seed], seed)


def test_the_source_node_without_a_tls_port() -> None:
    """If the source node has no TLS port, its own address does not select the default network."""
    nodes = [NodeEntry({"kv": 11210}, "10.0.0.1", this_node=True, alternate_addresses={"external": EXTERNAL})]
    source = Address("ext.example", 31210)

    assert "external" == choose_network(nodes, [source], source)


def test_ports_distinguish_networks_of_one_host() -> None:
    """If two networks have the same host, as with forwarded ports of containers, the port selects the network."""
    nodes = [node(None, external=AlternateAddress("localhost", {"kv": 31210}))]
    source = Address("localhost", 31210)

    assert "external" == choose_network(nodes, [source], source)
    assert "default" == choose_network(nodes, [], Address("localhost", 11210))


def test_any_seed_decides() -> None:
    """If a load balancer sent the config, the address of another seed selects the network."""
    balancer = Address("balancer.example", 11210)

    assert "external" == choose_network(NODES, [balancer, Address("ext.example", 31210)], balancer)


@pytest.mark.parametrize(
    ("network", "entry", "service", "address"),
    [
        ("default", node(), "kv", Address("10.0.0.1", 11210)),
        ("default", node(None), "kv", SEED),
        ("default", node("[::1]"), "kv", Address("::1", 11210)),
        ("default", NodeEntry({}, "10.0.0.1"), "kv", None),
        ("external", node(), "kv", None),
        ("external", node(external=EXTERNAL), "kvSSL", Address("ext.example", 31207)),
        ("external", node(external=AlternateAddress("[::2]")), "kv", Address("::2", 11210)),
        ("external", node(external=AlternateAddress("ext.example", {})), "kv", None),
        ("other", node(external=EXTERNAL), "kv", None),
    ],
)
def test_address(network: str, entry: NodeEntry, service: str, address: Address | None) -> None:
    """A node has an address only in its own networks; an alternate address without ports has the ports of the node."""
    assert address == address_in(network, entry, service, SEED)


LATER = [node("ext.example", 31210, external=AlternateAddress("elsewhere.example"))]
OTHER = [node("ext.example", 31210)]


@rows(
    ("asked_for", "configs", "names"),
    [
        (AUTO, [NODES, LATER], ["external", "external"]),
        ("default", [NODES, LATER], ["default", "default"]),
        (AUTO, [NODES, OTHER, NODES], ["external", "default", "external"]),
        ("external", [NODES, OTHER, NODES], ["external"] * 3),
        (AUTO, [[], NODES, NODES], ["default", "external", "external"]),
    ],
)
def test_the_chosen_network_is_kept(
    asked_for: str, configs: Sequence[Sequence[NodeEntry]], names: Sequence[str]
) -> None:
    """The network of the first config with nodes is kept, except for a config that lacks it; a configured network is
    always kept.
    """
    network = Network(asked_for, [Address("ext.example", 31210)])

    assert names == [network.name(nodes, SEED) for nodes in configs]


@pytest.mark.parametrize(("asked_for", "names"), [(AUTO, ["default", "external"]), ("default", ["default"] * 2)])
def test_choose_again(asked_for: str, names: Sequence[str]) -> None:
    """After the client has lost the cluster, the next config selects the network; a configured network is kept."""
    network = Network(asked_for, [Address("ext.example", 31210)])
    first = network.name([node("10.0.0.9")], SEED)
    network.choose_again()

    assert names == [first, network.name(NODES, SEED)]
