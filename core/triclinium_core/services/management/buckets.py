"""Buckets: their settings, and the requests that create, change, read, flush and drop them.

Source: SDK-RFC 0054 "BucketManager", "BucketSettings"; SDK-RFC 0049 makes only GET idempotent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum, StrEnum, unique
from typing import Any, ClassVar

import msgspec

from triclinium_core import checks
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.validation import REPLICAS_MAX, UINT64_MAX, check_bucket_name
from triclinium_core.services.management.management_request import ManagementRequest, reading
from triclinium_core.services.paths import path
from triclinium_core.services.received import Members, body_members, in_one_step, kept_word, members_of, readable
from triclinium_core.services.service_request import HttpResponse, Listing, ServiceResult, Steps, all_steps
from triclinium_core.shown import one_line

BUCKETS = ("pools", "default", "buckets")
EXPIRY_SECONDS_MAX = 2**31 - 1
"""Longest expiry that a server accepts, in seconds."""

_MEBIBYTE = 1024 * 1024


@unique
class BucketType(StrEnum):
    """Type of a bucket. The value is the word on the wire."""

    COUCHBASE = "membase"
    """Documents in memory and on disk."""
    MEMCACHED = "memcached"
    EPHEMERAL = "ephemeral"
    """Documents in memory only."""


@unique
class EvictionPolicy(StrEnum):
    """Policy that selects what a full bucket removes from memory. The value is the word on the wire."""

    FULL = "fullEviction"
    """Evict documents with their keys. For COUCHBASE."""
    VALUE_ONLY = "valueOnly"
    """Evict documents and keep their keys. For COUCHBASE."""
    NOT_RECENTLY_USED = "nruEviction"
    """Drop documents that have not been used recently. For EPHEMERAL."""
    NO_EVICTION = "noEviction"
    """Evict nothing: a full bucket accepts no more documents. For EPHEMERAL."""


@unique
class CompressionMode(StrEnum):
    """Compression of stored documents. The value is the word on the wire."""

    OFF = "off"
    PASSIVE = "passive"
    """Keep compressed documents compressed."""
    ACTIVE = "active"
    """Compress all documents."""


@unique
class StorageBackend(StrEnum):
    """Storage engine of a bucket on disk. The value is the word on the wire."""

    COUCHSTORE = "couchstore"
    MAGMA = "magma"
    """Storage engine that only the Enterprise Edition has."""


@unique
class ConflictResolutionType(StrEnum):
    """Rule for which of two versions wins when clusters replicate to each other. The value is the word on the wire."""

    TIMESTAMP = "lww"
    """The last write wins."""
    SEQUENCE_NUMBER = "seqno"
    """The version with more changes wins."""
    CUSTOM = "custom"
    """Custom rule. Volatile: it exists only in the developer preview of server 7.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketSettings:
    """Settings of a bucket. A setting of None is not sent, and the server chooses.

    Settings from the server may have values unknown to this version: a ``str`` instead of a member of an enum, or a
    number out of range. An update sends such a value as received. The caller cannot set such a value.

    Raises:
        InvalidArgumentException: a setting is invalid by itself. The server checks whether the settings fit together.

    Source: SDK-RFC 0054 "BucketSettings".
    """

    name: str
    ram_quota_mb: int | None
    """Mebibytes of memory on each node. None only in received settings without a readable quota."""
    flush_enabled: bool = False
    num_replicas: int | None = None
    """Number of copies of each document besides the active one."""
    replica_indexes: bool | None = None
    """Whether view indexes have copies. The setting cannot change after the bucket is created."""
    bucket_type: BucketType | str | None = BucketType.COUCHBASE
    """Type of the bucket, which cannot change after the bucket is created."""
    eviction_policy: EvictionPolicy | str | None = None
    max_expiry: checks.Duration | None = None
    """Maximum lifetime of documents, rounded up to whole seconds; 0 for no limit."""
    compression_mode: CompressionMode | str | None = None
    minimum_durability_level: DurabilityLevel | str | None = None
    """Minimum durability of every write."""
    storage_backend: StorageBackend | str | None = None
    num_vbuckets: int | None = None
    """Number of vbuckets, which cannot change after the bucket is created."""
    history_retention_collection_default: bool | None = None
    """Whether new collections keep older versions of their documents. Only MAGMA has history."""
    history_retention_bytes: int | None = None
    """Maximum disk space for older versions, in bytes."""
    history_retention_duration: checks.Duration | None = None
    """Maximum age of older versions, rounded up to whole seconds."""
    received: Mapping[str, object] = field(default_factory=dict, repr=False, compare=False)
    """Settings as received from the server, by name. They are not checked. Empty for the caller's settings."""

    def __post_init__(self) -> None:
        check_bucket_name(self.name, "name")
        checks.check_flag(self.flush_enabled, "flush_enabled")
        checks.check_type(self.received, "received", Mapping)
        for parameter, check in _CHECKS.items():
            value = getattr(self, parameter)
            is_required = parameter in ("ram_quota_mb", "bucket_type")
            if not self._is_received(parameter, value) and (value is not None or is_required):
                check(value, parameter)

    def _is_received(self, parameter: str, value: object) -> bool:
        # Compare the types too: 1 is not a flag, although it equals True.
        known = self.received.get(parameter, self)
        return type(known) is type(value) and known == value


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateBucketSettings(BucketSettings):
    """Settings of a new bucket, including its conflict resolution, which can never change.

    Raises:
        InvalidArgumentException: a setting is invalid, as in ``BucketSettings``.

    Source: SDK-RFC 0054 "CreateBucketSettings".
    """

    conflict_resolution_type: ConflictResolutionType | None = None

    def __post_init__(self) -> None:
        BucketSettings.__post_init__(self)
        if self.conflict_resolution_type is not None:
            checks.check_choice(self.conflict_resolution_type, "conflict_resolution_type", ConflictResolutionType)


