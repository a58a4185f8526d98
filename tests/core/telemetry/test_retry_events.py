"""Retry events on the outer span of a call."""

from __future__ import annotations

import pytest

from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.telemetry.retry_events import clause_of, refusal_event, retry_event


@pytest.mark.parametrize("reason", RetryReason)
def test_every_reason_has_a_clause(reason: RetryReason) -> None:
    """A reason has the clause of its line in the RFC's Response Code Retry List, or of its row in the RFC's reasons."""
    clause = clause_of(reason)

    assert clause.startswith("SDK-RFC 0049 ")
    assert "Response Code Retry List" in clause or reason in clause


def test_events() -> None:
    """The event of a retry has the delay, and the event of a refusal has the error that the caller gets."""
    assert (
        "triclinium.retry",
        {
            "triclinium.retry.reason": "KV_LOCKED",
            "triclinium.retry.clause": clause_of(RetryReason.KV_LOCKED),
            "triclinium.retry.delay": 0.25,
            "triclinium.retry.dispatches": True,
        },
    ) == retry_event(RetryReason.KV_LOCKED, 0.25, dispatches=True)
    name, attributes = refusal_event(RetryReason.KV_LOCKED, "DocumentLockedException")
    assert ("triclinium.retry_refused", "DocumentLockedException") == (name, attributes["triclinium.retry.error"])
