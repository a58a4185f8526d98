"""Networks: the choice between the internal and external addresses of the nodes.

A node may stand in a config under several addresses: its own, in the network ``default``, and alternate ones, each in
a network with a name of the administrator's; the usual one is ``external``. A client keeps to one network. Unless it is
told which, it takes the one in which the address stands by which it found the cluster.

Source: the field ``alternateAddresses`` of ns_server's cluster configs; the connection string option ``network`` of
the Couchbase clients.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.cluster_config import NodeEntry
from triclinium_core.shown import one_line

AUTO = "auto"
"""Stands for the choice by address."""
DEFAULT = "default"
"""The network of the nodes' own addresses."""

_KV_SERVICES = ("kv", "kvSSL")


class Network:
    """The network that a client keeps to.

    Args:
        asked_for: its name, or ``auto``.
        seeds: where the client looks for the cluster.
    """

    def __init__(self, asked_for: str, seeds: Sequence[Address]) -> None:
        self._is_auto = asked_for == AUTO
        self._name = asked_for
        self._seeds = seeds

    def name(self, entries: Sequence[NodeEntry], source: Address) -> str:
        """Return the network for a config with these nodes.

        The first config with nodes decides. For one without any node in the network that was chosen, the choice is made by
        its own nodes: otherwise one forged config could keep the client away from the genuine nodes.
        """
        if not self._is_auto:
            return self._name
        if not entries:
            return DEFAULT if self._name == AUTO else self._name
        if self._name == AUTO:
            self._name = choose_network(entries, self._seeds, source)
        if self._name not in networks_of(entries):
            return choose_network(entries, self._seeds, source)
        return self._name

    def choose_again(self) -> None:
        """Let the next config decide, because the cluster was lost and any config of it counts as new."""
        if self._is_auto:
            self._name = AUTO


def choose_network(entries: Sequence[NodeEntry], seeds: Sequence[Address], source: Address) -> str:
    """Return the network in which a client is that found a cluster at one of ``seeds``.

    An entry with host and port of a seed decides; without any, one with its host, since ports may be forwarded; and
    the network of the nodes' own addresses where there is none either.

    Args:
        entries: the nodes, as the first config has them.
        source: the seed that told the config; its host stands for nodes that do not name theirs.
    """
    known = [
        (network, address)
        for entry in entries
        for network in _networks(entry)
        for address in _all(entry, network, source)
    ]
    addresses = frozenset((source, *seeds))
    hosts = frozenset(address.host for address in addresses)
    exact = (network for network, address in known if address in addresses)
    alike = (network for network, address in known if address.host in hosts)
    return next(exact, None) or next(alike, DEFAULT)


def address_in(network: str, entry: NodeEntry, service: str, source: Address) -> Address | None:
    """Return where a service of a node is reached in a network; None where it is not."""
    if network == DEFAULT:
        host, ports = entry.hostname, entry.services
    else:
        alternate = entry.alternate_addresses.get(network)
        if alternate is None:
            return None
        host, ports = alternate.hostname, entry.services if alternate.ports is None else alternate.ports
    port = ports.get(service)
    if port is None:
        return None
    return Address(source.host if host is None else host.removeprefix("[").removesuffix("]"), port)


def networks_of(entries: Sequence[NodeEntry]) -> Collection[str]:
    """Return the names of all networks in which any of the nodes is."""
    return {network: None for entry in entries for network in _networks(entry)} or {DEFAULT: None}


def not_in_network(network: str, networks: Collection[str]) -> str:
    """Return in words that no node of a cluster is in the network that a client keeps to, and what to do about that.

    Args:
        networks: those in which any of its nodes is.
    """
    known = one_line(", ".join(networks))
    return (
        f"no node of the cluster is in network {network!r}; the networks of its config are {known}: "
        "open the cluster with network='auto', or with the name of one of them"
    )


def _networks(entry: NodeEntry) -> Iterator[str]:
    yield DEFAULT
    yield from entry.alternate_addresses


def _all(entry: NodeEntry, network: str, source: Address) -> Iterator[Address]:
    for service in _KV_SERVICES:
        address = address_in(network, entry, service, source)
        if address is not None:
            yield address