def _choice(kind: type[Enum]) -> Callable[[object, str], object]:
    return lambda value, parameter: checks.check_choice(value, parameter, kind)


def _integer(least: int, most: int) -> Callable[[object, str], object]:
    return lambda value, parameter: checks.check_integer(value, parameter, least, most)


def _expiry(value: checks.Duration, parameter: str) -> float:
    return checks.check_duration(value, parameter, most=EXPIRY_SECONDS_MAX)


_CHECKS: Mapping[str, Callable[[Any, str], object]] = {
    "ram_quota_mb": _integer(1, UINT64_MAX),
    "num_replicas": _integer(0, REPLICAS_MAX),
    "replica_indexes": checks.check_flag,
    "bucket_type": _choice(BucketType),
    "eviction_policy": _choice(EvictionPolicy),
    "max_expiry": _expiry,
    "compression_mode": _choice(CompressionMode),
    "minimum_durability_level": _choice(DurabilityLevel),
    "storage_backend": _choice(StorageBackend),
    # RFC 0054 "BucketSettings", NumVBuckets: the server checks which numbers fit which storage.
    "num_vbuckets": _integer(0, 2**16),
    "history_retention_collection_default": checks.check_flag,
    "history_retention_bytes": _integer(0, UINT64_MAX),
    "history_retention_duration": _expiry,
}
"""Check of each setting, for values from the caller."""

DURABILITY_WORDS: Mapping[DurabilityLevel, str] = {
    DurabilityLevel.NONE: "none",
    DurabilityLevel.MAJORITY: "majority",
    DurabilityLevel.MAJORITY_AND_PERSIST_TO_ACTIVE: "majorityAndPersistActive",
    DurabilityLevel.PERSIST_TO_MAJORITY: "persistToMajority",
}
"""Names of the durability levels in the management service."""
_LEVELS: Mapping[str, DurabilityLevel] = {word: level for level, word in DURABILITY_WORDS.items()}


