"""KV statuses and their exceptions, compared with the list of the protocol and SDK-RFC 0058."""

from __future__ import annotations

import pytest

from tests.core.retry.couchbase.doctored import import_with
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.couchbase import KV_STATUSES, FailedPath, Status, at_path, status_name
from triclinium_core.retry.couchbase.failures import surfaced
from triclinium_core.retry.couchbase.tables import kv_status

NO_FAILURE = None

STATUSES = {
    0x00: ("SUCCESS", NO_FAILURE),
    0x01: ("KEY_NOT_FOUND", "DocumentNotFound"),
    0x02: ("KEY_EXISTS", "DocumentExists"),
    0x03: ("TOO_BIG", "ValueTooLarge"),
    0x04: ("INVALID_ARGUMENTS", "InvalidArgument"),
    0x05: ("NOT_STORED", "DocumentExists"),
    0x06: ("DELTA_BAD_VALUE", "DeltaInvalid"),
    0x07: ("NOT_MY_VBUCKET", "Couchbase"),
    0x08: ("NO_BUCKET", "BucketNotFound"),
    0x09: ("LOCKED", "DocumentLocked"),
    0x0A: ("DCP_STREAM_NOT_FOUND", "Couchbase"),
    0x0B: ("OPAQUE_NO_MATCH", "Couchbase"),
    0x0E: ("NOT_LOCKED", "DocumentNotLocked"),
    0x0F: ("CAS_VALUE_INVALID", "InvalidArgument"),
    0x1F: ("AUTH_STALE", "AuthenticationFailure"),
    0x20: ("AUTH_ERROR", "AuthenticationFailure"),
    0x21: ("AUTH_CONTINUE", "Couchbase"),
    0x22: ("RANGE_ERROR", "InvalidArgument"),
    0x23: ("ROLLBACK", "Couchbase"),
    0x24: ("NO_ACCESS", "AuthenticationFailure"),
    0x25: ("NOT_INITIALIZED", "TemporaryFailure"),
    0x26: ("ENCRYPTION_KEY_NOT_AVAILABLE", "Couchbase"),
    0x27: ("CHECKSUM_MISMATCH", "Couchbase"),
    0x28: ("EXPIRY_OVERFLOW", "InvalidArgument"),
    0x29: ("LOCK_EXPIRY_OVERFLOW", "InvalidArgument"),
    0x30: ("RATE_LIMITED_NETWORK_INGRESS", "RateLimited"),
    0x31: ("RATE_LIMITED_NETWORK_EGRESS", "RateLimited"),
    0x32: ("RATE_LIMITED_MAX_CONNECTIONS", "RateLimited"),
    0x33: ("RATE_LIMITED_MAX_COMMANDS", "RateLimited"),
    0x34: ("SCOPE_SIZE_LIMIT_EXCEEDED", "QuotaLimited"),
    0x35: ("BUCKET_SIZE_LIMIT_EXCEEDED", "QuotaLimited"),
    0x36: ("BUCKET_RESIDENT_RATIO_TOO_LOW", "QuotaLimited"),
    0x37: ("BUCKET_DATA_SIZE_TOO_BIG", "QuotaLimited"),
    0x38: ("BUCKET_DISK_SPACE_TOO_LOW", "QuotaLimited"),
    0x50: ("BUCKET_PAUSED", "Couchbase"),
    0x80: ("UNKNOWN_FRAME_INFO", "UnsupportedOperation"),
    0x81: ("UNKNOWN_COMMAND", "UnsupportedOperation"),
    0x83: ("NOT_SUPPORTED", "UnsupportedOperation"),
    0x84: ("INTERNAL_ERROR", "InternalServerFailure"),
    0x86: ("TEMPORARY_FAILURE", "TemporaryFailure"),
    0x87: ("XATTR_INVALID", "Couchbase"),
    0x88: ("UNKNOWN_COLLECTION", "CollectionNotFound"),
    0x8A: ("CANNOT_APPLY_MANIFEST", "Couchbase"),
    0x8C: ("UNKNOWN_SCOPE", "ScopeNotFound"),
    0x8D: ("DCP_STREAM_ID_INVALID", "Couchbase"),
    0xA0: ("DURABILITY_INVALID_LEVEL", "DurabilityLevelNotAvailable"),
    0xA1: ("DURABILITY_IMPOSSIBLE", "DurabilityImpossible"),
    0xA2: ("SYNC_WRITE_IN_PROGRESS", "DurableWriteInProgress"),
    0xA3: ("SYNC_WRITE_AMBIGUOUS", "DurabilityAmbiguous"),
    0xA4: ("SYNC_WRITE_RE_COMMIT_IN_PROGRESS", "DurableWriteReCommitInProgress"),
    0xA5: ("RANGE_SCAN_CANCELLED", "RequestCanceled"),
    0xA6: ("RANGE_SCAN_MORE", NO_FAILURE),
    0xA7: ("RANGE_SCAN_COMPLETE", NO_FAILURE),
    0xA8: ("VBUCKET_UUID_NOT_EQUAL", "Couchbase"),
    0xC0: ("SUBDOC_PATH_NOT_FOUND", "PathNotFound"),
    0xC1: ("SUBDOC_PATH_MISMATCH", "PathMismatch"),
    0xC2: ("SUBDOC_PATH_INVALID", "PathInvalid"),
    0xC3: ("SUBDOC_PATH_TOO_BIG", "PathTooBig"),
    0xC4: ("SUBDOC_DOCUMENT_TOO_DEEP", "PathTooDeep"),
    0xC5: ("SUBDOC_VALUE_CANNOT_INSERT", "ValueInvalid"),
    0xC6: ("SUBDOC_DOCUMENT_NOT_JSON", "DocumentNotJson"),
    0xC7: ("SUBDOC_NUMBER_OUT_OF_RANGE", "NumberTooBig"),
    0xC8: ("SUBDOC_DELTA_INVALID", "DeltaInvalid"),
    0xC9: ("SUBDOC_PATH_EXISTS", "PathExists"),
    0xCA: ("SUBDOC_VALUE_TOO_DEEP", "ValueTooDeep"),
    0xCB: ("SUBDOC_INVALID_COMBO", "InvalidArgument"),
    0xCC: ("SUBDOC_MULTI_PATH_FAILURE", NO_FAILURE),
    0xCD: ("SUBDOC_SUCCESS_DELETED", NO_FAILURE),
    0xCE: ("SUBDOC_XATTR_INVALID_FLAG_COMBO", "InvalidArgument"),
    0xCF: ("SUBDOC_XATTR_INVALID_KEY_COMBO", "XattrInvalidKeyCombo"),
    0xD0: ("SUBDOC_XATTR_UNKNOWN_MACRO", "XattrUnknownMacro"),
    0xD1: ("SUBDOC_XATTR_UNKNOWN_VATTR", "XattrUnknownVirtualAttribute"),
    0xD2: ("SUBDOC_XATTR_CANNOT_MODIFY_VATTR", "XattrCannotModifyVirtualAttribute"),
    0xD3: ("SUBDOC_MULTI_PATH_FAILURE_DELETED", NO_FAILURE),
    0xD4: ("SUBDOC_INVALID_XATTR_ORDER", "InvalidArgument"),
    0xD5: ("SUBDOC_XATTR_UNKNOWN_VATTR_MACRO", "XattrUnknownMacro"),
    0xD6: ("SUBDOC_CAN_ONLY_REVIVE_DELETED_DOCUMENTS", "DocumentExists"),
    0xD7: ("SUBDOC_DELETED_DOCUMENT_CANNOT_HAVE_VALUE", "InvalidArgument"),
    0xD8: ("SUBDOC_FIELD_NOT_BINARY", "DocumentNotJson"),
}
"""Statuses by number, each with its name and the name of its exception class without the suffix."""

