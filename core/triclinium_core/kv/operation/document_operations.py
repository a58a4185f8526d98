"""Operations on documents. Their constructors check the arguments.

Source: SDK-RFC 0053; kv_engine ``docs/BinaryProtocol.md``.
"""

from __future__ import annotations

import math
from typing import ClassVar

import msgspec

from triclinium_core.checks import check_flag, check_integer
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.kv.operation import validation
from triclinium_core.kv.operation.durability import DurabilityLevel, check_durability
from triclinium_core.kv.operation.results import Cas
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.kv.topology.capabilities import BucketCapability
from triclinium_core.kv.wire.constants import KEY_SIZE_MAX_IN_COLLECTION, VALUE_SIZE_MAX, Opcode
from triclinium_core.retry.couchbase import IDEMPOTENT_KV_OPERATIONS, Service
from triclinium_core.shown import shown
from triclinium_core.transcoding.transcoder import JsonTranscoder, Transcoder

JSON_TRANSCODER = JsonTranscoder()


class Keyspace(msgspec.Struct, frozen=True, cache_hash=True):
    """Bucket, scope and collection. ``bucket`` may be None only over ``memcached://`` and in NOOPs.

    Raises:
        InvalidArgumentException: a name is invalid.
    """

    bucket: str | None
    scope: str = validation.DEFAULT_NAME
    collection: str = validation.DEFAULT_NAME

    def __post_init__(self) -> None:
        if self.bucket is not None:
            validation.check_bucket_name(self.bucket)
        validation.check_name(self.scope, "scope")
        validation.check_name(self.collection, "collection")

    @property
    def is_default_collection(self) -> bool:
        """Whether this is the default collection. Every new bucket has one, with the id 0."""
        return self.scope == validation.DEFAULT_NAME and self.collection == validation.DEFAULT_NAME


class Operation(msgspec.Struct, frozen=True, gc=False):
    """Base of all operations. The constructors raise InvalidArgumentException if an argument is invalid.

    ``name`` is the operation's name in tables, logs and errors. ``opcode`` is its number on the wire. ``capability`` is
    the capability that the bucket's config must list, or None. ``is_for_active_copy`` is True if the operation
    addresses the active copy of one document. ``is_scan`` is True if the operation opens or reads a range scan, which
    has a separate timeout. ``is_awaited`` is True if a caller waits for the result. ``key`` is empty for an operation
    without a document. ``durability`` is ``DurabilityLevel.NONE`` for an operation that cannot be durable.
    ``preserve_expiry`` is True if the document keeps its expiry. ``encode_seconds`` is the time that encoding the
    payload took, or 0.0 if this time was not measured.
    """

    name: ClassVar[str] = ""
    service: ClassVar[Service] = Service.KV
    opcode: ClassVar[Opcode]
    capability: ClassVar[BucketCapability | None] = None
    is_for_active_copy: ClassVar[bool] = False
    is_scan: ClassVar[bool] = False
    is_awaited: ClassVar[bool] = True
    key: ClassVar[str] = ""
    durability: ClassVar[DurabilityLevel] = DurabilityLevel.NONE
    preserve_expiry: ClassVar[bool] = False
    encode_seconds: ClassVar[float] = 0.0

    keyspace: Keyspace

    def __post_init__(self) -> None:
        if not isinstance(self.keyspace, Keyspace):
            raise InvalidArgumentException(f"keyspace={shown(self.keyspace)} must be a Keyspace", parameter="keyspace")

    @property
    def copy(self) -> int:
        """Number of the addressed copy of the document: 0 for the active copy, 1 for the first replica and so on."""
        return 0

    @property
    def idempotent(self) -> bool:
        """Whether the client may send the operation again at any stage."""
        return self.name in IDEMPOTENT_KV_OPERATIONS


class Noop(Operation, frozen=True, gc=False):
    """Request without effect, whose response shows that the client has a ready connection."""

    name: ClassVar[str] = "noop"
    opcode: ClassVar[Opcode] = Opcode.NOOP


