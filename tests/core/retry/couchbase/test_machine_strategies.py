"""Strategies in the machine, including hostile, broken and asynchronous ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.core.retry.couchbase import request_cases
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry import couchbase
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.couchbase import RetryAction

R, S = couchbase.RetryReason, couchbase.RetryState

LOCKED = couchbase.ResponseReceived(couchbase.KvResponse(0x09, request_cases.NODE))
NOT_MY_VBUCKET = couchbase.ResponseReceived(couchbase.KvResponse(0x07, request_cases.NODE))


def computes(compute: Callable[[], object]) -> Any:
    """Return a strategy that calls a function for its decision."""
    return SimpleNamespace(retry_after=lambda request, reason: compute())


class Hides:
    """Object that raises when ``retry_after`` is accessed."""

    @property
    def retry_after(self) -> Callable[[couchbase.RetryRequest, couchbase.RetryReason], RetryAction]:
        """Raise OSError on access."""
        raise OSError("hidden")


async def generate(request: couchbase.RetryRequest, reason: couchbase.RetryReason, /) -> AsyncIterator[RetryAction]:
    """Yield a retry, although a strategy has to return it."""
    yield RetryAction.after(0.0)


async def answer_later() -> RetryAction:
    """Return a retry, asynchronously."""
    return RetryAction.after(0.0)


def backoff_of(delay: object) -> Callable[[int, Random], float]:
    """Return a backoff that always returns ``delay``."""
    answer: Any = delay
    return lambda retry_attempts, rng: answer


BROKEN: list[tuple[str, Any, type[BaseException]]] = [
    ("raises", request_cases.Raises(ZeroDivisionError("mine")), ZeroDivisionError),
    (
        "raises one of ours",
        request_cases.Raises(errors.DocumentLockedException("mine")),
        errors.DocumentLockedException,
    ),
    ("raises StopIteration", request_cases.Raises(StopIteration()), StopIteration),
    ("raises a group", request_cases.Raises(ExceptionGroup("two", [ValueError(), OSError()])), ExceptionGroup),
    ("answers None", request_cases.Says(None), TypeError),
    ("answers a number", request_cases.Says(0.5), TypeError),
    ("answers a class", request_cases.Says(RetryAction), TypeError),
    ("answers a coroutine", computes(answer_later), TypeError),
    ("answers a negative delay", computes(lambda: RetryAction.after(-0.1)), InvalidArgumentException),
    ("answers NaN", computes(lambda: RetryAction.after(math.nan)), InvalidArgumentException),
    ("answers infinity", computes(lambda: RetryAction.after(math.inf)), InvalidArgumentException),
    ("builds a negative delay", computes(lambda: RetryAction(-0.1)), InvalidArgumentException),
    ("builds NaN", computes(lambda: RetryAction(math.nan)), InvalidArgumentException),
    ("asks for a foreign error", computes(lambda: RetryAction.no_retry(OSError)), InvalidArgumentException),  # type: ignore[arg-type]
    (
        "asks for an error that cannot be built",
        request_cases.Says(RetryAction.no_retry(request_cases.Unbuildable)),
        TypeError,
    ),
    ("a backoff of NaN", couchbase.BestEffortRetryStrategy(backoff_of(math.nan)), InvalidArgumentException),
    ("a backoff below zero", couchbase.BestEffortRetryStrategy(backoff_of(-1.0)), InvalidArgumentException),
    ("a backoff of None", couchbase.BestEffortRetryStrategy(backoff_of(None)), InvalidArgumentException),
    ("the class, not an object", couchbase.BestEffortRetryStrategy, TypeError),
    ("no strategy at all", None, AttributeError),
    ("a name", "best_effort", AttributeError),
    ("hides its method", Hides(), OSError),
    ("generates", SimpleNamespace(retry_after=generate), TypeError),
    ("needs other arguments", SimpleNamespace(retry_after=lambda: RetryAction.after(0.0)), TypeError),
]


@rows(("what", "strategy", "cause"), BROKEN)
def test_a_broken_strategy_fails_the_request(what: str, strategy: Any, cause: type[BaseException]) -> None:
    """If a strategy raises or returns an invalid value, the request fails with a report and the cause (C28)."""
    request = request_cases.annotation()
    object.__setattr__(request, "strategy", strategy)
    machine = request_cases.machine_of(request)
    actions = machine.handle(LOCKED, 100.5)
    error = request_cases.error_of(actions)

    assert [couchbase.ReportRefusal, couchbase.Fail] == [type(action) for action in actions]
    assert errors.RequestCanceledException is type(error)
    assert cause is type(error.__cause__)
    assert cause.__name__ in str(error)
    assert ("KV_LOCKED", 0) == (error.context.refused_reason, error.context.retry_attempts)
    assert (S.FAILED, math.inf) == (machine.state, machine.wakeup)
    assert [couchbase.Ignore()] == list(machine.handle(couchbase.WakeupReached(), 102.5))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_interrupts_pass(error: BaseException) -> None:
    """KeyboardInterrupt, SystemExit and GeneratorExit of a strategy propagate, and the state does not change."""
    machine = request_cases.machine_of(request_cases.annotation(request_cases.Raises(error)))
    with pytest.raises(type(error)):
        machine.handle(LOCKED, 100.5)

    assert S.IN_FLIGHT is machine.state


@rows("asked", [request_cases.Refusal, errors.CouchbaseException, errors.DocumentLockedException])
def test_the_strategy_selects_the_error(asked: type[errors.CouchbaseException]) -> None:
    """If the strategy returns an error class, that class replaces the status's class in the error and in the report."""
    actions = request_cases.machine_of(
        request_cases.annotation(request_cases.Says(RetryAction.no_retry(asked)))
    ).handle(LOCKED, 100.5)
    error, report = request_cases.error_of(actions), actions[0]

    assert (asked, "KV_LOCKED") == (type(error), error.context.refused_reason)
    assert isinstance(report, couchbase.ReportRefusal)
    assert asked.__name__ == report.error


