"""Table that describes each retry reason to a token strategy.

Source: the Smithy Python retry design, "Error Classification"; SDK-RFC 0049 "RetryReason"; decision T2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, unique
from typing import NamedTuple

from triclinium_core.retry.couchbase import ErrorMapRetryStrategy, RetryReason, RetryRequest
from triclinium_core.retry.smithy import ErrorInfo
from triclinium_core.retry.tables import table_of


@unique
class DelaySource(Enum):
    """Source of the delay before a retry."""

    NONE = "none"
    ERROR_MAP = "the schedule of the node's error map, if its entry has one"


class ReasonInfo(NamedTuple):
    """Row of the table: retry information about a reason, and in ``because`` the justification."""

    is_retry_safe: bool
    """Whether another attempt may succeed. It is True even if the request may have been applied and must not be applied
    twice: ``describe`` and the orchestrator check that separately."""
    is_throttling_error: bool
    """Whether the service requests a lower rate."""
    is_timeout_error: bool
    """Whether the reason is a timeout."""
    retry_after: DelaySource
    """Source of the delay before a retry; with ``NONE``, the strategy alone determines the delay."""
    because: str


def _complete(rows: Iterable[tuple[RetryReason, ReasonInfo]]) -> Mapping[RetryReason, ReasonInfo]:
    table = table_of(rows)
    missing = [str(reason) for reason in RetryReason if reason not in table]
    if missing:
        raise ValueError(f"no row for {', '.join(missing)}")
    return table


_R = RetryReason
_NOTHING, _ERROR_MAP = DelaySource.NONE, DelaySource.ERROR_MAP

# fmt: off
REASON_INFOS: Mapping[RetryReason, ReasonInfo] = _complete((
    # reason                                      safe   throttles  time out  retry_after  because
    (_R.UNKNOWN, ReasonInfo(                      True,  False, False, _NOTHING, "an idempotent request may always be sent again (decision C4)")),
    (_R.SOCKET_NOT_AVAILABLE, ReasonInfo(         True,  False, False, _NOTHING, "nothing was sent, and connections are opened again")),
    (_R.SERVICE_NOT_AVAILABLE, ReasonInfo(        True,  False, False, _NOTHING, "nothing was sent, and a node may get the service")),
    (_R.NODE_NOT_AVAILABLE, ReasonInfo(           True,  False, False, _NOTHING, "nothing was sent, and the node may come back")),
    (_R.KV_NOT_MY_VBUCKET, ReasonInfo(            True,  False, False, _NOTHING, "always retried, so no strategy is consulted")),
    (_R.KV_COLLECTION_OUTDATED, ReasonInfo(       True,  False, False, _NOTHING, "always retried, so no strategy is consulted")),
    (_R.KV_ERROR_MAP_RETRY_INDICATED, ReasonInfo( True,  False, False, _ERROR_MAP, "the node permits it, and may specify the delay")),
    (_R.KV_LOCKED, ReasonInfo(                    True,  False, False, _NOTHING, "the document is locked, and its node is healthy")),
    (_R.KV_TEMPORARY_FAILURE, ReasonInfo(         True,  True,  False, _NOTHING, "the node sheds load until it has memory again")),
    (_R.KV_SYNC_WRITE_IN_PROGRESS, ReasonInfo(    True,  False, False, _NOTHING, "another write is pending, and the node is healthy")),
    (_R.KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS, ReasonInfo(True, False, False, _NOTHING, "another write is pending, and the node is healthy")),
    (_R.SERVICE_RESPONSE_CODE_INDICATED, ReasonInfo(True, False, False, _NOTHING, "the service permits it")),
    (_R.SOCKET_CLOSED_WHILE_IN_FLIGHT, ReasonInfo(True,  False, False, _NOTHING, "an idempotent request may be sent again (decision C24)")),
    (_R.CIRCUIT_BREAKER_OPEN, ReasonInfo(         True,  False, True,  _NOTHING, "earlier requests timed out, which opened it (decision C33)")),
    (_R.QUERY_PREPARED_STATEMENT_FAILURE, ReasonInfo(True, False, False, _NOTHING, "the statement is prepared again")),
    (_R.QUERY_INDEX_NOT_FOUND, ReasonInfo(        True,  False, False, _NOTHING, "the statement is prepared again")),
    (_R.ANALYTICS_TEMPORARY_FAILURE, ReasonInfo(  True,  True,  False, _NOTHING, "the service is busy: its job queue is full, or it rebalances")),
    (_R.SEARCH_TOO_MANY_REQUESTS, ReasonInfo(     True,  True,  False, _NOTHING, "the service reports too many requests")),
    (_R.VIEWS_TEMPORARY_FAILURE, ReasonInfo(      True,  False, False, _NOTHING, "its codes request another attempt, not a lower rate")),
    (_R.VIEWS_NO_ACTIVE_PARTITION, ReasonInfo(    True,  False, False, _NOTHING, "always retried, so no strategy is consulted")),
    (_R.AUTHENTICATION_ERROR, ReasonInfo(         False, False, False, _NOTHING, "terminal: it lasts until credentials, certificates or keyspace change")),
    (_R.TLS_ERROR, ReasonInfo(                    False, False, False, _NOTHING, "terminal: it lasts until credentials, certificates or keyspace change")),
    (_R.BUCKET_ACCESS_ERROR, ReasonInfo(          False, False, False, _NOTHING, "terminal: it lasts until credentials, certificates or keyspace change")),
    (_R.SCOPE_NOT_FOUND, ReasonInfo(              False, False, False, _NOTHING, "terminal: it lasts until credentials, certificates or keyspace change")),
    (_R.COLLECTION_NOT_FOUND, ReasonInfo(         False, False, False, _NOTHING, "terminal: it lasts until credentials, certificates or keyspace change")),
))
"""Retry information about each reason. If a reason has no row or two rows, importing this module fails."""
# fmt: on

_SCHEDULE = ErrorMapRetryStrategy()
"""Strategy that computes the delay from the schedule in an entry of an error map."""


class FailedAttempt(NamedTuple):
    """Retry information about one failed attempt."""

    info: ErrorInfo
    """Information that the strategy receives."""
    within: float | None = None
    """Seconds within which the retry must be sent, according to the node's error map; None for no limit."""