class DocumentOperation(Operation, frozen=True, gc=False):
    """Base of the operations on one document."""

    is_for_active_copy: ClassVar[bool] = True

    key: str  # type: ignore[misc]  # the base has the value for operations without a document

    def __post_init__(self) -> None:
        key = self.key
        if (
            type(key) is not str
            or not (key.isascii() and 0 < len(key) <= KEY_SIZE_MAX_IN_COLLECTION)
            or type(self.keyspace) is not Keyspace
        ):
            # Run the full checks only if a quick check fails: for every key, they would add three calls (``python -m
            # tests.bench --only calls``) and 2700 instructions (callgrind) to a get.
            Operation.__post_init__(self)
            validation.check_key(key, in_default_collection=self.keyspace.is_default_collection)


class Get(DocumentOperation, frozen=True, gc=False):
    """Read a document."""

    name: ClassVar[str] = "get"
    opcode: ClassVar[Opcode] = Opcode.GET

    transcoder: Transcoder = JSON_TRANSCODER

    def __post_init__(self) -> None:
        DocumentOperation.__post_init__(self)
        if self.transcoder is not JSON_TRANSCODER:
            validation.check_transcoder(self.transcoder)


class GetReplica(DocumentOperation, frozen=True, gc=False):
    """Read a replica of a document, by default the first replica."""

    name: ClassVar[str] = "get_replica"
    opcode: ClassVar[Opcode] = Opcode.GET_REPLICA
    is_for_active_copy: ClassVar[bool] = False

    replica: int = 1
    transcoder: Transcoder = JSON_TRANSCODER

    def __post_init__(self) -> None:
        DocumentOperation.__post_init__(self)
        check_integer(self.replica, "replica", 1, validation.REPLICAS_MAX)
        validation.check_transcoder(self.transcoder)

    @property
    def copy(self) -> int:
        """Number of the replica."""
        return self.replica


class Exists(DocumentOperation, frozen=True, gc=False):
    """Check whether a document exists."""

    name: ClassVar[str] = "exists"
    opcode: ClassVar[Opcode] = Opcode.GET_META


class GetAndTouch(DocumentOperation, frozen=True, gc=False):
    """Read a document and give it a new expiry, encoded by ``encode_expiry``."""

    name: ClassVar[str] = "get_and_touch"
    opcode: ClassVar[Opcode] = Opcode.GET_AND_TOUCH

    expiry: int
    transcoder: Transcoder = JSON_TRANSCODER

    def __post_init__(self) -> None:
        DocumentOperation.__post_init__(self)
        check_integer(self.expiry, "expiry", 0, UINT32_MAX)
        validation.check_transcoder(self.transcoder)


class GetAndLock(DocumentOperation, frozen=True, gc=False):
    """Read a document and lock it for ``lock_time`` seconds."""

    name: ClassVar[str] = "get_and_lock"
    opcode: ClassVar[Opcode] = Opcode.GET_AND_LOCK

    lock_time: int = 15
    transcoder: Transcoder = JSON_TRANSCODER

    def __post_init__(self) -> None:
        DocumentOperation.__post_init__(self)
        check_integer(self.lock_time, "lock_time", 1, validation.LOCK_TIME_MAX)
        validation.check_transcoder(self.transcoder)


class Unlock(DocumentOperation, frozen=True, gc=False):
    """Release the lock of a document. ``cas`` is the CAS that ``GetAndLock`` returned."""

    name: ClassVar[str] = "unlock"
    opcode: ClassVar[Opcode] = Opcode.UNLOCK

    cas: Cas

    def __post_init__(self) -> None:
        DocumentOperation.__post_init__(self)
        check_integer(self.cas, "cas", 1, validation.UINT64_MAX)


class Touch(DocumentOperation, frozen=True, gc=False):
    """Give a document a new expiry, encoded by ``encode_expiry``."""

    name: ClassVar[str] = "touch"
    opcode: ClassVar[Opcode] = Opcode.TOUCH

    expiry: int

    def __post_init__(self) -> None:
        DocumentOperation.__post_init__(self)
        check_integer(self.expiry, "expiry", 0, UINT32_MAX)


class Mutation(DocumentOperation, frozen=True, gc=False, kw_only=True):
    """Base of the operations that change a document and can be durable."""

    durability: DurabilityLevel = DurabilityLevel.NONE  # type: ignore[misc]  # as with the key
    encode_seconds: float = 0.0  # type: ignore[misc]  # as with the key

    def __post_init__(self) -> None:
        DocumentOperation.__post_init__(self)
        if type(self.durability) is not DurabilityLevel:
            check_durability(self.durability)
        if type(self.encode_seconds) is not float or not 0.0 <= self.encode_seconds < math.inf:
            validation.check_encode_seconds(self.encode_seconds)


