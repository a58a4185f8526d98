"""Buckets: what they can be like, and the requests that make, change, read, flush and drop them.

Source: SDK-RFC 0054 "BucketManager", "BucketSettings"; SDK-RFC 0049 makes only GET idempotent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum, unique
from typing import ClassVar

import msgspec

from triclinium_core.checks import (
    Duration,
    check_choice,
    check_duration,
    check_flag,
    check_integer,
    check_type,
    in_seconds,
)
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.validation import REPLICAS_MAX, UINT64_MAX
from triclinium_core.services.management.request import ManagementRequest, check_bucket_name, path, reading
from triclinium_core.services.request import HttpAnswer, ServiceResult
from triclinium_core.shown import one_line

BUCKETS = ("pools", "default", "buckets")
EXPIRY_SECONDS_MAX = 2**31 - 1
"""What a server takes as the longest expiry."""

_MEBIBYTE = 1024 * 1024


@unique
class BucketType(StrEnum):
    """What a bucket keeps its documents in; the value is the word that travels."""

    COUCHBASE = "membase"
    """Memory and disk."""
    MEMCACHED = "memcached"
    EPHEMERAL = "ephemeral"
    """Memory alone."""


@unique
class EvictionPolicy(StrEnum):
    """What leaves the memory of a bucket that is full; the value is the word that travels."""

    FULL = "fullEviction"
    """Documents with their keys; for COUCHBASE."""
    VALUE_ONLY = "valueOnly"
    """Documents, and their keys stay; for COUCHBASE."""
    NOT_RECENTLY_USED = "nruEviction"
    """Documents that have not been used for long are dropped; for EPHEMERAL."""
    NO_EVICTION = "noEviction"
    """Nothing: a full bucket takes no more; for EPHEMERAL."""


@unique
class CompressionMode(StrEnum):
    """Whether a bucket keeps documents compressed; the value is the word that travels."""

    OFF = "off"
    PASSIVE = "passive"
    """Those that came compressed."""
    ACTIVE = "active"
    """All of them."""


@unique
class StorageBackend(StrEnum):
    """How a bucket is stored on disk; the value is the word that travels."""

    COUCHSTORE = "couchstore"
    MAGMA = "magma"
    """Enterprise Edition only."""


@unique
class ConflictResolutionType(StrEnum):
    """Which of two versions wins where clusters replicate to each other; the value is the word that travels."""

    TIMESTAMP = "lww"
    """The last write."""
    SEQUENCE_NUMBER = "seqno"
    """The version with more changes."""
    CUSTOM = "custom"
    """Volatile: only in the developer preview of server 7.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketSettings:
    """What a bucket is like. A setting that is None is not sent: the server chooses.

    Raises:
        InvalidArgumentException: a setting is wrong by itself. The server judges whether they go together.

    Source: SDK-RFC 0054 "BucketSettings".
    """

    name: str
    ram_quota_mb: int
    """Mebibytes of memory on each node."""
    flush_enabled: bool = False
    num_replicas: int | None = None
    """How many copies there are of each document beside the active one."""
    replica_indexes: bool | None = None
    """Whether view indexes have copies. Settled when the bucket is made."""
    bucket_type: BucketType = BucketType.COUCHBASE
    """Settled when the bucket is made."""
    eviction_policy: EvictionPolicy | None = None
    max_expiry: Duration | None = None
    """How long documents live at most; 0 for no limit. A fraction of a second counts as a whole one."""
    compression_mode: CompressionMode | None = None
    minimum_durability_level: DurabilityLevel | None = None
    """The least durability of every write."""
    storage_backend: StorageBackend | None = None
    num_vbuckets: int | None = None
    """Settled when the bucket is made."""
    history_retention_collection_default: bool | None = None
    """Whether new collections keep older versions of their documents. Only MAGMA has history."""
    history_retention_bytes: int | None = None
    """How much disk space older versions may take."""
    history_retention_duration: Duration | None = None
    """For how long older versions are kept at most. A fraction of a second counts as a whole one."""

    def __post_init__(self) -> None:
        check_bucket_name(self.name, "name")
        check_integer(self.ram_quota_mb, "ram_quota_mb", 1, UINT64_MAX)
        check_flag(self.flush_enabled, "flush_enabled")
        check_choice(self.bucket_type, "bucket_type", BucketType)
        for parameter, choices in _CHOICES.items():
            value = getattr(self, parameter)
            if value is not None:
                check_choice(value, parameter, choices)
        for parameter in ("replica_indexes", "history_retention_collection_default"):
            value = getattr(self, parameter)
            if value is not None:
                check_flag(value, parameter)
        for parameter, most in _INTEGERS_MAX.items():
            value = getattr(self, parameter)
            if value is not None:
                check_integer(value, parameter, 0, most)
        for parameter in ("max_expiry", "history_retention_duration"):
            value = getattr(self, parameter)
            if value is not None:
                check_duration(value, parameter, most=EXPIRY_SECONDS_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateBucketSettings(BucketSettings):
    """What a new bucket is like, including what can never be changed.

    Raises:
        InvalidArgumentException: as ``BucketSettings``.

    Source: SDK-RFC 0054 "CreateBucketSettings".
    """

    conflict_resolution_type: ConflictResolutionType | None = None

    def __post_init__(self) -> None:
        BucketSettings.__post_init__(self)
        if self.conflict_resolution_type is not None:
            check_choice(self.conflict_resolution_type, "conflict_resolution_type", ConflictResolutionType)


_CHOICES: Mapping[str, type[EvictionPolicy | CompressionMode | DurabilityLevel | StorageBackend]] = {
    "eviction_policy": EvictionPolicy,
    "compression_mode": CompressionMode,
    "minimum_durability_level": DurabilityLevel,
    "storage_backend": StorageBackend,
}
# RFC 0054 "NumVBuckets": which numbers go with which storage is left to the server.
_INTEGERS_MAX: Mapping[str, int] = {
    "num_replicas": REPLICAS_MAX,
    "num_vbuckets": 2**16,
    "history_retention_bytes": UINT64_MAX,
}

DURABILITY_WORDS: Mapping[DurabilityLevel, str] = {
    DurabilityLevel.NONE: "none",
    DurabilityLevel.MAJORITY: "majority",
    DurabilityLevel.MAJORITY_AND_PERSIST_TO_ACTIVE: "majorityAndPersistActive",
    DurabilityLevel.PERSIST_TO_MAJORITY: "persistToMajority",
}
"""Levels as the management service calls them."""


def _digit(value: bool) -> str:
    return "1" if value else "0"


def _word(value: bool) -> str:
    return "true" if value else "false"


def whole_seconds(duration: Duration) -> str:
    """Return a duration as it travels: a fraction counts as a whole second, for 0 means something else."""
    return str(math.ceil(in_seconds(duration)))


class _Field(msgspec.Struct, frozen=True):
    """How a setting travels in the form."""

    setting: str
    key: str
    text: Callable[..., str] = str
    is_settled: bool = False
    """Whether it is chosen when the bucket is made, and never sent again."""


_FORM = (
    _Field("name", "name", is_settled=True),
    _Field("bucket_type", "bucketType", is_settled=True),
    _Field("ram_quota_mb", "ramQuotaMB"),
    _Field("flush_enabled", "flushEnabled", _digit),
    _Field("num_replicas", "replicaNumber"),
    _Field("replica_indexes", "replicaIndex", _digit, is_settled=True),
    _Field("eviction_policy", "evictionPolicy"),
    _Field("max_expiry", "maxTTL", whole_seconds),
    _Field("compression_mode", "compressionMode"),
    _Field("minimum_durability_level", "durabilityMinLevel", DURABILITY_WORDS.__getitem__),
    _Field("storage_backend", "storageBackend"),
    # RFC 0054 "CreateBucketSettings": an update must not have this at all.
    _Field("conflict_resolution_type", "conflictResolutionType", is_settled=True),
    _Field("num_vbuckets", "numVBuckets", is_settled=True),
    _Field("history_retention_collection_default", "historyRetentionCollectionDefault", _word),
    _Field("history_retention_bytes", "historyRetentionBytes"),
    _Field("history_retention_duration", "historyRetentionSeconds", whole_seconds),
)


def _form(settings: BucketSettings, *, is_new: bool) -> Mapping[str, str]:
    named = {field.name for field in fields(settings)}
    given = [(row, getattr(settings, row.setting)) for row in _FORM if row.setting in named]
    return {row.key: row.text(value) for row, value in given if value is not None and (is_new or not row.is_settled)}


class BucketResult(ServiceResult, frozen=True):
    """One bucket, as the management service knows it."""

    settings: BucketSettings
    nodes: tuple[tuple[str, str], ...] = ()
    """Host and port of each of its nodes, and how the bucket is there, such as ``warmup`` or ``healthy``."""
    capabilities: frozenset[str] = frozenset()
    """What it can do, by the names that configs have for it."""

    @property
    def is_healthy(self) -> bool:
        """Whether all of its nodes are ready to serve it; one without nodes is not."""
        return bool(self.nodes) and not self.unhealthy

    @property
    def unhealthy(self) -> tuple[str, ...]:
        """In words, the nodes that are not ready to serve it."""
        return tuple(f"{one_line(name)}: {one_line(state)}" for name, state in self.nodes if state != "healthy")


class AllBucketsResult(ServiceResult, frozen=True):
    """All buckets that the user may see."""

    buckets: tuple[BucketResult, ...]


class _Quota(msgspec.Struct, frozen=True):
    raw_ram: int = msgspec.field(name="rawRAM")


class _Node(msgspec.Struct, frozen=True):
    hostname: str = "a node"
    status: str = ""


class _Bucket(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    quota: _Quota
    bucket_type: BucketType = BucketType.COUCHBASE
    controllers: dict[str, object] = {}
    replica_number: int | None = None
    replica_index: bool | None = None
    eviction_policy: EvictionPolicy | None = None
    max_ttl: int | None = msgspec.field(name="maxTTL", default=None)
    compression_mode: CompressionMode | None = None
    durability_min_level: str | None = None
    storage_backend: str | None = None
    num_vbuckets: int | None = msgspec.field(name="numVBuckets", default=None)
    history_retention_collection_default: bool | None = None
    history_retention_bytes: int | None = None
    history_retention_seconds: int | None = None
    nodes: list[_Node] = []
    bucket_capabilities: list[str] = []


def _result(found: _Bucket) -> BucketResult:
    levels = {word: level for level, word in DURABILITY_WORDS.items()}
    backends = {backend.value: backend for backend in StorageBackend}
    with reading("bucket"):
        settings = BucketSettings(
            name=found.name,
            ram_quota_mb=found.quota.raw_ram // _MEBIBYTE,
            # RFC 0054 "GetBucket": the server does not say so, but lists where to flush.
            flush_enabled="flush" in found.controllers,
            num_replicas=found.replica_number,
            replica_indexes=found.replica_index,
            bucket_type=found.bucket_type,
            eviction_policy=found.eviction_policy,
            max_expiry=found.max_ttl,
            compression_mode=found.compression_mode,
            minimum_durability_level=levels.get(found.durability_min_level or ""),
            # A bucket without a disk has "undefined".
            storage_backend=backends.get(found.storage_backend or ""),
            num_vbuckets=found.num_vbuckets,
            history_retention_collection_default=found.history_retention_collection_default,
            history_retention_bytes=found.history_retention_bytes,
            history_retention_duration=found.history_retention_seconds,
        )
    nodes = tuple((node.hostname, node.status) for node in found.nodes)
    return BucketResult(settings, nodes, frozenset(found.bucket_capabilities))


class BucketRequest(ManagementRequest, frozen=True):
    """Base of the requests about one bucket."""

    bucket_name: str

    def __post_init__(self) -> None:
        check_bucket_name(self.bucket_name)

    @property
    def target(self) -> str:
        """The bucket."""
        return path(*BUCKETS, self.bucket_name)

    def error_context(self) -> ErrorContext:
        """Return what errors tell of the request: also which bucket it is about."""
        return replace(ManagementRequest.error_context(self), bucket=self.bucket_name)


class _WithSettings(ManagementRequest, frozen=True):
    """Base of the requests that say what a bucket is to be like."""

    method: ClassVar[str] = "POST"

    settings: BucketSettings

    def __post_init__(self) -> None:
        check_type(self.settings, "settings", BucketSettings)

    def error_context(self) -> ErrorContext:
        """Return what errors tell of the request: also which bucket it is about."""
        return replace(ManagementRequest.error_context(self), bucket=self.settings.name)


class CreateBucket(_WithSettings, frozen=True):
    """Make a bucket."""

    name: ClassVar[str] = "create_bucket"

    @property
    def target(self) -> str:
        """All buckets."""
        return path(*BUCKETS)

    def form(self) -> Mapping[str, str]:
        """Return all settings that are given."""
        return _form(self.settings, is_new=True)


class UpdateBucket(_WithSettings, frozen=True):
    """Change a bucket. The server may reset settings that are not given."""

    name: ClassVar[str] = "update_bucket"

    @property
    def target(self) -> str:
        """The bucket."""
        return path(*BUCKETS, self.settings.name)

    def form(self) -> Mapping[str, str]:
        """Return the settings that are given and can be changed."""
        return _form(self.settings, is_new=False)


class DropBucket(BucketRequest, frozen=True):
    """Remove a bucket with all that is in it."""

    name: ClassVar[str] = "drop_bucket"
    method: ClassVar[str] = "DELETE"


class GetBucket(BucketRequest, frozen=True):
    """Read what a bucket is like."""

    name: ClassVar[str] = "get_bucket"

    def decode(self, answer: HttpAnswer) -> BucketResult:
        """Return the bucket."""
        return _result(answer.body_as(_Bucket))


class GetAllBuckets(ManagementRequest, frozen=True):
    """Read what all buckets are like."""

    name: ClassVar[str] = "get_all_buckets"

    @property
    def target(self) -> str:
        """All buckets."""
        return path(*BUCKETS)

    def decode(self, answer: HttpAnswer) -> AllBucketsResult:
        """Return the buckets."""
        return AllBucketsResult(tuple(map(_result, answer.body_as(list[_Bucket]))))


class FlushBucket(BucketRequest, frozen=True):
    """Remove all documents of a bucket, whose settings must allow it."""

    name: ClassVar[str] = "flush_bucket"
    method: ClassVar[str] = "POST"

    @property
    def target(self) -> str:
        """Where the bucket is flushed."""
        return path(*BUCKETS, self.bucket_name, "controller", "doFlush")
