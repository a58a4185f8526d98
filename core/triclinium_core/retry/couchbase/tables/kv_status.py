"""Table of all known key-value statuses, with their exceptions.

A status without a row is *unknown*: the error map of the node decides about it (SDK-RFC 0049 "KV Error Map Handling").
Five statuses have a row, but the error map decides about them as well (decision C13).

Source: kv_engine ``include/mcbp/protocol/status.h``; SDK-RFC 0058; SDK-RFC 0053 "LookupIn", "MutateIn"; decision C13.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Self

from triclinium_core import errors

ErrorClass = type[errors.CouchbaseException]
"""Exception class of RFC 0058."""

_ALIKE: Mapping[str, ErrorClass | None] = {}
"""Value of ``Status.of_operation`` for a status that has the same meaning for all operations."""
_NOT_STORED: Mapping[str, ErrorClass | None] = {
    **dict.fromkeys(("append", "prepend"), errors.DocumentNotFoundException),
    **dict.fromkeys(("increment", "decrement"), errors.TemporaryFailureException),
}
"""Exceptions for NOT_STORED. After ``append`` and ``prepend``, the status means that the document is missing. After a
counter operation, it means that another client has just created the document (decision D25)."""
_WITH_CAS: Mapping[str, ErrorClass | None] = dict.fromkeys(
    ("upsert", "replace", "remove", "append", "prepend", "increment", "decrement", "touch", "unlock", "mutate_in"),
    errors.CasMismatchException,
)
"""Exceptions for KEY_EXISTS. After an operation that may carry a CAS, the status means that the document has another
CAS (SDK-RFC 0058, 9)."""
_FAILED_PATH: Mapping[str, ErrorClass | None] = {"mutate_in": errors.CouchbaseException}
"""Exceptions for the failure of a path. The server applies all paths of a ``mutate_in`` or none. The body of its
response names the path that failed, which determines the exception."""

_ANY: frozenset[str] = frozenset()
_SCAN = frozenset({"range_scan_continue"})
_SUBDOCUMENT = frozenset({"lookup_in", "lookup_in_replica", "mutate_in"})
"""Sub-document operations, which have additional statuses for success."""


@unique
class Status(IntEnum):
    """Status of a key-value response, with the name that the protocol gives it.

    Each row has the code, the exception, exceptions for single operations, the operations that may have this status,
    and whether the error map decides.
    """

    error: ErrorClass | None
    """Exception class; None for a status that is not a failure."""
    of_operation: Mapping[str, ErrorClass | None]
    """Exception classes for operations for which the status has another meaning."""
    only_of: frozenset[str]
    """Operations to which a server may respond with the status; empty for all operations."""
    is_left_to_map: bool
    """Whether the node's error map decides. ``error`` then applies only if the map has no entry for the status."""

    def __new__(
        cls,
        code: int,
        error: ErrorClass | None = None,
        of_operation: Mapping[str, ErrorClass | None] = _ALIKE,
        only_of: frozenset[str] = _ANY,
        is_left_to_map: bool = False,
    ) -> Self:
        """Create the row of a member. Enum calls this method."""
        row = int.__new__(cls, code)
        row._value_ = code
        row.error, row.of_operation, row.only_of = error, of_operation, only_of
        row.is_left_to_map = is_left_to_map
        return row

    # fmt: off
    SUCCESS = 0x00
    KEY_NOT_FOUND = 0x01, errors.DocumentNotFoundException, {"exists": None}
    KEY_EXISTS = 0x02, errors.DocumentExistsException, _WITH_CAS
    TOO_BIG = 0x03, errors.ValueTooLargeException
    INVALID_ARGUMENTS = 0x04, errors.InvalidArgumentException
    NOT_STORED = 0x05, errors.DocumentExistsException, _NOT_STORED
    DELTA_BAD_VALUE = 0x06, errors.DeltaInvalidException
    NOT_MY_VBUCKET = 0x07, errors.CouchbaseException
    NO_BUCKET = 0x08, errors.BucketNotFoundException
    LOCKED = 0x09, errors.DocumentLockedException, {"unlock": errors.CasMismatchException}
    DCP_STREAM_NOT_FOUND = 0x0A, errors.CouchbaseException
    OPAQUE_NO_MATCH = 0x0B, errors.CouchbaseException
    WOULD_THROTTLE = 0x0C, errors.TemporaryFailureException, _ALIKE, _ANY, True
    CONFIG_ONLY = 0x0D, errors.CouchbaseException, _ALIKE, _ANY, True
    NOT_LOCKED = 0x0E, errors.DocumentNotLockedException
    CAS_VALUE_INVALID = 0x0F, errors.InvalidArgumentException
    AUTH_STALE = 0x1F, errors.AuthenticationFailureException
    AUTH_ERROR = 0x20, errors.AuthenticationFailureException
    AUTH_CONTINUE = 0x21, errors.CouchbaseException
    RANGE_ERROR = 0x22, errors.InvalidArgumentException
    ROLLBACK = 0x23, errors.CouchbaseException
    NO_ACCESS = 0x24, errors.AuthenticationFailureException
    NOT_INITIALIZED = 0x25, errors.TemporaryFailureException
    ENCRYPTION_KEY_NOT_AVAILABLE = 0x26, errors.CouchbaseException
    CHECKSUM_MISMATCH = 0x27, errors.CouchbaseException
    EXPIRY_OVERFLOW = 0x28, errors.InvalidArgumentException
    LOCK_EXPIRY_OVERFLOW = 0x29, errors.InvalidArgumentException
    RATE_LIMITED_NETWORK_INGRESS = 0x30, errors.RateLimitedException
    RATE_LIMITED_NETWORK_EGRESS = 0x31, errors.RateLimitedException
    RATE_LIMITED_MAX_CONNECTIONS = 0x32, errors.RateLimitedException
    RATE_LIMITED_MAX_COMMANDS = 0x33, errors.RateLimitedException
    SCOPE_SIZE_LIMIT_EXCEEDED = 0x34, errors.QuotaLimitedException
    BUCKET_SIZE_LIMIT_EXCEEDED = 0x35, errors.QuotaLimitedException
    BUCKET_RESIDENT_RATIO_TOO_LOW = 0x36, errors.QuotaLimitedException
    BUCKET_DATA_SIZE_TOO_BIG = 0x37, errors.QuotaLimitedException
    BUCKET_DISK_SPACE_TOO_LOW = 0x38, errors.QuotaLimitedException
    BUCKET_PAUSED = 0x50, errors.CouchbaseException
    CANCELLED = 0x51, errors.CouchbaseException, _ALIKE, _ANY, True
    UNKNOWN_FRAME_INFO = 0x80, errors.UnsupportedOperationException
    UNKNOWN_COMMAND = 0x81, errors.UnsupportedOperationException
    OUT_OF_MEMORY = 0x82, errors.TemporaryFailureException, _ALIKE, _ANY, True
    NOT_SUPPORTED = 0x83, errors.UnsupportedOperationException
    INTERNAL_ERROR = 0x84, errors.InternalServerFailureException
    BUSY = 0x85, errors.TemporaryFailureException, _ALIKE, _ANY, True
    TEMPORARY_FAILURE = 0x86, errors.TemporaryFailureException
    XATTR_INVALID = 0x87, errors.CouchbaseException
    UNKNOWN_COLLECTION = 0x88, errors.CollectionNotFoundException
    CANNOT_APPLY_MANIFEST = 0x8A, errors.CouchbaseException
    UNKNOWN_SCOPE = 0x8C, errors.ScopeNotFoundException
    DCP_STREAM_ID_INVALID = 0x8D, errors.CouchbaseException
    DURABILITY_INVALID_LEVEL = 0xA0, errors.DurabilityLevelNotAvailableException
    DURABILITY_IMPOSSIBLE = 0xA1, errors.DurabilityImpossibleException
    SYNC_WRITE_IN_PROGRESS = 0xA2, errors.DurableWriteInProgressException
    SYNC_WRITE_AMBIGUOUS = 0xA3, errors.DurabilityAmbiguousException
    SYNC_WRITE_RE_COMMIT_IN_PROGRESS = 0xA4, errors.DurableWriteReCommitInProgressException
    RANGE_SCAN_CANCELLED = 0xA5, errors.RequestCanceledException
    RANGE_SCAN_MORE = 0xA6, None, _ALIKE, _SCAN
    RANGE_SCAN_COMPLETE = 0xA7, None, _ALIKE, _SCAN
    VBUCKET_UUID_NOT_EQUAL = 0xA8, errors.CouchbaseException
    SUBDOC_PATH_NOT_FOUND = 0xC0, errors.PathNotFoundException
    SUBDOC_PATH_MISMATCH = 0xC1, errors.PathMismatchException
    SUBDOC_PATH_INVALID = 0xC2, errors.PathInvalidException
    SUBDOC_PATH_TOO_BIG = 0xC3, errors.PathTooBigException
    SUBDOC_DOCUMENT_TOO_DEEP = 0xC4, errors.PathTooDeepException
    SUBDOC_VALUE_CANNOT_INSERT = 0xC5, errors.ValueInvalidException
    SUBDOC_DOCUMENT_NOT_JSON = 0xC6, errors.DocumentNotJsonException
    SUBDOC_NUMBER_OUT_OF_RANGE = 0xC7, errors.NumberTooBigException
    SUBDOC_DELTA_INVALID = 0xC8, errors.DeltaInvalidException
    SUBDOC_PATH_EXISTS = 0xC9, errors.PathExistsException
    SUBDOC_VALUE_TOO_DEEP = 0xCA, errors.ValueTooDeepException
    SUBDOC_INVALID_COMBO = 0xCB, errors.InvalidArgumentException
    SUBDOC_MULTI_PATH_FAILURE = 0xCC, None, _FAILED_PATH, _SUBDOCUMENT
    SUBDOC_SUCCESS_DELETED = 0xCD, None, _ALIKE, _SUBDOCUMENT
    SUBDOC_XATTR_INVALID_FLAG_COMBO = 0xCE, errors.InvalidArgumentException
    SUBDOC_XATTR_INVALID_KEY_COMBO = 0xCF, errors.XattrInvalidKeyComboException
    SUBDOC_XATTR_UNKNOWN_MACRO = 0xD0, errors.XattrUnknownMacroException
    SUBDOC_XATTR_UNKNOWN_VATTR = 0xD1, errors.XattrUnknownVirtualAttributeException
    SUBDOC_XATTR_CANNOT_MODIFY_VATTR = 0xD2, errors.XattrCannotModifyVirtualAttributeException
    SUBDOC_MULTI_PATH_FAILURE_DELETED = 0xD3, None, _FAILED_PATH, _SUBDOCUMENT
    SUBDOC_INVALID_XATTR_ORDER = 0xD4, errors.InvalidArgumentException
    SUBDOC_XATTR_UNKNOWN_VATTR_MACRO = 0xD5, errors.XattrUnknownMacroException
    SUBDOC_CAN_ONLY_REVIVE_DELETED_DOCUMENTS = 0xD6, errors.DocumentExistsException
    SUBDOC_DELETED_DOCUMENT_CANNOT_HAVE_VALUE = 0xD7, errors.InvalidArgumentException
    SUBDOC_FIELD_NOT_BINARY = 0xD8, errors.DocumentNotJsonException
    # fmt: on

    def fits(self, operation: str) -> bool:
        """Return whether a server may respond to an operation with this status."""
        return not self.only_of or operation in self.only_of