def consulting() -> couchbase.RetryMachine:
    """Return a machine that has waited since 100.5 for its strategy's decision about a lock."""
    machine = request_cases.machine_of(request_cases.annotation(request_cases.Awaits()), state=S.PENDING)
    machine.handle(couchbase.Dispatched(request_cases.NODE, 17), 100.0)
    machine.handle(LOCKED, 100.5)
    return machine


def test_an_asynchronous_strategy_is_consulted() -> None:
    """The machine orders a call of an asynchronous strategy; until its decision, the wakeup is the deadline."""
    strategy = request_cases.Awaits()
    machine = request_cases.machine_of(request_cases.annotation(strategy))
    seen = machine.snapshot(100.5)
    (action,) = machine.handle(LOCKED, 100.5)

    assert couchbase.AskStrategy(strategy, seen, R.KV_LOCKED) == action
    assert (S.CONSULTING, 102.5, 0) == (machine.state, machine.wakeup, machine.retry_attempts)


def test_an_asynchronous_retry() -> None:
    """The delay of a retry starts at the asynchronous decision, and the report has the request at that time."""
    machine = consulting()
    report, order = machine.handle(couchbase.StrategyAnswered(RetryAction.after(0.25)), 101.0)

    assert couchbase.RetryAfter(0.25, dispatches=True) == order
    assert isinstance(report, couchbase.ReportRetry)
    assert (1.0, 1.5, 0.5, R.KV_LOCKED, request_cases.NODE) == (
        report.request.age,
        report.request.remaining,
        report.request.since_first_failure,
        report.reason,
        report.node,
    )
    assert (S.WAITING, 101.25, 0) == (machine.state, machine.wakeup, machine.retry_attempts)


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (couchbase.StrategyAnswered(None), TypeError),
        (couchbase.StrategyAnswered(None, OSError("down")), OSError),
        (couchbase.StrategyAnswered(RetryAction.after(0.0), OSError("down")), OSError),
        (couchbase.StrategyAnswered(0.5), TypeError),  # type: ignore[arg-type]
        (couchbase.StrategyAnswered(RetryAction.no_retry(request_cases.Unbuildable)), TypeError),
        (couchbase.StrategyAnswered(None, KeyboardInterrupt()), KeyboardInterrupt),
    ],
)
def test_an_asynchronous_failure(event: couchbase.StrategyAnswered, cause: type[BaseException]) -> None:
    """If an asynchronous strategy raises or returns an invalid value, the request fails with the cause (C28)."""
    machine = consulting()
    actions = machine.handle(event, 101.0)

    assert [couchbase.ReportRefusal, couchbase.Fail] == [type(action) for action in actions]
    assert cause is type(request_cases.error_of(actions).__cause__)
    assert errors.RequestCanceledException is type(request_cases.error_of(actions))


