"""Buckets of a fake cluster, with their settings and their collections.

The initial buckets of the nodes share their collections; each bucket created later has separate collections.

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
"""Default settings, as in a form. They let tests flush the initial buckets."""


@dataclass(frozen=True, slots=True)
class FakeBucket:
    """One bucket."""

    name: str
    settings: Mapping[str, str]
    """Settings as in a form. The fake reports them, but applies only ``bucketType`` and ``flushEnabled``."""
    collections: FakeCollections
    created_at: float = -math.inf
    """Time of creation; ``-inf`` for an initial bucket."""

    @property
    def is_memcached(self) -> bool:
        """Whether this is a memcached bucket, which has no cluster config."""
        return self.settings["bucketType"] == MEMCACHED


class FakeBuckets:
    """Buckets by name.

    Args:
        options: options of the first node.
        documents: documents of all buckets.
    """

    def __init__(self, options: FakeNodeOptions, documents: FakeDocuments) -> None:
        self._documents = documents
        self.lateness: Lateness = Lateness(documents)
        """Delays of the nodes that learn late of new buckets, and of changes to scopes and collections."""
        self.shared: FakeCollections = FakeCollections(
            options.collections, on_drop=self._forget_in_shared, lateness=self.lateness
        )
        """Collections of the initial buckets."""
        self.dropped: int = 0
        """Number of dropped buckets."""
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
        """Return a bucket, or None if it does not exist."""
        return None if name is None else self._buckets.get(name)

    def create(self, name: str, settings: Mapping[str, str]) -> FakeBucket:
        """Create and return a bucket. The name must be unused."""

        def forget(collection_id: int) -> None:
            self._documents.forget_collection(collection_id, [name])

        collections = FakeCollections({DEFAULT_NAME: {DEFAULT_NAME: 0}}, on_drop=forget, lateness=self.lateness)
        settings = {**DEFAULTS, "flushEnabled": "0", **settings}
        created = FakeBucket(check_name(name, "bucket"), settings, collections, self.lateness.now)
        self._buckets[name] = created
        return created

    def update(self, name: str, settings: Mapping[str, str]) -> None:
        """Change the given settings of a bucket, and keep its other settings."""
        known = self._buckets[name]
        self._buckets[name] = replace(known, settings={**known.settings, **settings})

    def drop(self, name: str) -> None:
        """Remove a bucket with its documents."""
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
