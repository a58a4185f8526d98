"""Cache of routes: the connection for each bucket and vbucket.

It caches the results of the full search (decision D35). A new config or map of a bucket, and every state change of one
of its connections, drop the routes of that bucket. For every operation, the dispatcher checks whether the connection is
ready, closed by its breaker or full.
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

import msgspec

from triclinium_core.kv.operation.document_operations import Keyspace, Operation
from triclinium_core.kv.topology.bucket_map import BucketMap
from triclinium_core.runtime.kv.connection.connection import Connection

_NO_PREFIXES: Mapping[Keyspace, bytes] = {}


def vbucket_of(key: bytes, count: int) -> int:
    """Return the vbucket of a document id.

    Args:
        key: the id without its collection prefix, which is not hashed.
        count: number of vbuckets of the bucket: 1024, or 128; 0 for a bucket that has none, or before its first map.

    Source: the hash that all Couchbase clients use.
    """
    return ((crc32(key) >> 16) & 0x7FFF) % count if count else 0


class Destination(msgspec.Struct, frozen=True, eq=False):
    """Route of an operation."""

    map: BucketMap | None
    """Map by which the route was found; None if the bucket has none."""
    vbucket: int
    connection: Connection
    prefixes: Mapping[Keyspace, bytes] = _NO_PREFIXES
    """Prefix of a key, by keyspace. A collection without a known id is absent, and all are absent until the first
    operation is prepared for the connection."""


class _Bucket(msgspec.Struct, eq=False):
    """Routes of one bucket."""

    vbucket_count: int
    destinations: dict[int, Destination]


class Destinations:
    """Routes by bucket and vbucket: at most one for each vbucket of a map that the client has."""

    def __init__(self) -> None:
        self._buckets: dict[str | None, _Bucket] = {}

    def recall(self, operation: Operation) -> Destination | None:
        """Return the cached route to the active copy of an operation's document; None without one, or for another copy."""
        known = self._buckets.get(operation.keyspace.bucket)
        if known is None or not operation.is_for_active_copy:
            return None
        return known.destinations.get(vbucket_of(operation.key.encode(), known.vbucket_count))

    def remember(self, bucket: str | None, vbucket_count: int, destination: Destination) -> None:
        """Cache the route to the active copies of a vbucket."""
        known = self._buckets.setdefault(bucket, _Bucket(vbucket_count, {}))
        known.destinations[destination.vbucket] = destination

    def forget(self, bucket: str | None) -> None:
        """Drop the routes of a bucket, because a search may find other ones."""
        self._buckets.pop(bucket, None)