@rows("answer", [RetryAction.after(0.0), RetryAction.after(9.0), RetryAction.no_retry(request_cases.Refusal)])
@rows("now", [102.5, 102.6])
def test_a_decision_at_the_deadline(answer: RetryAction, now: float) -> None:
    """A decision at or after the deadline is ignored, and the request times out (decision C23)."""
    machine = consulting()
    actions = machine.handle(couchbase.StrategyAnswered(answer), now)

    assert [couchbase.ReportRefusal, couchbase.Fail] == [type(action) for action in actions]
    assert errors.UnambiguousTimeoutException is type(request_cases.error_of(actions))
    assert 0 == machine.retry_attempts


@rows("late", [couchbase.StrategyAnswered(RetryAction.after(0.0)), couchbase.StrategyAnswered(None, OSError())])
@rows("closed", [True, False])
def test_the_deadline_before_the_decision(late: couchbase.StrategyAnswered, closed: bool) -> None:
    """A request that times out before the decision reports its failure; a write on a closed socket is ambiguous."""
    machine = request_cases.machine_of(request_cases.annotation(request_cases.Awaits()))
    machine.handle(couchbase.SocketClosed(couchbase.HandedOver.ALL) if closed else LOCKED, 100.5)
    actions = machine.handle(couchbase.WakeupReached(), 102.5)
    error, (report, _), reason = (
        request_cases.error_of(actions),
        actions,
        R.SOCKET_CLOSED_WHILE_IN_FLIGHT if closed else R.KV_LOCKED,
    )

    assert isinstance(report, couchbase.ReportRefusal)
    assert (reason, type(error).__name__, 0.0) == (report.reason, report.error, report.request.remaining)
    assert frozenset({reason}) == error.context.retry_reasons
    assert (errors.AmbiguousTimeoutException if closed else errors.UnambiguousTimeoutException) is type(error)
    assert [couchbase.Ignore()] == list(machine.handle(late, 102.6))


def test_some_failures_bypass_an_asynchronous_strategy() -> None:
    """If a reason is always retried or the deadline has passed, the machine does not call the asynchronous strategy."""
    always, late = (
        request_cases.machine_of(request_cases.annotation(request_cases.Awaits())),
        request_cases.machine_of(request_cases.annotation(request_cases.Awaits())),
    )

    assert [couchbase.RefreshTopology, couchbase.ReportRetry, couchbase.RetryAfter] == [
        type(a) for a in always.handle(NOT_MY_VBUCKET, 100.5)
    ]
    assert [couchbase.ReportRefusal, couchbase.Fail] == [type(action) for action in late.handle(LOCKED, 102.5)]


def test_an_asynchronous_strategy_sees_the_entry() -> None:
    """The request has the entry of the error map before and after the decision, although the connection is closed."""
    entry = request_cases.map_entry("retry-now", "conn-state-invalidated", "temp")
    machine = request_cases.machine_of(
        request_cases.annotation(request_cases.Awaits()), error_maps=request_cases.map_store({0x7FF0: entry})
    )
    consult, close = machine.handle(couchbase.ResponseReceived(couchbase.KvResponse(0x7FF0, request_cases.NODE)), 100.5)

    assert isinstance(consult, couchbase.AskStrategy)
    assert entry is consult.request.error_map_entry
    assert isinstance(close, couchbase.CloseConnection)

    report, _ = machine.handle(couchbase.StrategyAnswered(RetryAction.after(0.1)), 100.6)

    assert isinstance(report, couchbase.ReportRetry)
    assert entry is report.request.error_map_entry


def test_both_kinds_have_equal_results() -> None:
    """If a synchronous and an asynchronous strategy make equal decisions, the machine returns equal actions."""
    answers = [
        RetryAction.after(0.1),
        RetryAction.after(99.0),
        RetryAction.after(0.1, within=0.05),
        RetryAction.no_retry(),
        RetryAction.no_retry(request_cases.Refusal),
    ]
    events: list[couchbase.RequestEvent] = [
        LOCKED,
        couchbase.SocketClosed(couchbase.HandedOver.ALL),
        couchbase.SocketClosed(couchbase.HandedOver.NOTHING),
    ]
    for answer, event, idempotent in itertools.product(answers, events, [True, False]):
        at_once = request_cases.machine_of(request_cases.annotation(request_cases.Says(answer), idempotent=idempotent))
        awaited = request_cases.machine_of(request_cases.annotation(request_cases.Awaits(), idempotent=idempotent))
        expected = at_once.handle(event, 100.5)
        awaited.handle(event, 100.5)
        actual = awaited.handle(couchbase.StrategyAnswered(answer), 100.5)
        assert [type(action) for action in expected] == [type(action) for action in actual]
        assert (at_once.state, at_once.wakeup) == (awaited.state, awaited.wakeup)
        assert at_once.error_context(101.0) == awaited.error_context(101.0)