def describe(request: RetryRequest, reason: RetryReason) -> FailedAttempt:
    """Return the retry information about a ``request`` that failed for ``reason``."""
    row, entry = REASON_INFOS[reason], request.error_map_entry
    is_safe, delay, within = row.is_retry_safe, None, None
    if row.retry_after is DelaySource.ERROR_MAP and entry is not None and entry.retry is not None:
        action = _SCHEDULE.retry_after(request, reason)
        # Without a delay, the node's schedule has ended, and the request must not be retried (decision C15).
        is_safe, delay, within = action.delay is not None, action.delay, action.within
    # RFC 0049 §Network Time: a request that may have been applied must not be sent again unless it is idempotent.
    is_safe = is_safe and (request.idempotent or reason.allows_non_idempotent_retry)
    return FailedAttempt(ErrorInfo(is_safe, delay, row.is_throttling_error, row.is_timeout_error), within)


class FailedAttemptError(Exception):
    """Error that a token strategy receives for a failed attempt. It is never raised.

    Args:
        request: state of the request at the time of the failure.
        reason: reason for which the attempt failed.
        info: retry information about the attempt. The attributes that strategies read are copies of it.
    """

    def __init__(self, request: RetryRequest, reason: RetryReason, info: ErrorInfo) -> None:
        super().__init__(f"{request.operation}: {reason.meaning} ({reason})")
        self.request: RetryRequest = request
        self.reason: RetryReason = reason
        self.is_retry_safe: bool | None = info.is_retry_safe
        self.retry_after: float | None = info.retry_after
        self.is_throttling_error: bool = info.is_throttling_error
        self.is_timeout_error: bool = info.is_timeout_error
