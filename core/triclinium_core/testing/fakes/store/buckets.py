"""The buckets of a fake cluster, with their settings and their collections.

The buckets that the nodes were made with share their collections; one that is created later has its own.

Source: Couchbase Server documentation, "Creating and Editing Buckets".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from triclinium_core.kv.operation.validation import DEFAULT_NAME, check_name
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.store.collections import FakeCollections
from triclinium_core.testing.fakes.store.documents import FakeDocuments
from triclinium_core.testing.fakes.store.lateness import Lateness

COUCHBASE, EPHEMERAL, MEMCACHED = "membase", "ephemeral", "memcached"
"""Types of buckets, as the cluster manager names them."""

DEFAULTS: Mapping[str, str] = {
    "bucketType": COUCHBASE,
    "ramQuotaMB": "100",
    "replicaNumber": "0",
    "flushEnabled": "1",
    "replicaIndex": "0",
    "maxTTL": "0",
    "compressionMode": "passive",
    "conflictResolutionType": "seqno",
    "evictionPolicy": "valueOnly",
    "durabilityMinLevel": "none",
    "storageBackend": "couchstore",
}
"""Settings as a form has them. Buckets that nobody created can be flushed, for they are there for tests."""


@dataclass(frozen=True, slots=True)
class FakeBucket:
    """One bucket."""

    name: str
    settings: Mapping[str, str]
    """As a form has them; told, and for ``bucketType`` and ``flushEnabled`` also followed."""
    collections: FakeCollections
    created_at: float = -math.inf
    """When it was made; before all time where the nodes were made with it."""

    @property
    def is_memcached(self) -> bool:
        """Whether it has no cluster config and no collections."""
        return self.settings["bucketType"] == MEMCACHED


class FakeBuckets:
    """All buckets by their names.

    Args:
        options: of the first node.
        documents: those of all buckets.
    """

    def __init__(self, options: FakeNodeOptions, documents: FakeDocuments) -> None:
        self._documents = documents
        self.lateness: Lateness = Lateness(documents)
        """Which nodes hear late of new buckets, and of changes of scopes and collections."""
        self.shared: FakeCollections = FakeCollections(
            options.collections, on_drop=self._forget_in_shared, lateness=self.lateness
        )
        """The collections of the buckets that were there from the beginning."""
        self.dropped: int = 0
        """How many buckets were dropped."""
        settings = {**DEFAULTS, "replicaNumber": str(options.replicas)}
        self._buckets = {name: FakeBucket(name, settings, self.shared) for name in options.buckets}
        memcached = {**settings, "bucketType": MEMCACHED}
        self._buckets |= {name: FakeBucket(name, memcached, self.shared) for name in options.memcached_buckets}

    def __contains__(self, name: object) -> bool:
        return name in self._buckets

    def __getitem__(self, name: str) -> FakeBucket:
        return self._buckets[name]

    def __iter__(self) -> Iterator[FakeBucket]:
        return iter(list(self._buckets.values()))

    def get(self, name: str | None) -> FakeBucket | None:
        """Return a bucket; None where there is none."""
        return None if name is None else self._buckets.get(name)

    def create(self, name: str, settings: Mapping[str, str]) -> FakeBucket:
        """Return a new bucket, whose name no other has."""

        def forget(collection_id: int) -> None:
            self._documents.forget_collection(collection_id, [name])

        collections = FakeCollections({DEFAULT_NAME: {DEFAULT_NAME: 0}}, on_drop=forget, lateness=self.lateness)
        settings = {**DEFAULTS, "flushEnabled": "0", **settings}
        created = FakeBucket(check_name(name, "bucket"), settings, collections, self.lateness.now)
        self._buckets[name] = created
        return created

    def update(self, name: str, settings: Mapping[str, str]) -> None:
        """Give a bucket other settings; those that are not given stay."""
        known = self._buckets[name]
        self._buckets[name] = replace(known, settings={**known.settings, **settings})

    def drop(self, name: str) -> None:
        """Remove a bucket, and its documents with it."""
        del self._buckets[name]
        self.dropped += 1
        self._documents.forget_bucket(name)
        self._documents.forget_history(name)

    def flush(self, name: str) -> None:
        """Remove the documents of a bucket."""
        self._documents.forget_bucket(name)

    def _forget_in_shared(self, collection_id: int) -> None:
        buckets = [bucket.name for bucket in self if bucket.collections is self.shared]
        self._documents.forget_collection(collection_id, buckets)
