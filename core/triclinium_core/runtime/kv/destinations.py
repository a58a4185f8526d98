"""Cache of routes: the connection for each bucket and vbucket.

The cache keeps the results of the dispatcher's search (decision D35). The client drops the routes of a bucket when it
stores a new config of the bucket, and after changes to the bucket's connections, such as a loss. For every operation,
the dispatcher checks that the connection is ready and has capacity, and that its circuit breaker permits operations.
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
        key: the document id without the collection prefix, which is not hashed.
        count: number of vbuckets of the bucket, such as 1024 or 128; 0 without vbuckets, or before the first map.

    Source: the hash that all Couchbase clients use.
    """
    return ((crc32(key) >> 16) & 0x7FFF) % count if count else 0


class Destination(msgspec.Struct, frozen=True, eq=False):
    """Route to the documents of one vbucket."""

    map: BucketMap | None
    """Map in which the dispatcher found the route; None if the bucket has no map."""
    vbucket: int
    connection: Connection
    prefixes: Mapping[Keyspace, bytes] = _NO_PREFIXES
    """Key prefix by keyspace. A collection without a known id is absent. In a route that is not cached yet, all
    collections are absent."""


class _Bucket(msgspec.Struct, eq=False):
    """Routes of one bucket."""

    vbucket_count: int
    destinations: dict[int, Destination]


class Destinations:
    """Routes by bucket and vbucket: at most one for each vbucket in the map of a bucket."""

    def __init__(self) -> None:
        self._buckets: dict[str | None, _Bucket] = {}

    def recall(self, operation: Operation) -> Destination | None:
        """Return the cached route to the active copy of an operation's document.

        Return None if no route is cached, or if the operation addresses another copy.
        """
        known = self._buckets.get(operation.keyspace.bucket)
        if known is None or not operation.is_for_active_copy:
            return None
        return known.destinations.get(vbucket_of(operation.key.encode(), known.vbucket_count))

    def remember(self, bucket: str | None, vbucket_count: int, destination: Destination) -> None:
        """Cache the route to the active copies of a vbucket."""
        known = self._buckets.setdefault(bucket, _Bucket(vbucket_count, {}))
        known.destinations[destination.vbucket] = destination

    def forget(self, bucket: str | None) -> None:
        """Drop the routes of a bucket, because a search may find other routes."""
        self._buckets.pop(bucket, None)