LEFT_TO_THE_MAP = {
    0x0C: ("WOULD_THROTTLE", "TemporaryFailure"),
    0x0D: ("CONFIG_ONLY", "Couchbase"),
    0x51: ("CANCELLED", "Couchbase"),
    0x82: ("OUT_OF_MEMORY", "TemporaryFailure"),
    0x85: ("BUSY", "TemporaryFailure"),
}
"""Named statuses that the tables leave to the error map (decision C13), with their class if the node sent no map."""

OF_OPERATION: dict[int, dict[str, str | None]] = {
    0x01: {"exists": None},
    0x02: dict.fromkeys(
        ["upsert", "replace", "remove", "append", "prepend", "increment", "decrement", "touch", "unlock", "mutate_in"],
        "CasMismatch",
    ),
    0x05: {
        **dict.fromkeys(["append", "prepend"], "DocumentNotFound"),
        **dict.fromkeys(["increment", "decrement"], "TemporaryFailure"),
    },
    0x09: {"unlock": "CasMismatch"},
    0xCC: {"mutate_in": "Couchbase"},
    0xD3: {"mutate_in": "Couchbase"},
}
"""Exception classes that apply to some operations only, for example by decision C11 (locks) and D25 (counters)."""

ONLY_OF = {
    **dict.fromkeys((0xA6, 0xA7), frozenset({"range_scan_continue"})),
    **dict.fromkeys((0xCC, 0xCD, 0xD3), frozenset({"lookup_in", "lookup_in_replica", "mutate_in"})),
}
"""For each status that only some operations can have, these operations."""


