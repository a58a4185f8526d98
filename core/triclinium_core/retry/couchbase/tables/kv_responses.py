"""Function that classifies key-value responses: retry reason, exception and further steps.

Source: SDK-RFC 0049 "Response Code Retry List", "KV Error Map Handling"; SDK-RFC 0013 "Processing Chain"; decisions
C9 to C13, C31 and D25.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from triclinium_core import errors
from triclinium_core.retry.couchbase.tables.error_map import Attribute, ErrorMapEntry
from triclinium_core.retry.couchbase.tables.kv_status import ERRORS_WITHOUT_A_MAP, KV_STATUSES, ErrorClass, Status
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.tables import table_of
from triclinium_core.retry.values import lean


@dataclass(frozen=True, slots=True)
class RetryableStatus:
    """Line of the RFC's list, or one that a decision adds: a known status after which operations may be retried."""

    status: Status
    reason: RetryReason
    excluded: frozenset[str]
    clause: str
    only_of: frozenset[str] = frozenset()
    """Operations that may be retried after the status; empty for all operations that are not excluded."""

    def covers(self, operation: str) -> bool:
        """Return whether an operation may be retried after the status."""
        if operation in self.excluded or operation.startswith(DCP_PREFIX):
            return False
        return not self.only_of or operation in self.only_of


DCP_PREFIX = "dcp"
"""Prefix of the names of DCP operations. The RFC states: "DCP commands are excluded from this list"."""
COUNTERS = frozenset({"increment", "decrement"})


def _lines() -> Iterable[RetryableStatus]:
    line, s, r = RetryableStatus, Status, RetryReason
    # fmt: off
    yield line(s.NOT_MY_VBUCKET, r.KV_NOT_MY_VBUCKET, frozenset({"range_scan_continue"}),
               "KV: Not My VBucket 0x07 on all messages (decision C10: not on range-scan continue)")
    yield line(s.UNKNOWN_COLLECTION, r.KV_COLLECTION_OUTDATED,
               frozenset({"get_collection_id", "range_scan_continue", "range_scan_cancel"}),
               "KV: Collection Outdated 0x88, explicitly excluded is the GetCollectionID command (decision C9: nor range-scan continue and cancel)")
    yield line(s.LOCKED, r.KV_LOCKED, frozenset({"unlock"}),
               'KV: Locked 0x09, do NOT retry on KV_LOCKED for the "Unlock" command')
    yield line(s.TEMPORARY_FAILURE, r.KV_TEMPORARY_FAILURE, frozenset(), "KV: Temporary Failure 0x86")
    yield line(s.SYNC_WRITE_IN_PROGRESS, r.KV_SYNC_WRITE_IN_PROGRESS, frozenset(), "KV: SyncWriteInProgress 0xa2")
    yield line(s.SYNC_WRITE_RE_COMMIT_IN_PROGRESS, r.KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS, frozenset(),
               "KV: SyncWriteReCommitInProgress 0xa4")
    yield line(s.NOT_STORED, r.KV_TEMPORARY_FAILURE, frozenset(),
               "not listed is Not Stored 0x05, by which a counter reports a lost race (decision D25)", COUNTERS)
    # fmt: on


RETRYABLE_STATUSES: Mapping[int, RetryableStatus] = table_of((int(line.status), line) for line in _lines())

CONNECTION_INVALIDATING = frozenset(
    {Status.NO_BUCKET, Status.OPAQUE_NO_MATCH, Status.AUTH_STALE, Status.NOT_INITIALIZED}
)
"""Known statuses after which the client must close the connection."""

ERRORS_BY_ATTRIBUTE: tuple[tuple[Attribute, ErrorClass], ...] = (
    (Attribute.AUTH, errors.AuthenticationFailureException),
    (Attribute.INVALID_INPUT, errors.InvalidArgumentException),
    (Attribute.SUPPORT, errors.FeatureNotAvailableException),
    (Attribute.TEMP, errors.TemporaryFailureException),
)
"""Exception classes for unknown statuses, by attribute in the error map. The first match applies (decision C31)."""


