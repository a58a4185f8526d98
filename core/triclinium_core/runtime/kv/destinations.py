"""Cache of routes: the connection for each keyspace and vbucket.

It is only a memory of the whole search, and is dropped whole with every change of a config, a collection or a connection
(decision D35). Whether a connection is ready, closed by its breaker or full is looked at for every operation.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

from triclinium_core.kv.operation.document_operations import Keyspace, Operation
from triclinium_core.kv.topology.bucket_map import BucketMap
from triclinium_core.runtime.kv.connection.connection import Connection

REMEMBERED_MAX = 65_536
"""Ways that are remembered at most, some 130 bytes each: those of 64 collections of 1024 vbuckets. Beyond that all of them
are forgotten, and found again as they are needed."""


def vbucket_of(key: bytes, count: int) -> int:
    """Return the vbucket of a document id.

    Args:
        key: the id without its collection prefix, which is not hashed.
        count: number of vbuckets of the bucket: 1024, or 128; 0 for a bucket that has none, or before its first map.

    Source: the hash that all Couchbase clients use.
    """
    return ((crc32(key) >> 16) & 0x7FFF) % count if count else 0


class Destination(msgspec.Struct, frozen=True, eq=False):
    """Where an operation goes."""

    map: BucketMap | None
    """By which it was found; None where the bucket has none."""
    vbucket: int
    connection: Connection
    prefix: bytes | None = None
    """What stands before the key; None where that is not known yet."""


class _Keyspace(msgspec.Struct, eq=False):
    """What was found of one keyspace."""

    vbucket_count: int
    destinations: dict[int, Destination]


class Destinations:
    """By keyspace and vbucket."""

    def __init__(self) -> None:
        self._keyspaces: dict[Keyspace, _Keyspace] = {}
        self._room = REMEMBERED_MAX

    def recall(self, operation: Operation) -> Destination | None:
        """Return where the active copy of an operation's document is; None where something else is meant, or unknown."""
        known = self._keyspaces.get(operation.keyspace)
        if known is None or not operation.is_for_active_copy:
            return None
        return known.destinations.get(vbucket_of(operation.key.encode(), known.vbucket_count))

    def remember(self, keyspace: Keyspace, vbucket_count: int, destination: Destination) -> None:
        """Keep what was found of the active copies of a vbucket."""
        if not self._room:
            self.forget()
        self._room -= 1
        known = self._keyspaces.setdefault(keyspace, _Keyspace(vbucket_count, {}))
        known.destinations[destination.vbucket] = destination

    def forget(self) -> None:
        """Drop everything: some of it may not be found so again."""
        self._keyspaces.clear()
        self._room = REMEMBERED_MAX