class Remove(Mutation, frozen=True, gc=False):
    """Delete a document. A ``cas`` of 0 matches any version."""

    name: ClassVar[str] = "remove"
    opcode: ClassVar[Opcode] = Opcode.DELETE

    cas: Cas = Cas(0)

    def __post_init__(self) -> None:
        Mutation.__post_init__(self)
        check_integer(self.cas, "cas", 0, validation.UINT64_MAX)


class Store(Mutation, frozen=True, gc=False):
    """Base of the operations that write a complete document. Only ``Replace`` accepts a ``cas``."""

    cas: ClassVar[Cas] = Cas(0)

    value: bytes
    flags: int
    expiry: int = 0

    def __post_init__(self) -> None:
        Mutation.__post_init__(self)
        value, flags, expiry = self.value, self.flags, self.expiry
        if type(value) is not bytes or len(value) > VALUE_SIZE_MAX:
            validation.check_value(value)
        if type(flags) is not int or not 0 <= flags <= UINT32_MAX:
            check_integer(flags, "flags", 0, UINT32_MAX)
        if type(expiry) is not int or not 0 <= expiry <= UINT32_MAX:
            check_integer(expiry, "expiry", 0, UINT32_MAX)
        if self.preserve_expiry is not False:
            check_flag(self.preserve_expiry, "preserve_expiry")


class Insert(Store, frozen=True, gc=False):
    """Create a document that must not exist."""

    name: ClassVar[str] = "insert"
    opcode: ClassVar[Opcode] = Opcode.ADD


class Upsert(Store, frozen=True, gc=False):
    """Create a document, or replace an existing one."""

    name: ClassVar[str] = "upsert"
    opcode: ClassVar[Opcode] = Opcode.SET

    preserve_expiry: bool = False  # type: ignore[misc]  # as with the key


class Replace(Store, frozen=True, gc=False):
    """Replace a document that must exist. A ``cas`` of 0 matches any version."""

    name: ClassVar[str] = "replace"
    opcode: ClassVar[Opcode] = Opcode.REPLACE

    preserve_expiry: bool = False  # type: ignore[misc]  # as with the key
    cas: Cas = Cas(0)  # type: ignore[misc]  # as with the key

    def __post_init__(self) -> None:
        Store.__post_init__(self)
        check_integer(self.cas, "cas", 0, validation.UINT64_MAX)


class Concatenate(Mutation, frozen=True, gc=False):
    """Base of the operations that add bytes to a document that must exist."""

    value: bytes
    cas: Cas = Cas(0)

    def __post_init__(self) -> None:
        Mutation.__post_init__(self)
        validation.check_value(self.value)
        check_integer(self.cas, "cas", 0, validation.UINT64_MAX)


class Append(Concatenate, frozen=True, gc=False):
    """Add bytes at the end of a document that must exist."""

    name: ClassVar[str] = "append"
    opcode: ClassVar[Opcode] = Opcode.APPEND


class Prepend(Concatenate, frozen=True, gc=False):
    """Add bytes at the beginning of a document that must exist."""

    name: ClassVar[str] = "prepend"
    opcode: ClassVar[Opcode] = Opcode.PREPEND


class Count(Mutation, frozen=True, gc=False):
    """Base of the counter operations. Without ``initial``, the document must exist."""

    delta: int = 1
    initial: int | None = None
    expiry: int = 0

    def __post_init__(self) -> None:
        Mutation.__post_init__(self)
        check_integer(self.delta, "delta", 0, validation.UINT64_MAX)
        if self.initial is not None:
            check_integer(self.initial, "initial", 0, validation.UINT64_MAX)
        check_integer(self.expiry, "expiry", 0, UINT32_MAX - 1)


class Increment(Count, frozen=True, gc=False):
    """Add to a counter. The counter wraps around at 2**64."""

    name: ClassVar[str] = "increment"
    opcode: ClassVar[Opcode] = Opcode.INCREMENT


class Decrement(Count, frozen=True, gc=False):
    """Subtract from a counter. The counter stops at 0."""

    name: ClassVar[str] = "decrement"
    opcode: ClassVar[Opcode] = Opcode.DECREMENT
