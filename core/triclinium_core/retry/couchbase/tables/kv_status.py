"""Every KV status we know, with the exception it surfaces as.

A status without a row is *unknown*: the error map of the node that sent it decides (SDK-RFC 0049 "KV Error Map
Handling"). Five statuses have a name but no row on purpose, so that the map decides for them too (decision C13).

Source: kv_engine ``include/mcbp/protocol/status.h``; SDK-RFC 0058; decision C13.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, unique

from triclinium_core import errors
from triclinium_core.errors import CouchbaseException


@unique
class Status(IntEnum):
    """Status of a KV response, by the protocol's name."""

    SUCCESS = 0x00
    KEY_NOT_FOUND = 0x01
    KEY_EXISTS = 0x02
    TOO_BIG = 0x03
    INVALID_ARGUMENTS = 0x04
    NOT_STORED = 0x05
    DELTA_BAD_VALUE = 0x06
    NOT_MY_VBUCKET = 0x07
    NO_BUCKET = 0x08
    LOCKED = 0x09
    DCP_STREAM_NOT_FOUND = 0x0A
    OPAQUE_NO_MATCH = 0x0B
    WOULD_THROTTLE = 0x0C
    CONFIG_ONLY = 0x0D
    NOT_LOCKED = 0x0E
    CAS_VALUE_INVALID = 0x0F
    AUTH_STALE = 0x1F
    AUTH_ERROR = 0x20
    AUTH_CONTINUE = 0x21
    RANGE_ERROR = 0x22
    ROLLBACK = 0x23
    NO_ACCESS = 0x24
    NOT_INITIALIZED = 0x25
    ENCRYPTION_KEY_NOT_AVAILABLE = 0x26
    CHECKSUM_MISMATCH = 0x27
    EXPIRY_OVERFLOW = 0x28
    LOCK_EXPIRY_OVERFLOW = 0x29
    RATE_LIMITED_NETWORK_INGRESS = 0x30
    RATE_LIMITED_NETWORK_EGRESS = 0x31
    RATE_LIMITED_MAX_CONNECTIONS = 0x32
    RATE_LIMITED_MAX_COMMANDS = 0x33
    SCOPE_SIZE_LIMIT_EXCEEDED = 0x34
    BUCKET_SIZE_LIMIT_EXCEEDED = 0x35
    BUCKET_RESIDENT_RATIO_TOO_LOW = 0x36
    BUCKET_DATA_SIZE_TOO_BIG = 0x37
    BUCKET_DISK_SPACE_TOO_LOW = 0x38
    BUCKET_PAUSED = 0x50
    CANCELLED = 0x51
    UNKNOWN_FRAME_INFO = 0x80
    UNKNOWN_COMMAND = 0x81
    OUT_OF_MEMORY = 0x82
    NOT_SUPPORTED = 0x83
    INTERNAL_ERROR = 0x84
    BUSY = 0x85
    TEMPORARY_FAILURE = 0x86
    XATTR_INVALID = 0x87
    UNKNOWN_COLLECTION = 0x88
    CANNOT_APPLY_MANIFEST = 0x8A
    UNKNOWN_SCOPE = 0x8C
    DCP_STREAM_ID_INVALID = 0x8D
    DURABILITY_INVALID_LEVEL = 0xA0
    DURABILITY_IMPOSSIBLE = 0xA1
    SYNC_WRITE_IN_PROGRESS = 0xA2
    SYNC_WRITE_AMBIGUOUS = 0xA3
    SYNC_WRITE_RE_COMMIT_IN_PROGRESS = 0xA4
    RANGE_SCAN_CANCELLED = 0xA5
    RANGE_SCAN_MORE = 0xA6
    RANGE_SCAN_COMPLETE = 0xA7
    VBUCKET_UUID_NOT_EQUAL = 0xA8
    SUBDOC_PATH_NOT_FOUND = 0xC0
    SUBDOC_PATH_MISMATCH = 0xC1
    SUBDOC_PATH_INVALID = 0xC2
    SUBDOC_PATH_TOO_BIG = 0xC3
    SUBDOC_DOCUMENT_TOO_DEEP = 0xC4
    SUBDOC_VALUE_CANNOT_INSERT = 0xC5
    SUBDOC_DOCUMENT_NOT_JSON = 0xC6
    SUBDOC_NUMBER_OUT_OF_RANGE = 0xC7
    SUBDOC_DELTA_INVALID = 0xC8
    SUBDOC_PATH_EXISTS = 0xC9
    SUBDOC_VALUE_TOO_DEEP = 0xCA
    SUBDOC_INVALID_COMBO = 0xCB
    SUBDOC_MULTI_PATH_FAILURE = 0xCC
    SUBDOC_SUCCESS_DELETED = 0xCD
    SUBDOC_XATTR_INVALID_FLAG_COMBO = 0xCE
    SUBDOC_XATTR_INVALID_KEY_COMBO = 0xCF
    SUBDOC_XATTR_UNKNOWN_MACRO = 0xD0
    SUBDOC_XATTR_UNKNOWN_VATTR = 0xD1
    SUBDOC_XATTR_CANNOT_MODIFY_VATTR = 0xD2
    SUBDOC_MULTI_PATH_FAILURE_DELETED = 0xD3
    SUBDOC_INVALID_XATTR_ORDER = 0xD4
    SUBDOC_XATTR_UNKNOWN_VATTR_MACRO = 0xD5
    SUBDOC_CAN_ONLY_REVIVE_DELETED_DOCUMENTS = 0xD6
    SUBDOC_DELETED_DOCUMENT_CANNOT_HAVE_VALUE = 0xD7
    SUBDOC_FIELD_NOT_BINARY = 0xD8


