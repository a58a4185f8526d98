"""Deadlines and ambiguity: what a request that ran out of time is told, wherever it stood."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from tests.core.retry.request_cases import Awaits, Raises, Says, annotation, machine_of
from tests.rows import rows
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import (
    AmbiguousTimeoutException,
    CouchbaseException,
    RequestCanceledException,
    UnambiguousTimeoutException,
)
from triclinium_core.retry.actions import Dispatch, Fail, ReportRetry, RequestAction, RetryAfter
from triclinium_core.retry.annotation import RequestAnnotation
from triclinium_core.retry.error_map import ErrorMap
from triclinium_core.retry.events import (
    Dispatched,
    DispatchFailed,
    ErrorMapLoaded,
    HandedOver,
    KvResponse,
    RequestEvent,
    ResponseReceived,
    SocketClosed,
    TimePassed,
)
from triclinium_core.retry.machine import RetryMachine
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.states import RequestState
from triclinium_core.retry.strategy import AnyRetryStrategy, BestEffortRetryStrategy, RetryAction

R, S = RetryReason, RequestState

DISPATCHED = Dispatched("10.0.0.1:11210", 17)
LOCKED = ResponseReceived(KvResponse(0x09))
NOT_MY_VBUCKET = ResponseReceived(KvResponse(0x07))
IN_FLIGHT_CLOSED = SocketClosed(HandedOver.PART)
UNSENT_CLOSED = SocketClosed(HandedOver.NOTHING)
UNSENT = DispatchFailed(R.SOCKET_NOT_AVAILABLE)

BEST_EFFORT, LONG, ASYNC = BestEffortRetryStrategy(), Says(RetryAction.after(99.0)), Awaits()


@dataclass(frozen=True)
class History:
    """What happened to a request, and where it stands then."""

    name: str
    strategy: AnyRetryStrategy
    events: list[RequestEvent]
    state: RequestState
    in_doubt: bool
    """Whether nobody knows if the attempt was applied."""


HISTORIES = [
    History("new", BEST_EFFORT, [], S.PENDING, False),
    History("sent", BEST_EFFORT, [DISPATCHED], S.IN_FLIGHT, True),
    History("not sent", BEST_EFFORT, [UNSENT], S.WAITING, False),
    History("not sent, long delay", LONG, [UNSENT], S.EXPIRING, False),
    History("not sent, asking", ASYNC, [UNSENT], S.CONSULTING, False),
    History("answered", BEST_EFFORT, [DISPATCHED, LOCKED], S.WAITING, False),
    History("answered, always retried", ASYNC, [DISPATCHED, NOT_MY_VBUCKET], S.WAITING, False),
    History("answered, long delay", LONG, [DISPATCHED, LOCKED], S.EXPIRING, False),
    History("answered, asking", ASYNC, [DISPATCHED, LOCKED], S.CONSULTING, False),
    History("closed unsent", BEST_EFFORT, [DISPATCHED, UNSENT_CLOSED], S.WAITING, False),
    History("closed unsent, asking", ASYNC, [DISPATCHED, UNSENT_CLOSED], S.CONSULTING, False),
    History("closed in flight, asking", ASYNC, [DISPATCHED, IN_FLIGHT_CLOSED], S.CONSULTING, True),
    History("answered, about to be sent again", BEST_EFFORT, [DISPATCHED, LOCKED, TimePassed()], S.PENDING, False),
    History("answered, sent again", BEST_EFFORT, [DISPATCHED, LOCKED, TimePassed(), DISPATCHED], S.IN_FLIGHT, True),
]

each_history = rows("history", HISTORIES)
each_kind = rows("idempotent", [True, False])


def machine_after(request: RequestAnnotation, history: list[RequestEvent]) -> RetryMachine:
    """Return a machine that heard of ``history``, a hundredth of a second apart."""
    machine = machine_of(request, state=S.PENDING)
    for step, event in enumerate(history):
        machine.handle(event, 100.0 + step / 100)
    return machine


def error_of(actions: object) -> CouchbaseException:
    """Return the error of the last of ``actions``, a Fail."""
    assert isinstance(actions, list)
    last: RequestAction = actions[-1]
    assert isinstance(last, Fail)
    return last.error


def test_every_open_state_has_a_history() -> None:
    """No state in which a deadline may strike is left out."""
    assert {state for state in RequestState if not state.is_final} == {history.state for history in HISTORIES}


@each_history
@each_kind
def test_is_ambiguous(history: History, idempotent: bool) -> None:
    """A write is in doubt while it is on the wire, or was there and got no answer; a read never is (decision C25)."""
    machine = machine_after(annotation(history.strategy, idempotent=idempotent), history.events)

    assert history.state is machine.state
    assert (history.in_doubt and not idempotent) is machine.is_ambiguous

    machine.handle(ErrorMapLoaded("10.0.0.1:11210", ErrorMap(2, 1, {})), 100.1)

    assert (history.in_doubt and not idempotent) is machine.is_ambiguous


@each_history
@each_kind
@rows("late", [0.0, 1e-9, 60.0])
def test_the_deadline_strikes_everywhere(history: History, idempotent: bool, late: float) -> None:
    """Wherever the request stands, it fails then, with the kind of timeout that is true, and is not sent again."""
    machine = machine_after(annotation(history.strategy, idempotent=idempotent), history.events)
    actions = list(machine.handle(TimePassed(), 102.5 + late))
    expected = AmbiguousTimeoutException if history.in_doubt and not idempotent else UnambiguousTimeoutException

    assert [Fail] == [type(action) for action in actions]
    assert expected is type(error_of(actions))
    assert (S.FAILED, math.inf) == (machine.state, machine.wakeup)
    assert (2.5 + late, 2.5) == pytest.approx((error_of(actions).context.elapsed, error_of(actions).context.timeout))


@pytest.mark.parametrize("event", [UNSENT, UNSENT_CLOSED, LOCKED, NOT_MY_VBUCKET])
@pytest.mark.parametrize("late", [0.0, 1.0])
def test_a_failure_after_the_deadline(event: RequestEvent, late: float) -> None:
    """It fails at once with the timeout, and nobody is asked (decision C23)."""
    machine = machine_of(
        annotation(Raises(AssertionError("asked"))), state=S.PENDING if event is UNSENT else S.IN_FLIGHT
    )
    error = error_of(list(machine.handle(event, 102.5 + late)))

    assert UnambiguousTimeoutException is type(error)
    assert 0 == machine.retry_attempts


@each_kind
def test_a_socket_that_closes_after_the_deadline(idempotent: bool) -> None:
    """A write of which nobody knows the outcome times out ambiguously."""
    machine = machine_of(annotation(Raises(AssertionError("asked")), idempotent=idempotent))
    error = error_of(list(machine.handle(IN_FLIGHT_CLOSED, 102.5)))

    assert (UnambiguousTimeoutException if idempotent else AmbiguousTimeoutException) is type(error)


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

    error = error_of(list(machine.handle(TimePassed(), 2.5)))

    assert UnambiguousTimeoutException is type(error)
    assert (
        "upsert 'airline_10': not done within 2.5 s and certainly not applied; the document is locked: retry when the "
        "lock has been released, or has expired [retried once: KV_LOCKED]"
    ) == str(error)


@pytest.mark.parametrize(
    ("delay", "order"),
    [
        (0.499, RetryAfter(0.499, dispatches=True)),
        (0.5, RetryAfter(0.5, dispatches=False)),
        (0.501, RetryAfter(0.5, dispatches=False)),
        (1e300, RetryAfter(0.5, dispatches=False)),
    ],
)
def test_capping(delay: float, order: RetryAfter) -> None:
    """A delay that would reach or pass the deadline is cut to it (decision C23)."""
    machine = machine_of(annotation(Says(RetryAction.after(delay)), submitted_at=0.0, timeout=2.5))

    assert order == machine.handle(LOCKED, 2.0)[-1]
    assert (S.WAITING if order.dispatches else S.EXPIRING) is machine.state


def test_the_controlled_backoff_is_capped() -> None:
    """What is always retried ends with the deadline too (decision C3)."""
    machine = machine_of(annotation(submitted_at=0.0, timeout=2.5), retry_attempts=5)

    assert RetryAfter(0.5, dispatches=False) == machine.handle(NOT_MY_VBUCKET, 2.0)[-1]
    assert UnambiguousTimeoutException is type(error_of(list(machine.handle(TimePassed(), 2.5))))


def test_a_driver_that_oversleeps() -> None:
    """A retry that is due when the deadline has passed already is not sent."""
    machine = machine_of(annotation(Says(RetryAction.after(0.1))))
    machine.handle(LOCKED, 102.0)

    assert S.WAITING is machine.state
    assert [Fail] == [type(action) for action in machine.handle(TimePassed(), 102.5)]


def test_a_driver_that_is_a_little_late() -> None:
    """A retry that is due is sent as long as there is time."""
    machine = machine_of(annotation(Says(RetryAction.after(0.1))))
    machine.handle(LOCKED, 102.0)

    assert [Dispatch()] == list(machine.handle(TimePassed(), 102.49))


def test_no_time_at_all() -> None:
    """A request whose deadline is its submission fails at its first failure, without a retry."""
    machine = machine_of(annotation(timeout=0.0), state=S.PENDING)
    error = error_of(list(machine.handle(UNSENT, 100.0)))

    assert UnambiguousTimeoutException is type(error)
    assert "not done within 0 s" in str(error)


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
        strategy=BEST_EFFORT,
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


@pytest.mark.parametrize("state", [S.PENDING, S.IN_FLIGHT])
def test_time_that_passes_early(state: RequestState) -> None:
    """It is harmless at any time."""
    machine = machine_of(annotation(), state=state)

    assert [] == list(machine.handle(TimePassed(), 102.499))
    assert state is machine.state


def test_time_that_passes_early_while_waiting() -> None:
    """A delay is waited for to its end, whatever wakes the driver in between."""
    machine = machine_of(annotation())
    machine.handle(LOCKED, 100.0)

    assert [] == list(machine.handle(TimePassed(), 100.0009))
    assert (S.WAITING, 100.001) == (machine.state, machine.wakeup)
    assert [Dispatch()] == list(machine.handle(TimePassed(), 100.001))
    assert (S.PENDING, 102.5) == (machine.state, machine.wakeup)


@pytest.mark.parametrize("handed_over", [HandedOver.PART, HandedOver.ALL])
def test_a_socket_that_closed_under_a_write(handed_over: HandedOver) -> None:
    """Nobody knows whether it was applied: it fails, however little was handed over (decision C24)."""
    machine = machine_of(annotation(), state=S.PENDING)
    machine.handle(DISPATCHED, 100.0)
    error = error_of(list(machine.handle(SocketClosed(handed_over, "reset", R.AUTHENTICATION_ERROR), 100.0)))

    assert RequestCanceledException is type(error)
    assert "SOCKET_CLOSED_WHILE_IN_FLIGHT" == error.context.refused_reason
    assert (
        "upsert 'airline_10': the socket was closed before the answer came (SOCKET_CLOSED_WHILE_IN_FLIGHT) and is not "
        "retried: it may have been applied; read the document before writing again [last dispatch error: reset]"
    ) == str(error)


@pytest.mark.parametrize("handed_over", [HandedOver.PART, HandedOver.ALL])
def test_a_socket_that_closed_under_a_read(handed_over: HandedOver) -> None:
    """A read is sent again."""
    machine = machine_of(annotation(idempotent=True))
    actions = machine.handle(SocketClosed(handed_over), 100.0)

    assert RetryAfter(0.001, True) == actions[-1]
    assert {R.SOCKET_CLOSED_WHILE_IN_FLIGHT} == machine.retry_reasons


@pytest.mark.parametrize("asked", [0.0, 0.0005])
def test_time_passes_between_two_attempts(asked: float) -> None:
    """A strategy that wants no delay gets a millisecond."""
    machine = machine_of(annotation(Says(RetryAction.after(asked))))
    *_, order = machine.handle(LOCKED, 100.0)

    assert RetryAfter(0.001, dispatches=True) == order
    assert 100.001 == pytest.approx(machine.wakeup)
