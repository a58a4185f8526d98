"""Buckets of a fake cluster, with their settings and their collections.

The initial buckets of the nodes share their collections; each bucket created later has separate collections.

Source: Couchbase Server documentation, "Creating and Editing Buckets"; ns_server of version 7.6, "ns_bucket".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum, unique

from triclinium_core.kv.operation.validation import DEFAULT_NAME, check_bucket_name
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.store.collections import FakeCollections
from triclinium_core.testing.fakes.store.documents import FakeDocuments
from triclinium_core.testing.fakes.store.lateness import Lateness

COUCHBASE, EPHEMERAL, MEMCACHED = "membase", "ephemeral", "memcached"
"""Types of buckets, as the cluster manager names them."""


@unique
class StorageMode(StrEnum):
    """Storage of a bucket, which decides its possible settings."""

    COUCHSTORE = "couchstore"
    MAGMA = "magma"
    EPHEMERAL = EPHEMERAL
    MEMCACHED = MEMCACHED


STORAGE_BACKENDS = (StorageMode.COUCHSTORE, StorageMode.MAGMA)
"""Storage on disk, which buckets of the type ``COUCHBASE`` have."""

_FOR_DOCUMENTS: Mapping[str, str] = {
    "replicaNumber": "1",
    "maxTTL": "0",
    "compressionMode": "passive",
    "conflictResolutionType": "seqno",
    "durabilityMinLevel": "none",
    "threadsNumber": "3",
    "rank": "0",
}
"""Default settings of all buckets. Memcached buckets override two of them."""

_DEFAULTS: Mapping[StorageMode, Mapping[str, str]] = {
    StorageMode.COUCHSTORE: {
        **_FOR_DOCUMENTS,
        "bucketType": COUCHBASE,
        "storageBackend": StorageMode.COUCHSTORE,
        "evictionPolicy": "valueOnly",
    },
    StorageMode.MAGMA: {
        **_FOR_DOCUMENTS,
        "bucketType": COUCHBASE,
        "storageBackend": StorageMode.MAGMA,
        "evictionPolicy": "fullEviction",
        "storageQuotaPercentage": "50",
        "historyRetentionSeconds": "0",
        "historyRetentionBytes": "0",
        "historyRetentionCollectionDefault": "true",
        "magmaKeyTreeDataBlockSize": "4096",
        "magmaSeqTreeDataBlockSize": "4096",
    },
    StorageMode.EPHEMERAL: {**_FOR_DOCUMENTS, "bucketType": EPHEMERAL, "evictionPolicy": "noEviction"},
    StorageMode.MEMCACHED: {
        **_FOR_DOCUMENTS,
        "bucketType": MEMCACHED,
        "evictionPolicy": "valueOnly",
        "replicaNumber": "0",
        "compressionMode": "off",
    },
}

_RESET_FOR_MAGMA: Mapping[str, str] = {"storageQuotaPercentage": "50"}
"""Settings that a migration to Magma storage resets unless the request has them.

Source: ns_server of version 7.6, "parse_validate_storage_quota_percentage".
"""


def storage_mode(settings: Mapping[str, str]) -> StorageMode:
    """Return the storage of a bucket with these settings; settings that are missing have their defaults."""
    kind = settings.get("bucketType", COUCHBASE)
    return StorageMode(settings.get("storageBackend", StorageMode.COUCHSTORE) if kind == COUCHBASE else kind)


def with_defaults(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a new bucket, as in a form, with the defaults of its storage."""
    mode = storage_mode(settings)
    complete = {"ramQuotaMB": "100", "flushEnabled": "0", **_DEFAULTS[mode], **settings}
    if mode in STORAGE_BACKENDS:
        # A bucket with Magma storage has no views, but keeps the setting in case its storage changes.
        complete.setdefault("replicaIndex", "0" if complete["replicaNumber"] == "0" else "1")
    return complete


@dataclass(frozen=True, slots=True)
class FakeBucket:
    """One bucket."""

    name: str
    settings: Mapping[str, str]
    """Settings as in a form, including those of a former storage. The fake reports the settings of the present storage,
    but applies only the type and storage, the flag for flushing, the number of replicas in configs, and whether
    collections keep history."""
    collections: FakeCollections
    number: int = 0
    """Number of the bucket in the order of creation; another bucket of the same name has another number."""
    created_at: float = -math.inf
    """Time of creation; ``-inf`` for an initial bucket."""

    @property
    def mode(self) -> StorageMode:
        """Storage of the bucket."""
        return storage_mode(self.settings)

    @property
    def is_memcached(self) -> bool:
        """Whether this is a memcached bucket, which has no cluster config."""
        return self.mode is StorageMode.MEMCACHED

    @property
    def keeps_history(self) -> bool:
        """Whether new collections of the bucket keep older versions of their documents by default."""
        return self.mode is StorageMode.MAGMA and self.settings.get("historyRetentionCollectionDefault") != "false"

    @property
    def forbids_couchstore(self) -> bool:
        """Whether ``keeps_history`` was set explicitly, by a request or by the creation with Magma storage."""
        return self.settings.get("historyRetentionCollectionDefault") == "true"

    def reported(self) -> Mapping[str, str]:
        """Return the settings that have a default in the present storage."""
        return {name: self.settings.get(name, default) for name, default in _DEFAULTS[self.mode].items()}


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
        settings = with_defaults({"replicaNumber": str(options.replicas), "flushEnabled": "1"})
        memcached = with_defaults({"bucketType": MEMCACHED, "flushEnabled": "1"})
        initial = [(name, settings) for name in options.buckets]
        initial += [(name, memcached) for name in options.memcached_buckets]
        self._buckets = {name: FakeBucket(name, of, self.shared, number) for number, (name, of) in enumerate(initial)}
        self._created = len(initial)

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
        self._created += 1
        created = FakeBucket(
            check_bucket_name(name), with_defaults(settings), collections, self._created, self.lateness.now
        )
        collections.keep_history(created.keeps_history, of_default_collection=True)
        self._buckets[name] = created
        return created

    def update(self, name: str, settings: Mapping[str, str]) -> None:
        """Change the given settings of a bucket, and keep the others, except that a migration to Magma resets some."""
        known = self._buckets[name]
        updated = {**known.settings, **settings}
        if known.mode is not StorageMode.MAGMA and storage_mode(updated) is StorageMode.MAGMA:
            updated = {**updated, **_RESET_FOR_MAGMA, **settings}
        self._buckets[name] = replace(known, settings=updated)
        known.collections.keep_history(self._buckets[name].keeps_history)

    def drop(self, name: str) -> None:
        """Remove a bucket with its documents."""
        del self._buckets[name]
        self.dropped += 1
        self._documents.forget_bucket(name)
        self._documents.histories.forget(name)

    def flush(self, name: str) -> None:
        """Remove the documents of a bucket."""
        self._documents.forget_bucket(name)

    def _forget_in_shared(self, collection_id: int) -> None:
        buckets = [bucket.name for bucket in self if bucket.collections is self.shared]
        self._documents.forget_collection(collection_id, buckets)