ErrorClass = type[CouchbaseException]
"""What a row names: a class of the RFC 0058 tree."""


@dataclass(frozen=True, slots=True)
class StatusRow:
    """One status: the exception it surfaces as, and where single operations say something else.

    An error of None means that the status is no failure.
    """

    status: Status
    error: ErrorClass | None
    of_operation: Mapping[str, ErrorClass | None] = field(default_factory=dict)
    only_of: frozenset[str] = frozenset()
    """The operations that it can answer at all; empty for all."""

    def error_of(self, operation: str) -> ErrorClass | None:
        """Return the exception that it surfaces as for an operation."""
        return self.of_operation.get(operation, self.error)

    def fits(self, operation: str) -> bool:
        """Tell whether a server may answer an operation with it."""
        return not self.only_of or operation in self.only_of


def _rows() -> Iterable[StatusRow]:
    e, s, row = errors, Status, StatusRow
    # What is added to must be there. A counter that was to be created was created by somebody else (decision D25).
    not_stored: dict[str, ErrorClass | None] = {
        **dict.fromkeys(("append", "prepend"), e.DocumentNotFoundException),
        **dict.fromkeys(("increment", "decrement"), e.TemporaryFailureException),
    }
    # SDK-RFC 0058, 9: KEY_EXISTS means another CAS to every operation that may carry one.
    with_cas = dict.fromkeys(
        ("upsert", "replace", "remove", "append", "prepend", "increment", "decrement", "touch", "unlock", "mutate_in"),
        e.CasMismatchException,
    )
    # Successes of a kind that other operations do not have.
    scan = frozenset({"range_scan_continue"})
    subdocument = frozenset({"lookup_in", "lookup_in_replica", "mutate_in"})
    # A mutation is applied whole or not at all; the body tells which path failed, and so what it surfaces as.
    failed_path = {"mutate_in": e.CouchbaseException}
    # fmt: off
    yield row(s.SUCCESS, None)
    yield row(s.KEY_NOT_FOUND, e.DocumentNotFoundException, {"exists": None})
    yield row(s.KEY_EXISTS, e.DocumentExistsException, with_cas)
    yield row(s.TOO_BIG, e.ValueTooLargeException)
    yield row(s.INVALID_ARGUMENTS, e.InvalidArgumentException)
    yield row(s.NOT_STORED, e.DocumentExistsException, not_stored)
    yield row(s.DELTA_BAD_VALUE, e.DeltaInvalidException)
    yield row(s.NOT_MY_VBUCKET, e.CouchbaseException)
    yield row(s.NO_BUCKET, e.BucketNotFoundException)
    yield row(s.LOCKED, e.DocumentLockedException, {"unlock": e.CasMismatchException})
    yield row(s.DCP_STREAM_NOT_FOUND, e.CouchbaseException)
    yield row(s.OPAQUE_NO_MATCH, e.CouchbaseException)
    yield row(s.NOT_LOCKED, e.DocumentNotLockedException)
    yield row(s.CAS_VALUE_INVALID, e.InvalidArgumentException)
    yield row(s.AUTH_STALE, e.AuthenticationFailureException)
    yield row(s.AUTH_ERROR, e.AuthenticationFailureException)
    yield row(s.AUTH_CONTINUE, e.CouchbaseException)
    yield row(s.RANGE_ERROR, e.InvalidArgumentException)
    yield row(s.ROLLBACK, e.CouchbaseException)
    yield row(s.NO_ACCESS, e.AuthenticationFailureException)
    yield row(s.NOT_INITIALIZED, e.TemporaryFailureException)
    yield row(s.ENCRYPTION_KEY_NOT_AVAILABLE, e.CouchbaseException)
    yield row(s.CHECKSUM_MISMATCH, e.CouchbaseException)
    yield row(s.EXPIRY_OVERFLOW, e.InvalidArgumentException)
    yield row(s.LOCK_EXPIRY_OVERFLOW, e.InvalidArgumentException)
    yield row(s.RATE_LIMITED_NETWORK_INGRESS, e.RateLimitedException)
    yield row(s.RATE_LIMITED_NETWORK_EGRESS, e.RateLimitedException)
    yield row(s.RATE_LIMITED_MAX_CONNECTIONS, e.RateLimitedException)
    yield row(s.RATE_LIMITED_MAX_COMMANDS, e.RateLimitedException)
    yield row(s.SCOPE_SIZE_LIMIT_EXCEEDED, e.QuotaLimitedException)
    yield row(s.BUCKET_SIZE_LIMIT_EXCEEDED, e.QuotaLimitedException)
    yield row(s.BUCKET_RESIDENT_RATIO_TOO_LOW, e.QuotaLimitedException)
    yield row(s.BUCKET_DATA_SIZE_TOO_BIG, e.QuotaLimitedException)
    yield row(s.BUCKET_DISK_SPACE_TOO_LOW, e.QuotaLimitedException)
    yield row(s.BUCKET_PAUSED, e.CouchbaseException)
    yield row(s.UNKNOWN_FRAME_INFO, e.UnsupportedOperationException)
    yield row(s.UNKNOWN_COMMAND, e.UnsupportedOperationException)
    yield row(s.NOT_SUPPORTED, e.UnsupportedOperationException)
    yield row(s.INTERNAL_ERROR, e.InternalServerFailureException)
    yield row(s.TEMPORARY_FAILURE, e.TemporaryFailureException)
    yield row(s.XATTR_INVALID, e.CouchbaseException)
    yield row(s.UNKNOWN_COLLECTION, e.CollectionNotFoundException)
    yield row(s.CANNOT_APPLY_MANIFEST, e.CouchbaseException)
    yield row(s.UNKNOWN_SCOPE, e.ScopeNotFoundException)
    yield row(s.DCP_STREAM_ID_INVALID, e.CouchbaseException)
    yield row(s.DURABILITY_INVALID_LEVEL, e.DurabilityLevelNotAvailableException)
    yield row(s.DURABILITY_IMPOSSIBLE, e.DurabilityImpossibleException)
    yield row(s.SYNC_WRITE_IN_PROGRESS, e.DurableWriteInProgressException)
    yield row(s.SYNC_WRITE_AMBIGUOUS, e.DurabilityAmbiguousException)
    yield row(s.SYNC_WRITE_RE_COMMIT_IN_PROGRESS, e.DurableWriteReCommitInProgressException)
    yield row(s.RANGE_SCAN_CANCELLED, e.RequestCanceledException)
    yield row(s.RANGE_SCAN_MORE, None, only_of=scan)
    yield row(s.RANGE_SCAN_COMPLETE, None, only_of=scan)
    yield row(s.VBUCKET_UUID_NOT_EQUAL, e.CouchbaseException)
    yield row(s.SUBDOC_PATH_NOT_FOUND, e.PathNotFoundException)
    yield row(s.SUBDOC_PATH_MISMATCH, e.PathMismatchException)
    yield row(s.SUBDOC_PATH_INVALID, e.PathInvalidException)
    yield row(s.SUBDOC_PATH_TOO_BIG, e.PathTooBigException)
    yield row(s.SUBDOC_DOCUMENT_TOO_DEEP, e.PathTooDeepException)
    yield row(s.SUBDOC_VALUE_CANNOT_INSERT, e.ValueInvalidException)
    yield row(s.SUBDOC_DOCUMENT_NOT_JSON, e.DocumentNotJsonException)
    yield row(s.SUBDOC_NUMBER_OUT_OF_RANGE, e.NumberTooBigException)
    yield row(s.SUBDOC_DELTA_INVALID, e.DeltaInvalidException)
    yield row(s.SUBDOC_PATH_EXISTS, e.PathExistsException)
    yield row(s.SUBDOC_VALUE_TOO_DEEP, e.ValueTooDeepException)
    yield row(s.SUBDOC_INVALID_COMBO, e.InvalidArgumentException)
    yield row(s.SUBDOC_MULTI_PATH_FAILURE, None, failed_path, subdocument)
    yield row(s.SUBDOC_SUCCESS_DELETED, None, only_of=subdocument)
    yield row(s.SUBDOC_XATTR_INVALID_FLAG_COMBO, e.InvalidArgumentException)
    yield row(s.SUBDOC_XATTR_INVALID_KEY_COMBO, e.XattrInvalidKeyComboException)
    yield row(s.SUBDOC_XATTR_UNKNOWN_MACRO, e.XattrUnknownMacroException)
    yield row(s.SUBDOC_XATTR_UNKNOWN_VATTR, e.XattrUnknownVirtualAttributeException)
    yield row(s.SUBDOC_XATTR_CANNOT_MODIFY_VATTR, e.XattrCannotModifyVirtualAttributeException)
    yield row(s.SUBDOC_MULTI_PATH_FAILURE_DELETED, None, failed_path, subdocument)
    yield row(s.SUBDOC_INVALID_XATTR_ORDER, e.InvalidArgumentException)
    yield row(s.SUBDOC_XATTR_UNKNOWN_VATTR_MACRO, e.XattrUnknownMacroException)
    yield row(s.SUBDOC_CAN_ONLY_REVIVE_DELETED_DOCUMENTS, e.DocumentExistsException)
    yield row(s.SUBDOC_DELETED_DOCUMENT_CANNOT_HAVE_VALUE, e.InvalidArgumentException)
    yield row(s.SUBDOC_FIELD_NOT_BINARY, e.DocumentNotJsonException)
    # fmt: on


def index_rows(rows: Iterable[StatusRow]) -> dict[int, StatusRow]:
    """Return the rows by status.

    Raises:
        ValueError: two rows describe the same status.
    """
    index: dict[int, StatusRow] = {}
    for row in rows:
        if row.status in index:
            raise ValueError(f"two rows for status 0x{row.status:02x}")
        index[int(row.status)] = row
    return index


KV_STATUSES: dict[int, StatusRow] = index_rows(_rows())

ERRORS_WITHOUT_A_MAP: dict[int, ErrorClass] = {
    Status.WOULD_THROTTLE: errors.TemporaryFailureException,
    Status.CONFIG_ONLY: errors.CouchbaseException,
    Status.CANCELLED: errors.CouchbaseException,
    Status.OUT_OF_MEMORY: errors.TemporaryFailureException,
    Status.BUSY: errors.TemporaryFailureException,
}
"""What the five statuses that are left to the error map surface as when the node has no entry (decision C13)."""


def status_name(status: int) -> str | None:
    """Return the protocol's name of a status, or None for one that the protocol did not have when this was written."""
    try:
        return Status(status).name
    except ValueError:
        return None