def _digit(value: bool) -> str:
    return "1" if value else "0"


def _word(value: bool) -> str:
    return "true" if value else "false"


def _level_word(level: DurabilityLevel | str) -> str:
    return DURABILITY_WORDS[level] if isinstance(level, DurabilityLevel) else level


def whole_seconds(duration: checks.Duration) -> str:
    """Return a duration in whole seconds as text, rounded up because 0 has another meaning."""
    return str(math.ceil(checks.in_seconds(duration)))


class _Field(msgspec.Struct, frozen=True):
    """Encoding of a setting in the form."""

    setting: str
    key: str
    text: Callable[..., str] = str
    is_settled: bool = False
    """Whether the setting is sent only when the bucket is created."""


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
    _Field("minimum_durability_level", "durabilityMinLevel", _level_word),
    _Field("storage_backend", "storageBackend"),
    # RFC 0054 "CreateBucketSettings": an update must not contain this setting.
    _Field("conflict_resolution_type", "conflictResolutionType", is_settled=True),
    _Field("num_vbuckets", "numVBuckets", is_settled=True),
    _Field("history_retention_collection_default", "historyRetentionCollectionDefault", _word),
    _Field("history_retention_bytes", "historyRetentionBytes"),
    _Field("history_retention_duration", "historyRetentionSeconds", whole_seconds),
)


def _form(settings: BucketSettings, *, is_new: bool) -> Mapping[str, str]:
    named = {each.name for each in fields(settings)}
    given = [(row, getattr(settings, row.setting)) for row in _FORM if row.setting in named]
    return {row.key: row.text(value) for row, value in given if value is not None and (is_new or not row.is_settled)}


class BucketResult(ServiceResult, frozen=True):
    """One bucket, as reported by the management service."""

    settings: BucketSettings
    nodes: tuple[tuple[str, str], ...] = ()
    """Host and port of each node of the bucket, with the bucket's state there, such as ``warmup`` or ``healthy``."""
    capabilities: frozenset[str] = frozenset()
    """Capabilities of the bucket, by their names in cluster configs."""

    @property
    def is_healthy(self) -> bool:
        """Whether the bucket has nodes, and all of them are ready to serve it."""
        return bool(self.nodes) and not self.unhealthy

    @property
    def unhealthy(self) -> tuple[str, ...]:
        """Nodes that are not ready to serve the bucket, each with its state, for messages."""
        return tuple(f"{one_line(name)}: {one_line(state)}" for name, state in self.nodes if state != "healthy")


class AllBucketsResult(Listing, frozen=True):
    """Buckets that are visible to the user."""

    buckets: tuple[BucketResult, ...]


def _result(found: Members) -> BucketResult:
    with reading("bucket"):
        settings = _settings(found)
    nodes = tuple((node.text("hostname") or "a node", node.text("status")) for node in found.objects("nodes"))
    return BucketResult(settings, nodes, frozenset(found.texts("bucketCapabilities")))


def _settings(found: Members) -> BucketSettings:
    quota, storage = found.members("quota").integer("rawRAM"), found.word("storageBackend", StorageBackend)
    level = kept_word(found.get("durabilityMinLevel", str))
    received: dict[str, Any] = {
        "ram_quota_mb": quota // _MEBIBYTE if quota is not None else None,
        "num_replicas": found.integer("replicaNumber"),
        "replica_indexes": found.get("replicaIndex", bool),
        # An old server sends no type for a bucket of the type COUCHBASE.
        "bucket_type": found.word("bucketType", BucketType) if "bucketType" in found.raw else BucketType.COUCHBASE,
        "eviction_policy": found.word("evictionPolicy", EvictionPolicy),
        "max_expiry": found.integer("maxTTL"),
        "compression_mode": found.word("compressionMode", CompressionMode),
        "minimum_durability_level": _LEVELS.get(level or "", level),
        # A bucket that is not stored on disk has "undefined".
        "storage_backend": storage if storage != "undefined" else None,
        "num_vbuckets": found.integer("numVBuckets"),
        "history_retention_collection_default": found.get("historyRetentionCollectionDefault", bool),
        "history_retention_bytes": found.integer("historyRetentionBytes"),
        "history_retention_duration": found.integer("historyRetentionSeconds"),
    }
    return BucketSettings(
        name=found.text("name"),
        # RFC 0054 "GetBucket": the server sends no flag for flushing, but a URL if flushing is enabled.
        flush_enabled="flush" in found.members("controllers").raw,
        received=received,
        **received,
    )


