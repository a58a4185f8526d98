"""Deadline of a request: it covers all attempts, and its error states whether a write may have been applied."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.core.retry.cassandra.requests import request_cases
from tests.rows import rows
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import ConsistencyLevel as Level, errors


def test_one_timeout_covers_all_attempts() -> None:
    """The timeout starts when the request is submitted and covers all attempts."""
    downgrading = Always(cassandra.RetryVerdict(cassandra.RetryDecision.RETRY_NEXT, Level.ONE))
    machine = request_cases.submitted(request_cases.request(downgrading, consistency=Level.QUORUM, timeout=2.0))
    request_cases.hear(
        machine,
        cassandra.RequestWritten(0),
        cassandra.ErrorReceived(0, request_cases.SERVER),
        at=request_cases.START + 1.9,
    )
    assert request_cases.START + 2.0 == machine.wakeup
    assert [] == request_cases.hear(machine, cassandra.TimerFired(), at=request_cases.START + 1.99)
    cancel, fail = request_cases.hear(machine, cassandra.TimerFired(), at=request_cases.START + 2.0)

    assert cassandra.Cancel(1) == cancel
    assert isinstance(fail, cassandra.Fail)
    assert isinstance(fail.error, errors.DriverTimeout)
    assert "2.0 s" in str(fail.error)
    assert (
        cassandra.ExecutionInfo(None, (("n1", request_cases.SERVER),), -1, 0, Level.QUORUM, 1)
        == fail.error.execution_info
    )
    assert math.inf == machine.wakeup


@rows(
    ("events", "expected"),
    [
        ([], True),
        ([cassandra.RequestWritten(0)], True),
        ([cassandra.ConnectionMissed(0), cassandra.ConnectionMissed(1), cassandra.ConnectionMissed(2)], False),
        ([cassandra.AttemptAborted(0, request_cases.CLOSED)], True),
        ([cassandra.AttemptAborted(0, request_cases.CLOSED, handed_over=1)], True),
        (
            [
                cassandra.AttemptAborted(0, request_cases.CLOSED, handed_over=0),
                cassandra.ConnectionMissed(1),
                cassandra.ConnectionMissed(2),
            ],
            False,
        ),
        ([cassandra.RequestWritten(0), cassandra.AttemptAborted(0, request_cases.CLOSED, handed_over=0)], True),
        ([cassandra.AttemptAborted(0, errors.RequestThrottled("full"))], False),
        ([cassandra.RequestWritten(0), cassandra.AttemptAborted(0, errors.FrameTooLong("the answer"))], True),
        ([cassandra.RequestWritten(0), cassandra.ResultReceived(0)], False),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, request_cases.UNAVAILABLE)], False),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, errors.InvalidQuery("no"))], False),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, request_cases.WRITE)], True),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, request_cases.SERVER)], True),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, errors.CoordinatorError("news"))], True),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, errors.AuthenticationError("who"))], False),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, errors.Bootstrapping("not yet"))], True),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, request_cases.UNPREPARED)], False),
        (
            [
                cassandra.RequestWritten(0),
                cassandra.ErrorReceived(0, request_cases.UNPREPARED),
                cassandra.RequestWritten(1),
            ],
            False,
        ),
        (
            [
                cassandra.RequestWritten(0),
                cassandra.ErrorReceived(0, request_cases.UNPREPARED),
                cassandra.AttemptAborted(1, request_cases.CLOSED),
                cassandra.ConnectionMissed(2),
            ],
            True,
        ),
        (
            [
                cassandra.RequestWritten(0),
                cassandra.ErrorReceived(0, request_cases.UNPREPARED),
                cassandra.StatementPrepared(1, b"id"),
            ],
            True,
        ),
        ([cassandra.RequestWritten(0), cassandra.TimerFired()], True),
        ([cassandra.RequestWritten(0), cassandra.RequestAbandoned()], True),
    ],
)
def test_ambiguity(events: Sequence[cassandra.CassandraEvent], expected: bool) -> None:
    """A non-idempotent statement is ambiguous from its Send until it is known to be unsent or a response settles it."""
    asked = request_cases.request(Always(cassandra.RETHROW), idempotent=False)
    machine, idempotent, preparing = (
        request_cases.submitted(asked),
        request_cases.submitted(request_cases.request(Always(cassandra.RETHROW))),
        request_cases.submitted(request_cases.prepare()),
    )
    for event in events:
        request_cases.hear(machine, event, at=request_cases.START + 2.0 * isinstance(event, cassandra.TimerFired))
        request_cases.hear(idempotent, event, at=request_cases.START + 2.0 * isinstance(event, cassandra.TimerFired))

    assert (expected, False, False) == (machine.is_ambiguous, idempotent.is_ambiguous, preparing.is_ambiguous)


def test_no_ambiguity_before_the_first_send() -> None:
    """A statement is not ambiguous before it is submitted, and not if there is no node for it."""
    machine = cassandra.RequestMachine(request_cases.request(idempotent=False), [])
    before = machine.is_ambiguous
    request_cases.hear(machine, cassandra.RequestStarted())

    assert (False, False) == (before, machine.is_ambiguous)


@rows(
    ("events", "words"),
    [
        ([cassandra.RequestWritten(0)], "may have been applied"),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, request_cases.UNPREPARED)], "certainly not applied"),
    ],
)
def test_the_timeout_error_states_the_ambiguity(events: Sequence[cassandra.CassandraEvent], words: str) -> None:
    """The timeout error states whether the statement may have been applied."""
    machine = request_cases.submitted(request_cases.request(idempotent=False))
    request_cases.hear(machine, *events)
    error = request_cases.error_of(request_cases.hear(machine, cassandra.TimerFired(), at=request_cases.START + 2.0))

    assert type(error) is errors.DriverTimeout
    assert words in str(error)


def test_no_retry_after_the_deadline() -> None:
    """If the policy decides to retry at the deadline, nothing is sent, even if no timer event has arrived."""
    machine = request_cases.submitted(request_cases.request(Always(cassandra.RETRY_NEXT)))
    request_cases.hear(machine, cassandra.RequestWritten(0))
    actions = request_cases.hear(
        machine, cassandra.ErrorReceived(0, request_cases.SERVER), at=request_cases.START + 2.0
    )

    assert isinstance(request_cases.error_of(actions), errors.DriverTimeout)
    assert not [action for action in actions if isinstance(action, cassandra.Send)]


def test_a_late_result_completes_the_request() -> None:
    """A result that arrives after the deadline, but before the timer event, completes the request."""
    machine = request_cases.submitted(request_cases.request())

    assert isinstance(
        request_cases.hear(machine, cassandra.ResultReceived(0), at=request_cases.START + 9)[0], cassandra.Complete
    )
