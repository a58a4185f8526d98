"""Search indexes of a fake cluster: it stores their definitions and indexes nothing."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

BUCKET_SOURCES = frozenset({"couchbase", "gocbcore"})
"""Types of sources that are buckets."""


class FakeSearchIndexes:
    """Definitions of indexes by name; the name of an index in a scope is ``BUCKET.SCOPE.NAME``."""

    def __init__(self) -> None:
        self.definitions: dict[str, Mapping[str, object]] = {}
        self.searches: dict[str, int] = {}
        """Number of searches in each index."""
        self._changes = 0

    @property
    def uuid(self) -> str:
        """UUID of all definitions together, which each change replaces."""
        return f"{zlib.crc32(b'%d' % self._changes):016x}"

    def remove(self, name: str) -> None:
        """Remove an index, which must exist."""
        self._changes += 1
        del self.definitions[name], self.searches[name]

    def forget_bucket(self, bucket: str) -> None:
        """Remove the indexes of a bucket."""
        for name, each in list(self.definitions.items()):
            if each.get("sourceType") in BUCKET_SOURCES and each.get("sourceName") == bucket:
                self.remove(name)

    def put(self, name: str, definition: Mapping[str, object]) -> str:
        """Store a definition, and return its new UUID."""
        self._changes += 1
        self.searches[name] = self.searches.get(name, 0)
        uuid = f"{zlib.crc32(f'{name} {self._changes}'.encode()):016x}"
        self.definitions[name] = {**definition, "name": name, "uuid": uuid}
        return uuid
