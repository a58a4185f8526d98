"""Which node holds which vbucket of a bucket, by the address at which this client reaches it.

Source: kv_engine ``docs/BinaryProtocol.md`` (0xb5), fields ``nodesExt`` and ``vBucketServerMap``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.cluster_config import ClusterConfig, NodeEntry

NOBODY = -1
"""Stands in a map for a vbucket without a copy."""


@dataclass(frozen=True, slots=True)
class BucketMap:
    """The map of one bucket.

    Args:
        nodes: where each server of the map is reached; None for one that offers no such port.
        holders: by vbucket, the indexes of the active node and of the replicas.
        here: which of the nodes told the map, if it said so.
    """

    nodes: tuple[Address | None, ...]
    holders: Sequence[Sequence[int]]
    here: Address | None = None

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The nodes that can be reached, in the order of the map."""
        return tuple(address for address in self.nodes if address is not None)

    def active(self, vbucket: int) -> Address | None:
        """Return where the active copy of a vbucket is, or None where there is none, or none that can be reached."""
        return self.holder(vbucket, 0)

    def holder(self, vbucket: int, copy: int) -> Address | None:
        """Return where a copy of a vbucket is: 0 for the active one, 1 for the first replica and so on.

        None where there is none, or none that can be reached.
        """
        holders = self.holders[vbucket]
        holder = holders[copy] if copy < len(holders) else NOBODY
        return self.nodes[holder] if holder != NOBODY else None


def map_of(config: ClusterConfig, *, source: Address, tls: bool) -> BucketMap:
    """Return the map in a bucket's config.

    Args:
        source: where the config came from; its host stands for nodes that do not name theirs.
        tls: whether the ports for TLS are wanted.
    """
    servers = config.v_bucket_server_map
    assert servers is not None, "a bucket's config has a map, or it would have been refused"
    count = len(servers.server_list)
    entries = config.nodes_ext[:count]
    service = "kvSSL" if tls else "kv"
    nodes = [_address(entry, service, source) for entry in entries]
    nodes += [None if tls else _parse(server) for server in servers.server_list[len(nodes) :]]
    itself = source if source in nodes else None
    here = next((node for entry, node in zip(entries, nodes, strict=False) if entry.this_node), itself)
    return BucketMap(tuple(nodes), servers.v_bucket_map, here)


def _address(entry: NodeEntry, service: str, source: Address) -> Address | None:
    port = entry.services.get(service)
    host = source.host if entry.hostname is None else entry.hostname.removeprefix("[").removesuffix("]")
    if port is None:
        # The node that tells the map can be reached, as it was just now.
        return source if entry.this_node else None
    return Address(host, port)


def _parse(server: str) -> Address | None:
    host, _, port = server.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 1 <= int(port[:6]) <= 0xFFFF:
        return None
    return Address(host.removeprefix("[").removesuffix("]"), int(port))
