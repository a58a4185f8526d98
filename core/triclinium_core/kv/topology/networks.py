"""Choice of the network whose addresses the client uses.

A config may list several addresses of a node: its internal address in the network ``default``, and alternate addresses
in networks that the administrator names, usually ``external``. A client uses one network. By default, this is the
network that contains the seed address at which the client found the cluster.

Source: the field ``alternateAddresses`` of ns_server's cluster configs; the connection string option ``network`` of
the Couchbase clients.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.cluster_config import NodeEntry
from triclinium_core.shown import one_line

AUTO = "auto"
"""Value of the option ``network`` with which the client chooses the network by seed address."""
DEFAULT = "default"
"""Name of the network with the internal addresses of the nodes."""

_KV_SERVICES = ("kv", "kvSSL")


class Network:
    """Network that a client uses.

    Args:
        network: name of the network, or ``auto``.
        seeds: addresses of the seed nodes.
    """

    def __init__(self, network: str, seeds: Sequence[Address]) -> None:
        self._is_auto = network == AUTO
        self._name = network
        self._seeds = seeds

    def name(self, entries: Sequence[NodeEntry], source: Address) -> str:
        """Return the name of the network to use for a config with these nodes.

        A named network applies to every config. With ``auto``, the first config with nodes determines the network. For
        a later config without a node in that network, choose from the nodes of the later config. Otherwise, after one
        forged config, the client could not reach the genuine nodes.
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
        """Let the next config determine the network, unless the user has named one.

        The client accepts any config of a lost cluster, even one with other networks.
        """
        if self._is_auto:
            self._name = AUTO


def choose_network(entries: Sequence[NodeEntry], seeds: Sequence[Address], source: Address) -> str:
    """Return the name of the network in which a client found the cluster at ``source`` or one of ``seeds``.

    Return the first network with the host and port of one of them. Without such a network, return the first network
    with one of their hosts, because ports may be forwarded. Otherwise return ``DEFAULT``.

    Args:
        entries: nodes of the config.
        source: address of the node that sent the config; its host replaces missing host names.
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
    """Return the address of a node's service in a network. Return None if the node has no such address."""
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
    """Return the names of all networks in which at least one node has an address."""
    return {network: None for entry in entries for network in _networks(entry)} or {DEFAULT: None}


def not_in_network(network: str, networks: Collection[str]) -> str:
    """Return the message that no node of the cluster is in the client's network. It includes the next step.

    Args:
        networks: all networks in which at least one node of the cluster has an address.
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
