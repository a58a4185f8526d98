"""Time, leaving, late news and mistakes: a request settles once, and a mistake changes nothing."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.core.retry.cassandra.requests.request_cases import (
    NEVER_ASKED,
    SERVER,
    START,
    error_of,
    hear,
    request,
    submitted,
)
from tests.rows import rows
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.cassandra import errors as e
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel as Level
from triclinium_core.retry.cassandra.errors import ExecutionInfo
from triclinium_core.retry.cassandra.requests.actions import Cancel, Complete, Fail, Send
from triclinium_core.retry.cassandra.requests.events import (
    AttemptAborted,
    ErrorReceived,
    RequestSubmitted,
    RequestWritten,
    ResultReceived,
    TimePassed,
)
from triclinium_core.retry.cassandra.requests.machine import RequestMachine
from triclinium_core.retry.cassandra.requests.states import RequestState
from triclinium_core.retry.cassandra.verdicts import RETRY_NEXT, RetryDecision, RetryVerdict
from triclinium_core.retry.invalid_event import InvalidEvent


def test_one_timeout_for_the_whole_call() -> None:
    """It counts from the submission, whatever was tried in between."""
    downgrading = Always(RetryVerdict(RetryDecision.RETRY_NEXT, Level.ONE))
    machine = submitted(request(downgrading, consistency=Level.QUORUM, timeout=2.0))
    hear(machine, RequestWritten(0), ErrorReceived(0, SERVER), at=START + 1.9)
    assert START + 2.0 == machine.wakeup
    assert [] == hear(machine, TimePassed(), at=START + 1.99)
    cancel, fail = hear(machine, TimePassed(), at=START + 2.0)

    assert Cancel(1) == cancel
    assert isinstance(fail, Fail)
    assert isinstance(fail.error, e.DriverTimeout)
    assert "no answer within 2.0 s" == str(fail.error)
    assert ExecutionInfo(None, (("n1", SERVER),), -1, 0, Level.QUORUM, 1) == fail.error.execution_info
    assert math.inf == machine.wakeup


def test_nothing_is_sent_when_time_is_up() -> None:
    """A retry that is decided too late is none, also where nobody has said yet that time is up."""
    machine = submitted(request(Always(RETRY_NEXT)))
    hear(machine, RequestWritten(0))
    actions = hear(machine, ErrorReceived(0, SERVER), at=START + 2.0)

    assert isinstance(error_of(actions), e.DriverTimeout)
    assert not [action for action in actions if isinstance(action, Send)]


def test_a_result_that_has_come_counts() -> None:
    """A result in hand is not thrown away because the clock was quicker."""
    machine = submitted(request())

    assert isinstance(hear(machine, ResultReceived(0), at=START + 9)[0], Complete)


@rows("attempt", [1, 7, -1, None, "0", 0.5])
@rows("settled", [True, False])
def test_an_attempt_that_was_never_ordered(attempt: Any, settled: bool) -> None:
    """Is a mistake of the driver, also when all is over."""
    machine = submitted(request())
    if settled:
        hear(machine, ResultReceived(0))
    with pytest.raises(InvalidEvent, match="was never ordered; use the number that came with the order"):
        hear(machine, ResultReceived(attempt))


@rows("event", [None, "RequestWritten", RequestWritten, object()])
def test_what_is_no_event(event: Any) -> None:
    """Nothing else is heard."""
    with pytest.raises(InvalidEvent):
        hear(submitted(request()), event)


@rows("now", [START - 1, math.nan, math.inf, -math.inf, None, "now", True])
def test_a_clock_that_makes_no_sense(now: Any) -> None:
    """An instant is a number, and none lies before the last; nothing was changed."""
    machine = submitted(request())
    with pytest.raises(InvalidArgumentException, match=f"now={now!r} must be") as caught:
        machine.handle(ResultReceived(0), now)

    assert "now" == caught.value.parameter
    assert isinstance(hear(machine, ResultReceived(0))[0], Complete)


def test_a_mistake_does_not_move_the_clock() -> None:
    """An event that was refused has not happened, so its instant has not come."""
    machine = submitted(request())
    hear(machine, RequestWritten(0))
    with pytest.raises(InvalidEvent):
        hear(machine, RequestWritten(0), at=START + 1)

    assert isinstance(hear(machine, ResultReceived(0), at=START)[0], Complete)


def test_a_plan_that_fails() -> None:
    """A generator that raises on the way fails the request, with what it raised as the cause."""

    def plan() -> Iterator[str]:
        yield "n1"
        raise ZeroDivisionError("raise me")

    machine = RequestMachine(request(NEVER_ASKED), plan())
    hear(machine, RequestSubmitted())
    closed = e.ClosedConnection("closed")
    error = error_of(hear(machine, AttemptAborted(0, closed, 0)))

    assert isinstance(error, e.PolicyFailed)
    assert ExecutionInfo(None, (("n1", closed),), -1, 0, None, 0) == error.execution_info
    assert "the query plan failed: ZeroDivisionError('raise me')" == str(error)
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_a_plan_that_fails_at_once() -> None:
    """Then the submission fails."""
    nodes: Any = iter([["n1"]])
    machine = RequestMachine(request(), nodes)

    assert isinstance(error_of(hear(machine, RequestSubmitted())), e.PolicyFailed)
    assert machine.state is RequestState.FAILED


def test_a_request_that_is_over_leaves_nothing() -> None:
    """Its machine goes with whoever refers to it last, and waits for no collector of garbage."""
    machine = submitted(request())
    hear(machine, ResultReceived(0))
    seen = weakref.ref(machine)
    gc.disable()
    try:
        del machine

        assert seen() is None
    finally:
        gc.enable()
