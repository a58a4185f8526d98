"""Map of a bucket: the addresses, in the client's network, of the nodes with the copies of each vbucket.

Source: kv_engine ``docs/BinaryProtocol.md`` (0xb5), fields ``nodesExt`` and ``vBucketServerMap``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from triclinium_core.kv.address import PORT_MAX, Address
from triclinium_core.kv.topology.cluster_config import ClusterConfig, NodeEntry
from triclinium_core.kv.topology.networks import DEFAULT, address_in, networks_of, not_in_network

_PORT = re.compile(r"[1-9][0-9]{0,4}")
"""Pattern of a port in digits. ``int`` raises ValueError for more than 4,300 digits."""
NO_NODE = -1
"""Index in a map that stands for a missing copy of a vbucket."""


@dataclass(frozen=True, slots=True)
class BucketMap:
    """Map of one bucket.

    Args:
        nodes: address of each server in the map; None for an unreachable one, which has no address in ``network``.
        holders: for each vbucket, the indexes in ``nodes`` of the active node and of the replicas; ``NO_NODE`` for a
            missing copy.
        here: address of the node that sent the map; None if unknown.
        forward: ``holders`` after the current rebalance; empty without a rebalance.
        network: network whose addresses the client uses.
        networks: all networks in which at least one node has an address.
    """

    nodes: tuple[Address | None, ...]
    holders: Sequence[Sequence[int]]
    here: Address | None = None
    forward: Sequence[Sequence[int]] = ()
    network: str = DEFAULT
    networks: Collection[str] = (DEFAULT,)

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Addresses of the reachable nodes, in the order of the map."""
        return tuple(address for address in self.nodes if address is not None)

    def holder(self, vbucket: int, copy: int) -> Address | None:
        """Return the address of the node with a copy of a vbucket.

        Return None if the copy does not exist or its node is unreachable.

        Args:
            copy: 0 for the active copy, 1 for the first replica and so on.
        """
        return self._reached(self.holders[vbucket], copy) if vbucket < len(self.holders) else None

    def next_holder(self, vbucket: int, copy: int) -> Address | None:
        """Return the address of the node with a copy of a vbucket after the current rebalance.

        Return None without a rebalance, if the copy will not exist, or if its node is unreachable.
        """
        return self._reached(self.forward[vbucket], copy) if vbucket < len(self.forward) else None

    def lacks_service(self, vbucket: int) -> bool:
        """Return whether the node with the active copy of a vbucket has no port for this kind of connection.

        Return False outside the default network: a node without an address in the network may still offer the service.
        """
        holder = self.holders[vbucket][0] if vbucket < len(self.holders) else NO_NODE
        return holder != NO_NODE and self.nodes[holder] is None and self.network == DEFAULT

    def obstacle(self, vbucket: int) -> str:
        """Return the reason, in words, why the active copy of a vbucket cannot be reached."""
        if vbucket >= len(self.holders):
            return f"there is no vbucket {vbucket}; the bucket has {len(self.holders)}"
        holder = self.holders[vbucket][0]
        if holder == NO_NODE:
            return f"vbucket {vbucket} has no active node now"
        if self.network not in self.networks:
            return not_in_network(self.network, self.networks)
        missing = "port for this service" if self.network == DEFAULT else f"address in network {self.network!r}"
        return f"vbucket {vbucket} is on node {holder} of the map, which has no {missing}"

    def _reached(self, holders: Sequence[int], copy: int) -> Address | None:
        holder = holders[copy] if copy < len(holders) else NO_NODE
        return self.nodes[holder] if holder != NO_NODE else None


def map_of(config: ClusterConfig, *, source: Address, tls: bool, network: str = DEFAULT) -> BucketMap:
    """Return the map in a bucket's config.

    Args:
        source: address of the node that sent the config; its host replaces missing host names.
        tls: whether to use the ports for TLS.
        network: network whose addresses to use.
    """
    servers = config.v_bucket_server_map
    assert servers is not None, "configs of buckets without a map are refused"
    count = len(servers.server_list)
    entries = config.nodes_ext[:count]
    nodes = nodes_of(entries, source=source, tls=tls, network=network)
    is_listed = not tls and network == DEFAULT
    nodes += [parse_server(server) if is_listed else None for server in servers.server_list[len(nodes) :]]
    itself = source if source in nodes else None
    here = next((node for entry, node in zip(entries, nodes, strict=False) if entry.this_node), itself)
    return BucketMap(
        tuple(nodes), servers.v_bucket_map, here, servers.v_bucket_map_forward, network, networks_of(entries)
    )


def nodes_of(entries: Sequence[NodeEntry], *, source: Address, tls: bool, network: str) -> list[Address | None]:
    """Return each node's key-value address in the network; None for a node without such an address. See ``map_of``."""
    service = "kvSSL" if tls else "kv"
    addresses = [address_in(network, entry, service, source) for entry in entries]
    if network != DEFAULT:
        return addresses
    # If the config has no address for the node that sent it, use the address from which the config arrived.
    defaults = [source if entry.this_node else None for entry in entries]
    return [address or default for address, default in zip(addresses, defaults, strict=True)]


def addresses_of(
    config: ClusterConfig, *, source: Address, tls: bool, network: str = DEFAULT
) -> tuple[Sequence[Address], Address | None]:
    """Return the addresses of the nodes in a global config, and that of the node that sent it, or None if unknown.

    Omit nodes without a key-value address in the network. ``map_of`` explains the arguments.
    """
    nodes = nodes_of(config.nodes_ext, source=source, tls=tls, network=network)
    addresses = [address for address in nodes if address is not None]
    itself = source if source in addresses else None
    senders = (node for entry, node in zip(config.nodes_ext, nodes, strict=True) if entry.this_node)
    return addresses, next(senders, itself)


def parse_server(server: str) -> Address | None:
    """Return the address from ``host:port``, the form in server lists. Return None for a string in another form."""
    host, _, digits = server.rpartition(":")
    port = int(digits) if _PORT.fullmatch(digits) is not None else 0
    return Address(host.removeprefix("[").removesuffix("]"), port) if host and 1 <= port <= PORT_MAX else None
