"""Nodes of a cluster, as subscribers of the topology see them.

Source: kv_engine ``docs/BinaryProtocol.md`` (0xb5), field ``nodesExt``.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.bucket_map import parse_server
from triclinium_core.kv.topology.cluster_config import ClusterConfig, NodeEntry
from triclinium_core.kv.topology.networks import DEFAULT, networks_of, not_in_network

_NAMING_PORTS = ("kv", "kvSSL", "mgmt", "mgmtSSL")
"""Services whose port tells the nodes of one host apart; the first that a node offers."""


class TopologyNode(msgspec.Struct, frozen=True):
    """One node of a cluster."""

    host: str
    ports: Mapping[str, int]
    """By service, as the cluster names them: ``kv``, ``kvSSL``, ``mgmt``, ``n1ql`` and so on."""
    is_reached: bool = True
    """Whether host and ports are those in the network that the client keeps to. Those of a node that is not in it are its
    own, and nothing is sent there: in the client's network they may be another machine's."""

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def name(self) -> str:
        """What tells it from other nodes: ``host:port``, whatever else it offers."""
        port = next((self.ports[service] for service in _NAMING_PORTS if service in self.ports), None)
        return self.host if port is None else str(Address(self.host, port))


class Topology(msgspec.Struct, frozen=True):
    """One version of a cluster, as seen from a bucket or from none."""

    bucket: str | None
    """None for the nodes of the whole cluster."""
    revision: tuple[int, int]
    """Epoch and revision; the greater is the newer."""
    nodes: tuple[TopologyNode, ...]
    source: TopologyNode | None = None
    """Which of them told it; None where that is not said."""
    network: str = DEFAULT
    """The network that the client keeps to, in which its nodes are reached."""
    networks: tuple[str, ...] = (DEFAULT,)
    """All networks in which any of its nodes has an address."""

    @property
    def obstacle(self) -> str | None:
        """Why no node at all can be reached, in words; None where one can, or where there is none."""
        if not self.nodes or any(node.is_reached for node in self.nodes):
            return None
        return not_in_network(self.network, self.networks)


class TopologyChange(msgspec.Struct, frozen=True):
    """From one version to a newer one; there may have been others in between."""

    old: Topology | None
    """None where no version was known before."""
    new: Topology

    @property
    def bucket(self) -> str | None:
        """Whose topology has changed; None for that of the whole cluster."""
        return self.new.bucket

    @property
    def added(self) -> tuple[TopologyNode, ...]:
        """The nodes that were not there before."""
        return _missing(self.new, in_=self.old)

    @property
    def removed(self) -> tuple[TopologyNode, ...]:
        """The nodes that are there no more."""
        return () if self.old is None else _missing(self.old, in_=self.new)

    def followed_by(self, later: TopologyChange) -> TopologyChange:
        """Return the change that this one and a later one make together."""
        return TopologyChange(self.old, later.new)


def topology_of(config: ClusterConfig, *, bucket: str | None, source: Address, network: str = DEFAULT) -> Topology:
    """Return the nodes in a config.

    Args:
        source: where the config came from; its host stands for nodes that do not name theirs.
        network: by which of its addresses each node is named; one that is not in it, by its own.
    """
    nodes = [_node(entry, source, network) for entry in config.nodes_ext]
    this_node = next((node for entry, node in zip(config.nodes_ext, nodes, strict=True) if entry.this_node), None)
    servers = config.v_bucket_server_map.server_list if config.v_bucket_server_map is not None else ()
    # A server without an entry of its own tells only where it has its documents.
    others, is_reached = map(parse_server, servers[len(nodes) :]), network == DEFAULT
    nodes += [TopologyNode(each.host, {"kv": each.port}, is_reached) for each in others if each is not None]
    networks = tuple(networks_of(config.nodes_ext))
    return Topology(bucket, config.revision, tuple(nodes), this_node, network, networks)


def _node(entry: NodeEntry, source: Address, network: str) -> TopologyNode:
    alternate = entry.alternate_addresses.get(network) if network != DEFAULT else None
    host = entry.hostname if alternate is None else alternate.hostname
    ports = entry.services if alternate is None or alternate.ports is None else alternate.ports
    is_reached = alternate is not None or network == DEFAULT
    return TopologyNode(source.host if host is None else host.removeprefix("[").removesuffix("]"), ports, is_reached)


def _missing(topology: Topology, *, in_: Topology | None) -> tuple[TopologyNode, ...]:
    names = {node.name for node in in_.nodes} if in_ is not None else frozenset()
    return tuple(node for node in topology.nodes if node.name not in names)
