"""Query indexes of a fake cluster: it stores and lists them, but no query uses them.

Source: SDK-RFC 0054, QueryIndexManager; Couchbase Server documentation, "system:indexes".
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from triclinium_core.kv.operation.validation import DEFAULT_NAME

SYSTEM_INDEXES = ("system", "indexes")
"""Keyspace that lists the indexes."""


class IndexedCollection(NamedTuple):
    """Full name of a collection that has indexes."""

    bucket: str
    scope: str
    collection: str

    @property
    def is_default(self) -> bool:
        """Whether this is the default collection, for which only the bucket is named."""
        return (self.scope, self.collection) == (DEFAULT_NAME, DEFAULT_NAME)

    @property
    def path(self) -> str:
        """Name in error messages."""
        return f"default:{self.bucket}" if self.is_default else f"default:{'.'.join(self)}"


class Incarnation(NamedTuple):
    """Numbers of an existing collection, which differ if its bucket or the collection is created again."""

    bucket: int
    collection: int


class FakeIndex(msgspec.Struct, frozen=True, kw_only=True):
    """One index."""

    keyspace: IndexedCollection
    incarnation: Incarnation
    name: str
    keys: tuple[str, ...] = ()
    """Texts of the key expressions."""
    condition: str | None = None
    partition: str | None = None
    """Text of the partitioning, ``HASH(…)``; None without partitions."""
    is_primary: bool = False
    is_deferred: bool = False
    online_at: float = 0.0
    """Time on the nodes' clock at which the build ends; meaningless while the index is deferred."""


class FakeIndexes:
    """All indexes. ``build_seconds`` is the duration of a build."""

    def __init__(self) -> None:
        self.build_seconds: float = 0.0
        self._indexes: dict[tuple[IndexedCollection, str], FakeIndex] = {}

    def __contains__(self, place: tuple[IndexedCollection, str]) -> bool:
        return place in self._indexes

    def add(self, index: FakeIndex) -> None:
        """Add an index. Its name must be unique in its keyspace."""
        self._indexes[index.keyspace, index.name] = index

    def remove(self, keyspace: IndexedCollection, name: str) -> None:
        """Remove an index."""
        del self._indexes[keyspace, name]

    def build(self, keyspace: IndexedCollection, name: str, now: float) -> None:
        """Start the build of a deferred index."""
        known = self._indexes[keyspace, name]
        if known.is_deferred:
            built = msgspec.structs.replace(known, is_deferred=False, online_at=now + self.build_seconds)
            self._indexes[keyspace, name] = built

    def primary_of(self, keyspace: IndexedCollection) -> str | None:
        """Return the name of a primary index, or None if the keyspace has none."""
        names = (index.name for index in self._indexes.values() if index.is_primary and index.keyspace == keyspace)
        return next(names, None)

    def forget_dropped(self, incarnation_of: Callable[[IndexedCollection], Incarnation | None]) -> None:
        """Remove the indexes of dropped collections, even of those that were created again."""
        self._indexes = {
            place: index
            for place, index in self._indexes.items()
            if incarnation_of(index.keyspace) == index.incarnation
        }

    def documents(self, now: float) -> list[Mapping[str, object]]:
        """Return the indexes as documents of ``system:indexes``."""
        return [_document(index, now) for index in self._indexes.values()]


def _document(index: FakeIndex, now: float) -> Mapping[str, object]:
    bucket, scope, collection = index.keyspace
    state = "deferred" if index.is_deferred else "building" if now < index.online_at else "online"
    place: dict[str, object] = {"keyspace_id": bucket}
    if not index.keyspace.is_default:
        place = {"bucket_id": bucket, "scope_id": scope, "keyspace_id": collection}
    return {
        "id": f"{zlib.crc32(f'{index.keyspace.path}.{index.name}'.encode()):016x}",
        "datastore_id": "fake",
        "namespace_id": "default",
        **place,
        "name": index.name,
        "index_key": index.keys,
        "state": state,
        "using": "gsi",
        **({"condition": index.condition} if index.condition is not None else {}),
        **({"partition": index.partition} if index.partition is not None else {}),
        **({"is_primary": True} if index.is_primary else {}),
    }
