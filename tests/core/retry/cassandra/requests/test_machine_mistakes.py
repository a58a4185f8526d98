"""Invalid events and times, which raise errors and change nothing, and query plans that fail."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from tests.core.retry.cassandra.requests import request_cases
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import ConsistencyLevel as Level, errors
from triclinium_core.retry.invalid_event import InvalidEvent


@rows("attempt", [1, 7, -1, None, "0", 0.5])
@rows("settled", [True, False])
def test_an_unknown_attempt_is_refused(attempt: Any, settled: bool) -> None:
    """An event for an unknown attempt raises InvalidEvent, even after the request has ended."""
    machine = request_cases.submitted(request_cases.request())
    if settled:
        request_cases.hear(machine, cassandra.ResultReceived(0))
    with pytest.raises(InvalidEvent, match="^attempt "):
        request_cases.hear(machine, cassandra.ResultReceived(attempt))


@rows(
    "event",
    [
        None,
        "RequestWritten",
        cassandra.RequestWritten,
        object(),
        cassandra.CompleteEmpty(cassandra.ExecutionInfo(None, (), 0, 0, Level.ONE, 0)),
    ],
)
def test_an_invalid_event_is_refused(event: Any) -> None:
    """An object that is not an event, for instance an action, raises InvalidEvent and changes nothing."""
    machine = request_cases.submitted(request_cases.request())
    with pytest.raises(InvalidEvent):
        request_cases.hear(machine, event)

    assert cassandra.RequestState.RUNNING is machine.state


@rows("now", [request_cases.START - 1, math.nan, math.inf, -math.inf, None, "now", True])
def test_an_invalid_time_is_refused(now: Any) -> None:
    """A time that is not a finite number, or is before the previous time, raises an error and changes nothing."""
    machine = request_cases.submitted(request_cases.request())
    with refusal_of("now", f"now={now!r} must be"):
        machine.handle(cassandra.ResultReceived(0), now)

    assert isinstance(request_cases.hear(machine, cassandra.ResultReceived(0))[0], cassandra.Complete)


def test_a_mistake_does_not_move_the_clock() -> None:
    """If the machine refuses an event, the time of that event does not advance the clock."""
    machine = request_cases.submitted(request_cases.request())
    request_cases.hear(machine, cassandra.RequestWritten(0))
    with pytest.raises(InvalidEvent):
        request_cases.hear(machine, cassandra.RequestWritten(0), at=request_cases.START + 1)

    assert isinstance(
        request_cases.hear(machine, cassandra.ResultReceived(0), at=request_cases.START)[0], cassandra.Complete
    )


def test_a_plan_that_fails() -> None:
    """If the query plan raises for a later node, the request fails, and the exception is the cause."""

    def plan() -> Iterator[str]:
        yield "n1"
        raise ZeroDivisionError("raise me")

    machine = cassandra.RequestMachine(request_cases.request(request_cases.NEVER_ASKED), plan())
    request_cases.hear(machine, cassandra.RequestStarted())
    closed = errors.ClosedConnection("closed")
    error = request_cases.error_of(request_cases.hear(machine, cassandra.AttemptAborted(0, closed, 0)))

    assert isinstance(error, errors.PolicyFailed)
    assert cassandra.ExecutionInfo(None, (("n1", closed),), -1, 0, None, 0) == error.execution_info
    assert "the query plan failed: ZeroDivisionError('raise me')" == str(error)
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_a_plan_that_fails_first() -> None:
    """If the first node of the query plan is invalid, the request fails when it is submitted."""
    nodes: Any = iter([["n1"]])
    machine = cassandra.RequestMachine(request_cases.request(), nodes)

    assert isinstance(
        request_cases.error_of(request_cases.hear(machine, cassandra.RequestStarted())), errors.PolicyFailed
    )
    assert machine.state is cassandra.RequestState.FAILED
