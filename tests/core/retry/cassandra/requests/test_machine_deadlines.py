"""Deadline of a request: it covers all attempts, and its error states whether a write may have been applied."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.core.retry.cassandra.requests.request_cases import (
    CLOSED,
    SERVER,
    START,
    UNAVAILABLE,
    UNPREPARED,
    WRITE,
    error_of,
    hear,
    prepare,
    request,
    submitted,
)
from tests.rows import rows
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import ConsistencyLevel as Level, errors


def test_one_timeout_covers_all_attempts() -> None:
    """The timeout starts when the request is submitted and covers all attempts."""
    downgrading = Always(cassandra.RetryVerdict(cassandra.RetryDecision.RETRY_NEXT, Level.ONE))
    machine = submitted(request(downgrading, consistency=Level.QUORUM, timeout=2.0))
    hear(machine, cassandra.RequestWritten(0), cassandra.ErrorReceived(0, SERVER), at=START + 1.9)
    assert START + 2.0 == machine.wakeup
    assert [] == hear(machine, cassandra.TimerFired(), at=START + 1.99)
    cancel, fail = hear(machine, cassandra.TimerFired(), at=START + 2.0)

    assert cassandra.Cancel(1) == cancel
    assert isinstance(fail, cassandra.Fail)
    assert isinstance(fail.error, errors.DriverTimeout)
    assert "2.0 s" in str(fail.error)
    assert cassandra.ExecutionInfo(None, (("n1", SERVER),), -1, 0, Level.QUORUM, 1) == fail.error.execution_info
    assert math.inf == machine.wakeup


def answered(error: errors.CoordinatorError) -> list[cassandra.CassandraEvent]:
    """Return the events of an attempt that was written and ended with this error response."""
    return [cassandra.RequestWritten(0), cassandra.ErrorReceived(0, error)]


@rows(
    ("events", "expected"),
    [
        ([], True),
        ([cassandra.RequestWritten(0)], True),
        ([cassandra.ConnectionMissed(0), cassandra.ConnectionMissed(1), cassandra.ConnectionMissed(2)], False),
        ([cassandra.AttemptAborted(0, CLOSED)], True),
        ([cassandra.AttemptAborted(0, CLOSED, handed_over=1)], True),
        (
            [
                cassandra.AttemptAborted(0, CLOSED, handed_over=0),
                cassandra.ConnectionMissed(1),
                cassandra.ConnectionMissed(2),
            ],
            False,
        ),
        ([cassandra.RequestWritten(0), cassandra.AttemptAborted(0, CLOSED, handed_over=0)], True),
        ([cassandra.AttemptAborted(0, errors.RequestThrottled("full"))], False),
        ([cassandra.RequestWritten(0), cassandra.AttemptAborted(0, errors.FrameTooLong("the answer"))], True),
        ([cassandra.RequestWritten(0), cassandra.ResultReceived(0)], False),
        (answered(UNAVAILABLE), False),
        (answered(errors.InvalidQuery("no")), False),
        (answered(WRITE), True),
        (answered(SERVER), True),
        (answered(errors.CoordinatorError("news")), True),
        (answered(errors.AuthenticationError("who")), False),
        (answered(errors.Bootstrapping("not yet")), True),
        (answered(UNPREPARED), False),
        ([*answered(UNPREPARED), cassandra.RequestWritten(1)], False),
        ([*answered(UNPREPARED), cassandra.AttemptAborted(1, CLOSED), cassandra.ConnectionMissed(2)], True),
        ([*answered(UNPREPARED), cassandra.StatementPrepared(1, b"id")], True),
        ([cassandra.RequestWritten(0), cassandra.TimerFired()], True),
        ([cassandra.RequestWritten(0), cassandra.RequestAbandoned()], True),
    ],
)
def test_ambiguity(events: Sequence[cassandra.CassandraEvent], expected: bool) -> None:
    """A non-idempotent statement is ambiguous from its Send until it is known to be unsent or a response settles it."""
    asked = request(Always(cassandra.RETHROW), idempotent=False)
    machine, idempotent, preparing = (
        submitted(asked),
        submitted(request(Always(cassandra.RETHROW))),
        submitted(prepare()),
    )
    for event in events:
        hear(machine, event, at=START + 2.0 * isinstance(event, cassandra.TimerFired))
        hear(idempotent, event, at=START + 2.0 * isinstance(event, cassandra.TimerFired))

    assert (expected, False, False) == (machine.is_ambiguous, idempotent.is_ambiguous, preparing.is_ambiguous)


def test_no_ambiguity_before_the_first_send() -> None:
    """A statement is not ambiguous before it is submitted, and not if there is no node for it."""
    machine = cassandra.RequestMachine(request(idempotent=False), [])
    before = machine.is_ambiguous
    hear(machine, cassandra.RequestStarted())

    assert (False, False) == (before, machine.is_ambiguous)


@rows(
    ("events", "words"),
    [([cassandra.RequestWritten(0)], "may have been applied"), (answered(UNPREPARED), "certainly not applied")],
)
def test_the_timeout_error_states_the_ambiguity(events: Sequence[cassandra.CassandraEvent], words: str) -> None:
    """The timeout error states whether the statement may have been applied."""
    machine = submitted(request(idempotent=False))
    hear(machine, *events)
    error = error_of(hear(machine, cassandra.TimerFired(), at=START + 2.0))

    assert type(error) is errors.DriverTimeout
    assert words in str(error)


def test_no_retry_after_the_deadline() -> None:
    """If the policy decides to retry at the deadline, nothing is sent, even if no timer event has arrived."""
    machine = submitted(request(Always(cassandra.RETRY_NEXT)))
    hear(machine, cassandra.RequestWritten(0))
    actions = hear(machine, cassandra.ErrorReceived(0, SERVER), at=START + 2.0)

    assert isinstance(error_of(actions), errors.DriverTimeout)
    assert not [action for action in actions if isinstance(action, cassandra.Send)]


def test_a_late_result_completes_the_request() -> None:
    """A result that arrives after the deadline, but before the timer event, completes the request."""
    machine = submitted(request())

    assert isinstance(hear(machine, cassandra.ResultReceived(0), at=START + 9)[0], cassandra.Complete)