def error_class(name: str | None) -> type[errors.CouchbaseException] | None:
    """Return the exception class whose name without the suffix is ``name``, or None for None."""
    if name is None:
        return None
    found: type[errors.CouchbaseException] = getattr(errors, f"{name}Exception")
    return found


def test_every_status_has_its_name() -> None:
    """The enum has exactly the names and numbers that the protocol defines."""
    expected = {number: name for number, (name, _) in (STATUSES | LEFT_TO_THE_MAP).items()}

    assert expected == {int(status): status.name for status in Status}


def test_five_statuses_are_left_to_the_map() -> None:
    """Five statuses have no row but a class for a node without an error map; every other status has a row."""
    assert set(STATUSES) == set(KV_STATUSES)
    assert {
        number: error_class(name) for number, (_, name) in LEFT_TO_THE_MAP.items()
    } == kv_status.ERRORS_WITHOUT_A_MAP


@rows("number", STATUSES)
def test_row(number: int) -> None:
    """Each status has the exception class of the list, and for some operations the exception of that operation."""
    row = KV_STATUSES[number]
    expected = {operation: error_class(name) for operation, name in OF_OPERATION.get(number, {}).items()}

    assert number == row
    assert error_class(STATUSES[number][1]) is row.error
    assert expected == row.of_operation
    assert ONLY_OF.get(number, frozenset()) == row.only_of


@rows(
    ("status", "expected"),
    [(0x86, "TEMPORARY_FAILURE"), (0x0D, "CONFIG_ONLY"), (0x7FF0, None), (0xFFFF, None), (-1, None)],
)
def test_status_name(status: int, expected: str | None) -> None:
    """``status_name`` returns the name of a status, or None if the protocol does not define it."""
    assert expected == status_name(status)


def test_a_duplicate_number_fails_at_import() -> None:
    """If two statuses have the same number, the import of the module fails."""
    line = "    TOO_BIG = 0x03, errors.ValueTooLargeException\n"
    with pytest.raises(ValueError, match="TOO_LARGE"):
        import_with(kv_status, line, line + "    TOO_LARGE = 0x03, None\n")


CONTEXT = ErrorContext(operation="mutate_in", key="ada", status=0xCC, status_name="FAILED", status_text="some path")


@rows(
    ("status", "expected"),
    [
        *(
            (status, error_class(name) or errors.CouchbaseException)
            for status, (_, name) in STATUSES.items()
            if status >= 0xC0
        ),
        (0x24, errors.XattrNoAccessException),
        (0x87, errors.CouchbaseException),
        (0x7FF0, errors.CouchbaseException),
    ],
)
def test_statuses_of_paths(status: int, expected: type[errors.CouchbaseException]) -> None:
    """The error of a failed path is that of its status, or CouchbaseException; NO_ACCESS has one for paths."""
    assert expected is FailedPath(0, "a", status).error


def test_the_text_of_a_failed_path() -> None:
    """The text has the index, path and status of the failed path, in place of the server's text for the operation."""
    failed = FailedPath(2, "a.b", 0xC0)

    assert "specs[2], path 'a.b': SUBDOC_PATH_NOT_FOUND [0xc0]" == str(failed)
    assert "specs[0], path '': an unknown status [0x7ff0]" == str(FailedPath(0, "", 0x7FF0))
    assert "mutate_in 'ada': specs[2], path 'a.b': SUBDOC_PATH_NOT_FOUND [0xc0]" == str(at_path(CONTEXT, failed))
    assert "FAILED [0xcc] (specs[2], path 'a.b': SUBDOC_PATH_NOT_FOUND [0xc0])" in str(
        surfaced(failed.error, CONTEXT, failed)
    )
    assert "FAILED [0xcc] (some path)" in str(surfaced(errors.CouchbaseException, CONTEXT))


def test_context() -> None:
    """The error context has the index, the path and the status as fields."""
    context = at_path(CONTEXT, FailedPath(2, "a.b", 0xC0)).context

    assert (2, "a.b", 0xC0, "ada") == (context.path_index, context.path, context.path_status, context.key)