KV_STATUSES: Mapping[int, Status] = {int(status): status for status in Status if not status.is_left_to_map}
"""Known statuses, about which the error map does not decide."""

ERRORS_WITHOUT_A_MAP: Mapping[int, ErrorClass | None] = {
    int(status): status.error for status in Status if status.is_left_to_map
}
"""Exceptions for the five statuses about which the error map decides, if the map has no entry (decision C13)."""


def status_name(status: int) -> str | None:
    """Return the name that the protocol gives a status; None if the status is unknown."""
    try:
        return Status(status).name
    except ValueError:
        return None


OF_A_PATH: Mapping[int, ErrorClass] = {
    # The user may access the document, but not the system attribute at this path.
    Status.NO_ACCESS: errors.XattrNoAccessException,
}
"""Exceptions for statuses that have another meaning for one path than for a complete document."""


@dataclass(frozen=True, slots=True)
class FailedPath:
    """Spec of a sub-document operation that failed. ``index`` is its position in the operation, counted from 0."""

    index: int
    path: str
    status: int

    def __str__(self) -> str:
        name = status_name(self.status) or "an unknown status"
        return f"specs[{self.index}], path {self.path!r}: {name} [0x{self.status:02x}]"

    @property
    def error(self) -> ErrorClass:
        """Exception class for the failure of the path."""
        row = KV_STATUSES.get(self.status)
        return OF_A_PATH.get(self.status) or (row.error if row is not None else None) or errors.CouchbaseException
