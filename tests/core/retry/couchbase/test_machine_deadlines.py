"""Deadlines and ambiguity: what a request that ran out of time is told, wherever it stood."""

from __future__ import annotations

import math

import pytest

from tests.core.retry.couchbase.request_cases import Says, annotation, error_of, machine_of
from tests.rows import rows
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import (
    RequestCanceledException,
    UnambiguousTimeoutException,
)
from triclinium_core.retry.couchbase.actions import Dispatch, Fail, ReportRetry, RetryAfter
from triclinium_core.retry.couchbase.events import (
    Dispatched,
    HandedOver,
    KvResponse,
    ResponseReceived,
    SocketClosed,
    TimePassed,
)
from triclinium_core.retry.couchbase.machine import RequestAnnotation
from triclinium_core.retry.couchbase.states import RequestState
from triclinium_core.retry.couchbase.strategy import BestEffortRetryStrategy, RetryAction
from triclinium_core.retry.couchbase.tables.reasons import RetryReason

R, S = RetryReason, RequestState

DISPATCHED = Dispatched("10.0.0.1:11210", 17)
LOCKED = ResponseReceived(KvResponse(0x09))


def test_an_answer_after_the_deadline() -> None:
    """As long as nobody said that the time is over, an answer is an answer."""
    machine = machine_of(annotation())
    machine.handle(ResponseReceived(KvResponse(0x00)), 103.0)

    assert S.COMPLETED is machine.state


def test_the_example_of_the_rfc() -> None:
    """2 s into a life of 2.5 s, a strategy asks for 1 s: it waits 500 ms, then times out and is not sent."""
    machine = machine_of(annotation(Says(RetryAction.after(1.0)), submitted_at=0.0, timeout=2.5))
    report, order = machine.handle(LOCKED, 2.0)

    assert RetryAfter(0.5, dispatches=False) == order
    assert isinstance(report, ReportRetry)
    assert (0.5, False) == (report.delay, report.dispatches)
    assert (S.EXPIRING, 2.5, 1) == (machine.state, machine.wakeup, machine.retry_attempts)
    assert [] == list(machine.handle(TimePassed(), 2.4999))

    assert UnambiguousTimeoutException is type(error_of(machine.handle(TimePassed(), 2.5)))


def test_a_driver_that_oversleeps() -> None:
    """A retry that is due is sent as long as there is time, and not when the deadline has passed already."""
    late, too_late = (machine_of(annotation(Says(RetryAction.after(0.1)))) for _ in range(2))
    for machine in (late, too_late):
        machine.handle(LOCKED, 102.0)

    assert [Dispatch()] == list(late.handle(TimePassed(), 102.49))
    assert [Fail] == [type(action) for action in too_late.handle(TimePassed(), 102.5)]


def test_large_instants() -> None:
    """A clock that has run for thirty years moves in larger steps; retries and deadlines still come to an end."""
    start = 1e9
    machine = machine_of(annotation(Says(RetryAction.after(0.1)), submitted_at=start, timeout=0.35))
    now, dispatches = start, 0
    while machine.state is not S.FAILED:
        if machine.state is S.IN_FLIGHT:
            machine.handle(LOCKED, now)
        now = machine.wakeup
        for action in machine.handle(TimePassed(), now):
            if isinstance(action, Dispatch):
                dispatches += 1
                machine.handle(DISPATCHED, now)

    assert 3 == dispatches
    assert start + 0.35 == now


def test_the_timeout_of_the_owner_does_not_count() -> None:
    """What the owner put into the context about times is replaced by what the machine knows."""
    request = RequestAnnotation(
        operation="get",
        idempotent=True,
        strategy=BestEffortRetryStrategy(),
        submitted_at=0.0,
        deadline=1.0,
        error_context=ErrorContext(operation="other", idempotent=False, timeout=99.0, service="query"),
    )
    context = machine_of(request).error_context(0.5)

    assert ("get", True, 1.0, "kv", 0.5) == (
        context.operation,
        context.idempotent,
        context.timeout,
        context.service,
        context.elapsed,
    )


def test_an_endless_request() -> None:
    """Without a deadline nothing wakes it but its retries, and no timeout is told."""
    machine = machine_of(annotation(timeout=math.inf))

    assert math.inf == machine.wakeup
    assert machine.error_context(100.0).timeout is None

    machine.handle(LOCKED, 1e6)

    assert 1e6 + 0.001 == machine.wakeup
    assert [Dispatch()] == list(machine.handle(TimePassed(), 1e6 + 0.001))
    assert math.inf == machine.wakeup


def test_time_that_passes_early_while_waiting() -> None:
    """A delay is waited for to its end, whatever wakes the driver in between."""
    machine = machine_of(annotation())
    machine.handle(LOCKED, 100.0)

    assert [] == list(machine.handle(TimePassed(), 100.0009))
    assert (S.WAITING, 100.001) == (machine.state, machine.wakeup)
    assert [Dispatch()] == list(machine.handle(TimePassed(), 100.001))
    assert (S.PENDING, 102.5) == (machine.state, machine.wakeup)


@rows("handed_over", [HandedOver.PART, HandedOver.ALL])
def test_a_socket_that_closed_under_a_write(handed_over: HandedOver) -> None:
    """Nobody knows whether it was applied: it fails, however little was handed over (decision C24)."""
    machine = machine_of(annotation(), state=S.PENDING)
    machine.handle(DISPATCHED, 100.0)
    error = error_of(machine.handle(SocketClosed(handed_over, "reset", R.AUTHENTICATION_ERROR), 100.0))

    assert RequestCanceledException is type(error)
    assert ("SOCKET_CLOSED_WHILE_IN_FLIGHT", "reset") == (
        error.context.refused_reason,
        error.context.last_dispatch_error,
    )


@rows("asked", [0.0, 0.0005])
def test_time_passes_between_two_attempts(asked: float) -> None:
    """A strategy that wants no delay gets a millisecond."""
    machine = machine_of(annotation(Says(RetryAction.after(asked))))
    *_, order = machine.handle(LOCKED, 100.0)

    assert RetryAfter(0.001, dispatches=True) == order
    assert 100.001 == pytest.approx(machine.wakeup)
