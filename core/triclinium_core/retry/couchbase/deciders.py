"""Rules and objects that can determine the outcome of a failure, with their clauses."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, unique

from triclinium_core.retry.couchbase.tables.reasons import RetryReason


@unique
class DecidedBy(StrEnum):
    """Rule or object that determined the outcome."""

    RESPONSE = "response"
    DEADLINE = "deadline"
    TERMINAL_REASON = "terminal reason"
    CONTROLLED_BACKOFF = "controlled backoff"
    STRATEGY = "strategy"
    ORCHESTRATOR = "orchestrator"


DECISION_CLAUSES: Mapping[DecidedBy, str] = {
    DecidedBy.RESPONSE: "RFC 0049 Response Received: a response without a retry reason is final",
    DecidedBy.DEADLINE: "RFC 0049 Best Effort Retry vs. Fail Fast: retried until the timeout (decision C23)",
    DecidedBy.TERMINAL_REASON: "RFC 0049 Fail Fast (Terminal Errors); decision T1",
    DecidedBy.CONTROLLED_BACKOFF: "RFC 0049 Controlled Backoff for Always Retry",
    DecidedBy.STRATEGY: "RFC 0049 Retry Orchestration: the strategy of the request decides",
    DecidedBy.ORCHESTRATOR: "RFC 0049 Network Time: all non-idempotent operations must be failed to avoid data loss",
}
ERROR_MAP_CLAUSE = "RFC 0049 KV Error Map Handling"
CAPPING_CLAUSE = "RFC 0049 Capping the Retry Duration; RFC 0013 Retry Intervals, max-duration"
SENT_CLAUSE = "RFC 0049 Network Time: it may have been applied (decision C24)"
UNSENT_CLAUSE = "RFC 0049 Client Dispatch: nothing was sent, so nothing was changed"


def decided_by(
    reason: RetryReason | None, *, retries: bool, was_consulted: bool, would_retry: bool, times_out: bool
) -> DecidedBy:
    """Return the rule or object that determined the outcome of a failure.

    Args:
        reason: retry reason of the failure; None if a final response ended the request.
        retries: whether the request is sent again after a delay.
        was_consulted: whether a strategy was called, or is awaited.
        would_retry: whether the strategy requested a retry.
        times_out: whether the request failed with a timeout.
    """
    if reason is None:
        return DecidedBy.RESPONSE
    if was_consulted:
        return DecidedBy.ORCHESTRATOR if would_retry and not retries else DecidedBy.STRATEGY
    if retries:
        return DecidedBy.CONTROLLED_BACKOFF
    return DecidedBy.DEADLINE if times_out else DecidedBy.ORCHESTRATOR
