"""Topologies: the nodes of a cluster, as subscribers receive them.

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
"""Services whose port distinguishes the nodes on one host. The name of a node contains the port of the first of these
services that the node has."""


class TopologyNode(msgspec.Struct, frozen=True):
    """One node of a cluster."""

    host: str
    ports: Mapping[str, int]
    """Ports by service, with the names from configs: ``kv``, ``kvSSL``, ``mgmt``, ``n1ql`` and so on."""
    is_reached: bool = True
    """Whether host and ports are those in the client's network. Otherwise they are the internal address of the node.
    The client then sends nothing to the node, because the address may belong to another machine in its network."""

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def name(self) -> str:
        """Unique name of the node: ``host:port``, or the host alone if the node has no port in ``_NAMING_PORTS``."""
        port = next((self.ports[service] for service in _NAMING_PORTS if service in self.ports), None)
        return self.host if port is None else str(Address(self.host, port))


class Topology(msgspec.Struct, frozen=True):
    """One version of the nodes of a bucket or of the complete cluster."""

    bucket: str | None
    """Name of the bucket; None for the nodes of the complete cluster."""
    revision: tuple[int, int]
    """Epoch and revision; the greater pair is newer."""
    nodes: tuple[TopologyNode, ...]
    source: TopologyNode | None = None
    """Node that sent this version; None if unknown."""
    network: str = DEFAULT
    """Network that the client uses."""
    networks: tuple[str, ...] = (DEFAULT,)
    """All networks in which at least one node has an address."""

    @property
    def obstacle(self) -> str | None:
        """Reason why the client can reach no node; None if it can reach one, or if the topology has no nodes."""
        if not self.nodes or any(node.is_reached for node in self.nodes):
            return None
        return not_in_network(self.network, self.networks)


class TopologyChange(msgspec.Struct, frozen=True):
    """Change from one version of a topology to another, usually a newer one. There may be versions in between."""

    old: Topology | None
    """Previous version; None if the new version is the first one."""
    new: Topology

    @property
    def bucket(self) -> str | None:
        """Bucket whose topology has changed; None for the complete cluster."""
        return self.new.bucket

    @property
    def added(self) -> tuple[TopologyNode, ...]:
        """Nodes that are only in the new version."""
        return _missing(self.new, in_=self.old)

    @property
    def removed(self) -> tuple[TopologyNode, ...]:
        """Nodes that are only in the old version."""
        return () if self.old is None else _missing(self.old, in_=self.new)

    def followed_by(self, later: TopologyChange) -> TopologyChange:
        """Return the combination of this change and the change ``later``."""
        return TopologyChange(self.old, later.new)


def topology_of(config: ClusterConfig, *, bucket: str | None, source: Address, network: str = DEFAULT) -> Topology:
    """Return the topology with the nodes in a config.

    Args:
        source: address of the node that sent the config; its host replaces missing host names.
        network: network whose addresses to use. A node without an address in this network gets its internal address.
    """
    nodes = [_node(entry, source, network) for entry in config.nodes_ext]
    this_node = next((node for entry, node in zip(config.nodes_ext, nodes, strict=True) if entry.this_node), None)
    servers = config.v_bucket_server_map.server_list if config.v_bucket_server_map is not None else ()
    # Servers without a ``nodesExt`` entry: the config has only their key-value addresses.
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