class BucketRequest(ManagementRequest, frozen=True):
    """Base of the requests about one bucket."""

    bucket_name: str

    def __post_init__(self) -> None:
        check_bucket_name(self.bucket_name, "bucket_name")

    @property
    def target(self) -> str:
        """Path of the bucket."""
        return path(*BUCKETS, self.bucket_name)

    def error_context(self) -> ErrorContext:
        """Return the error context of the request, with its bucket."""
        return replace(ManagementRequest.error_context(self), bucket=self.bucket_name)


class _WithSettings(ManagementRequest, frozen=True):
    """Base of the requests with the settings of a bucket."""

    method: ClassVar[str] = "POST"

    settings: BucketSettings

    def __post_init__(self) -> None:
        checks.check_type(self.settings, "settings", BucketSettings)

    def error_context(self) -> ErrorContext:
        """Return the error context of the request, with its bucket."""
        return replace(ManagementRequest.error_context(self), bucket=self.settings.name)


class CreateBucket(_WithSettings, frozen=True):
    """Request that creates a bucket."""

    name: ClassVar[str] = "create_bucket"

    @property
    def target(self) -> str:
        """Path of all buckets."""
        return path(*BUCKETS)

    def form(self) -> Mapping[str, str]:
        """Return all settings that are not None."""
        return _form(self.settings, is_new=True)


class UpdateBucket(_WithSettings, frozen=True):
    """Request that changes a bucket. The server may reset settings that are not sent."""

    name: ClassVar[str] = "update_bucket"

    @property
    def target(self) -> str:
        """Path of the bucket."""
        return path(*BUCKETS, self.settings.name)

    def form(self) -> Mapping[str, str]:
        """Return the settings that are not None and can change."""
        return _form(self.settings, is_new=False)


class DropBucket(BucketRequest, frozen=True):
    """Request that drops a bucket with all its data."""

    name: ClassVar[str] = "drop_bucket"
    method: ClassVar[str] = "DELETE"


class GetBucket(BucketRequest, frozen=True):
    """Request for the settings and state of a bucket."""

    name: ClassVar[str] = "get_bucket"

    def decode(self, answer: HttpResponse) -> BucketResult:
        """Return the bucket in the response."""
        return _result(body_members(answer))


class GetAllBuckets(ManagementRequest, frozen=True):
    """Request for the settings and state of all buckets."""

    name: ClassVar[str] = "get_all_buckets"

    @property
    def target(self) -> str:
        """Path of all buckets."""
        return path(*BUCKETS)

    def decode(self, answer: HttpResponse) -> AllBucketsResult:
        """Return the buckets in the response."""
        return all_steps(self.decode_in_steps(answer))

    def decode_in_steps(self, answer: HttpResponse) -> Steps[AllBucketsResult]:
        """Read the buckets in steps."""
        rows = answer.body_as(list[msgspec.Raw])
        found, unread = yield from readable(rows, in_one_step(lambda row: _result(members_of(row))))
        return AllBucketsResult(found, unread=unread)


class FlushBucket(BucketRequest, frozen=True):
    """Request that removes all documents of a bucket. The bucket's settings must allow it."""

    name: ClassVar[str] = "flush_bucket"
    method: ClassVar[str] = "POST"

    @property
    def target(self) -> str:
        """Path of the command that flushes the bucket."""
        return path(*BUCKETS, self.bucket_name, "controller", "doFlush")