@lean
@dataclass(frozen=True, slots=True)
class KvVerdict:
    """Classification of a response.

    Without a ``reason``, the strategy is not consulted: the request fails with ``error``, or succeeds without one.
    """

    reason: RetryReason | None
    error: ErrorClass | None
    clause: str
    refresh_topology: bool = False
    refresh_collection: bool = False
    close_connection: str | None = None
    """Reason to close the connection after all other actions for the response; None to keep the connection."""

    @property
    def is_success(self) -> bool:
        """Whether the response is a success for the caller."""
        return self.reason is None and self.error is None


_LIST = "RFC 0049 Response Code Retry List: "
_NOT_MY_VBUCKET, _COLLECTION_OUTDATED = RetryReason.KV_NOT_MY_VBUCKET, RetryReason.KV_COLLECTION_OUTDATED


def classify(operation: str, status: int, entry: ErrorMapEntry | None) -> KvVerdict:
    """Return the classification of a response to ``operation``.

    Args:
        status: status of the response.
        entry: entry for the status in the node's error map; None if there is no entry.
    """
    line = RETRYABLE_STATUSES.get(status)
    if line is not None and line.covers(operation):
        reason, error = line.reason, _error_of(KV_STATUSES[status], operation)
        return KvVerdict(reason, error, _LIST + line.clause, reason is _NOT_MY_VBUCKET, reason is _COLLECTION_OUTDATED)
    row = KV_STATUSES.get(status)
    if row is not None and not row.fits(operation):
        clause = "no clause: the status is not valid for the operation, which may have been applied (decision D12)"
        return KvVerdict(None, errors.DecodingFailureException, clause)
    if row is not None:
        # RFC 0049 §Response Code Retry List: after a known status that is not on the list, an operation is not retried.
        clause = _LIST + "a known response that is not in the list is not retried"
        if line is not None and not line.only_of:
            clause = _LIST + line.clause
        close = "the status invalidates the connection" if status in CONNECTION_INVALIDATING else None
        return KvVerdict(None, _error_of(row, operation), clause, close_connection=close)
    return _classify_unknown(status, entry)


def is_success(operation: str, status: int) -> bool:
    """Return whether ``status`` is a success for the caller of ``operation``."""
    return status == Status.SUCCESS or classify(operation, status, None).is_success


def error_of_entry(entry: ErrorMapEntry) -> ErrorClass:
    """Return the exception class for an unknown status with this entry in the error map (decision C31)."""
    for attribute, error in ERRORS_BY_ATTRIBUTE:
        if attribute in entry.attributes:
            return error
    return errors.CouchbaseException


def _classify_unknown(status: int, entry: ErrorMapEntry | None) -> KvVerdict:
    if entry is None:
        error = ERRORS_WITHOUT_A_MAP.get(status, errors.CouchbaseException)
        return KvVerdict(None, error, "RFC 0049 KV Error Map Handling: no entry, so no retry indication")
    attributes = entry.attributes
    error = error_of_entry(entry)
    close = None
    for attribute in (Attribute.SPECIAL_HANDLING, Attribute.CONN_STATE_INVALIDATED):
        # RFC 0013 §Processing Order Example: the client closes the connection after a status with either attribute.
        # It has no special handling for unknown statuses.
        if attribute in attributes:
            close = f"the error map lists {attribute} for status 0x{status:02x}"
    if entry.indicates_retry:
        reason: RetryReason | None = RetryReason.KV_ERROR_MAP_RETRY_INDICATED
        clause = "RFC 0049 KV Error Map Handling: the map indicates a retry, so the strategy decides"
    else:
        reason = None
        clause = "RFC 0049 KV Error Map Handling: the map misses any retry indication, so no retry"
    return KvVerdict(
        reason, error, clause, refresh_topology=Attribute.FETCH_CONFIG in attributes, close_connection=close
    )


def _error_of(status: Status, operation: str) -> ErrorClass | None:
    """Return the exception class for a status of an operation's response; None for a success."""
    return status.of_operation.get(operation, status.error)
