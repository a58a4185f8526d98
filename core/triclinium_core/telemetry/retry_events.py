"""Events of the outer span of a call: each retry and each refusal, with its reason.

The SDK-RFC 0067 has only the number of retries. These events are ours alone, and so are their names.
"""

from __future__ import annotations

from collections.abc import Mapping

from triclinium_core.retry import couchbase
from triclinium_core.telemetry.tracing import AttributeValue

RETRY = "triclinium.retry"
REFUSAL = "triclinium.retry_refused"

REASON = "triclinium.retry.reason"
"""Name of the ``RetryReason``."""
CLAUSE = "triclinium.retry.clause"
"""Where SDK-RFC 0049 names the reason."""
DELAY = "triclinium.retry.delay"
"""Seconds until the call is sent again."""
DISPATCHES = "triclinium.retry.dispatches"
"""False where the delay was cut to a limit, so that nothing is sent again."""
ERROR = "triclinium.retry.error"
"""Name of the exception that the caller gets instead of the retry."""

_LISTED: Mapping[couchbase.RetryReason, str] = {
    reason: f"SDK-RFC 0049 Response Code Retry List, {clause}"
    for reason, clause in reversed(
        [
            *((line.reason, line.clause) for line in couchbase.RETRYABLE_STATUSES.values()),
            *((line.reason, line.clause) for line in couchbase.RETRYABLE_ERROR_CODES.values()),
            *((line.reason, line.clause) for line in couchbase.RETRYABLE_HTTP_STATUSES.values()),
        ]
    )
}
"""The first line of the RFC's list that has each reason."""


def clause_of(reason: couchbase.RetryReason) -> str:
    """Return where the RFC says that a request may be retried for this."""
    return _LISTED.get(reason, f"SDK-RFC 0049 RetryReason, {reason}: {reason.meaning}")


Event = tuple[str, Mapping[str, AttributeValue]]
"""Its name and its attributes."""


def retry_event(reason: couchbase.RetryReason, delay: float, *, dispatches: bool) -> Event:
    """Return what tells of a retry that was decided."""
    return RETRY, {REASON: str(reason), CLAUSE: clause_of(reason), DELAY: delay, DISPATCHES: dispatches}


def refusal_event(reason: couchbase.RetryReason, error: str) -> Event:
    """Return what tells of a retry that was refused."""
    return REFUSAL, {REASON: str(reason), CLAUSE: clause_of(reason), ERROR: error}
