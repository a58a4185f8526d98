"""Map of a bucket: the nodes that hold each vbucket, by the addresses at which this client reaches them.

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
"""Port in digits. ``int`` alone raises ValueError for more than 4,300 digits."""
NOBODY = -1
"""Stands in a map for a vbucket without a copy."""


@dataclass(frozen=True, slots=True)
class BucketMap:
    """The map of one bucket.

    Args:
        nodes: where each server of the map is reached; None for one that is not.
        holders: by vbucket, the indexes of the active node and of the replicas.
        here: which of the nodes told the map, if it said so.
        forward: what ``holders`` are to become by the rebalance that is under way; empty where none is.
        network: in which the nodes are reached.
        networks: in which any of them is.
    """

    nodes: tuple[Address | None, ...]
    holders: Sequence[Sequence[int]]
    here: Address | None = None
    forward: Sequence[Sequence[int]] = ()
    network: str = DEFAULT
    networks: Collection[str] = (DEFAULT,)

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The nodes that can be reached, in the order of the map."""
        return tuple(address for address in self.nodes if address is not None)

    def holder(self, vbucket: int, copy: int) -> Address | None:
        """Return where a copy of a vbucket is: 0 for the active one, 1 for the first replica and so on.

        None where there is none, or none that can be reached.
        """
        return self._reached(self.holders[vbucket], copy) if vbucket < len(self.holders) else None

    def next_holder(self, vbucket: int, copy: int) -> Address | None:
        """Return where a copy of a vbucket is to be after the rebalance; None also where none is under way."""
        return self._reached(self.forward[vbucket], copy) if vbucket < len(self.forward) else None

    def lacks_service(self, vbucket: int) -> bool:
        """Whether a node has the active copy of a vbucket, and does not offer its documents in the way that is wanted.

        A node that is not in the network that is wanted may offer them all the same.
        """
        holder = self.holders[vbucket][0] if vbucket < len(self.holders) else NOBODY
        return holder != NOBODY and self.nodes[holder] is None and self.network == DEFAULT

    def obstacle(self, vbucket: int) -> str:
        """Return why the active copy of a vbucket cannot be reached."""
        if vbucket >= len(self.holders):
            return f"there is no vbucket {vbucket}, but {len(self.holders)} from 0 on"
        holder = self.holders[vbucket][0]
        if holder == NOBODY:
            return f"vbucket {vbucket} has no active node now"
        if self.network not in self.networks:
            return not_in_network(self.network, self.networks)
        missing = "port for this service" if self.network == DEFAULT else f"address in network {self.network!r}"
        return f"vbucket {vbucket} is on node {holder} of the map, which has no {missing}"

    def _reached(self, holders: Sequence[int], copy: int) -> Address | None:
        holder = holders[copy] if copy < len(holders) else NOBODY
        return self.nodes[holder] if holder != NOBODY else None


def map_of(config: ClusterConfig, *, source: Address, tls: bool, network: str = DEFAULT) -> BucketMap:
    """Return the map in a bucket's config.

    Args:
        source: where the config came from; its host stands for nodes that do not name theirs.
        tls: whether the ports for TLS are wanted.
        network: by which of its addresses each node is to be reached.
    """
    servers = config.v_bucket_server_map
    assert servers is not None, "a bucket's config has a map, or it would have been refused"
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
    """Return where the KV service of each of the nodes is reached; None where it is not. For ``Args`` see ``map_of``."""
    service = "kvSSL" if tls else "kv"
    addresses = [address_in(network, entry, service, source) for entry in entries]
    if network != DEFAULT:
        return addresses
    # The node that tells the map can be reached, as it was just now.
    told = [source if entry.this_node else None for entry in entries]
    return [address or known for address, known in zip(addresses, told, strict=True)]


def addresses_of(
    config: ClusterConfig, *, source: Address, tls: bool, network: str = DEFAULT
) -> tuple[Sequence[Address], Address | None]:
    """Return where the nodes of a global config are reached, and which of them told it, if it said so.

    Nodes without the key-value service are left out. For ``Args`` see ``map_of``.
    """
    nodes = nodes_of(config.nodes_ext, source=source, tls=tls, network=network)
    addresses = [address for address in nodes if address is not None]
    itself = source if source in addresses else None
    told = (node for entry, node in zip(config.nodes_ext, nodes, strict=True) if entry.this_node)
    return addresses, next(told, itself)


def parse_server(server: str) -> Address | None:
    """Return the address in ``host:port`` as a server list has it; None where it is not one."""
    host, _, digits = server.rpartition(":")
    port = int(digits) if _PORT.fullmatch(digits) is not None else 0
    return Address(host.removeprefix("[").removesuffix("]"), port) if host and 1 <= port <= PORT_MAX else None
