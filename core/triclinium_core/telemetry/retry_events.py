"""Events of the outer span of a call: one for each retry, and one for a refused retry, with the reason.

SDK-RFC 0067 reports only the number of retries. These events and their names are specific to this client.
"""

from __future__ import annotations

from collections.abc import Mapping

from triclinium_core.retry import couchbase
from triclinium_core.telemetry.tracing import AttributeValue

RETRY = "triclinium.retry"
REFUSAL = "triclinium.retry_refused"

REASON = "triclinium.retry.reason"
"""Attribute with the name of the ``RetryReason``."""
CLAUSE = "triclinium.retry.clause"
"""Attribute with the clause of SDK-RFC 0049 that lists the reason."""
DELAY = "triclinium.retry.delay"
"""Attribute with the number of seconds until the next attempt."""
DISPATCHES = "triclinium.retry.dispatches"
"""Attribute that is True if another attempt follows, and False if a limit has cut the delay."""
ERROR = "triclinium.retry.error"
"""Attribute with the name of the exception that the call raises instead of retrying."""

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
"""For each reason, the first line of the RFC's list that has it."""


def clause_of(reason: couchbase.RetryReason) -> str:
    """Return the clause of the RFC that lists this reason."""
    return _LISTED.get(reason, f"SDK-RFC 0049 RetryReason, {reason}: {reason.meaning}")


Event = tuple[str, Mapping[str, AttributeValue]]
"""Name and attributes of an event."""


def retry_event(reason: couchbase.RetryReason, delay: float, *, dispatches: bool) -> Event:
    """Return the span event for a retry; with ``dispatches`` False, for a delay that a limit has cut."""
    return RETRY, {REASON: str(reason), CLAUSE: clause_of(reason), DELAY: delay, DISPATCHES: dispatches}


def refusal_event(reason: couchbase.RetryReason, error: str) -> Event:
    """Return the span event for a refused retry, after which the call raises ``error``."""
    return REFUSAL, {REASON: str(reason), CLAUSE: clause_of(reason), ERROR: error}
