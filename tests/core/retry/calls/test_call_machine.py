"""Call machine: its decisions after each attempt of a call, and its records of the attempts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial

import pytest

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry import calls, smithy
from triclinium_core.retry.calls.call_machine import RECORDS_MAX
from triclinium_core.retry.smithy import StandardRetryStrategy


class Token:
    """Minimal token."""

    def __init__(self, retry_delay: object, retry_count: int = 0) -> None:
        self.retry_delay: float = retry_delay  # type: ignore[assignment]
        self.retry_count = retry_count


class Answering:
    """Strategy with scripted results: it returns the tokens and raises the exceptions in their order."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.shown: list[Exception] = []

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> smithy.RetryToken:
        """Return a token without a delay."""
        return Token(0.0)

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: smithy.RetryToken, error: Exception
    ) -> smithy.RetryToken:
        """Return or raise the next scripted result."""
        self.shown.append(error)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    def record_success(self, *, token: smithy.RetryToken) -> None:
        """Do nothing."""


class ForeignRetryError(Exception):
    """Refusal of a retry by a strategy of another library."""


ForeignRetryError.__name__ = "RetryError"


def machine_of(
    strategy: Answering | StandardRetryStrategy | smithy.SimpleRetryStrategy,
    *,
    on: type[Exception] | Callable[[Exception], bool | smithy.ErrorInfo] | None = ConnectionError,
    attempts_max: int | None = None,
) -> calls.CallMachine:
    """Return the machine of a call that started at second 10."""
    terms: calls.CallTerms[None] = calls.CallTerms(strategy, on=on)
    token = strategy.acquire_initial_retry_token()
    return calls.CallMachine(terms, token=token, began=10.0, attempts_max=attempts_max)


def fail(machine: calls.CallMachine, error: Exception | None = None) -> object:
    """Fail an attempt at second 10, without a deadline. Return the decision of the machine."""
    return machine.fail(ConnectionError() if error is None else error, now=10.0, deadline=math.inf)


def test_a_permitted_retry_sleeps() -> None:
    """A permitted retry sleeps for the delay of the new token, and the next attempt has that token."""
    token = Token(0.5, 1)
    machine = machine_of(Answering(token))
    decision = machine.fail(ConnectionError(), now=11.0, deadline=math.inf)

    assert calls.Sleep(0.5) == decision
    assert (2, token) == (machine.number, machine.token)
    assert [1] == [record.number for record in machine.records]


def test_the_last_error_has_all_attempts() -> None:
    """The last error has the number, error, delay and duration of each attempt, and the reason why the call ended."""
    machine = machine_of(Answering(Token(0.5, 1), smithy.RetryError("no")))
    first, second = ConnectionError("first"), ConnectionError("second")
    machine.fail(first, now=10.25, deadline=math.inf)
    machine.begin(10.75)
    decision = machine.fail(second, now=11.0, deadline=math.inf)

    assert calls.GiveUp(calls.RetryEnding.REFUSED) == decision
    assert (
        calls.AttemptRecord(1, first, 0.0, 0.25),
        calls.AttemptRecord(2, second, 0.5, 0.25, calls.RetryEnding.REFUSED),
    ) == calls.attempts_of(second)
    assert () == calls.attempts_of(first)


class Limited(Answering):
    """Strategy with a maximum number of attempts."""

    max_attempts = 3


@rows(
    ("make", "ending"),
    [
        (partial(Answering, smithy.RetryError("quota", retry_after=0.1)), calls.RetryEnding.QUOTA),
        (partial(Answering, smithy.RetryError("other")), calls.RetryEnding.REFUSED),
        (partial(Answering, ForeignRetryError("of another library")), calls.RetryEnding.REFUSED),
        (partial(Limited, smithy.RetryError("other")), calls.RetryEnding.REFUSED),
        (partial(StandardRetryStrategy, rng=random.Random(0), max_attempts=1), calls.RetryEnding.EXHAUSTED),
        (partial(StandardRetryStrategy, rng=random.Random(0), quota_capacity=13), calls.RetryEnding.QUOTA),
    ],
)
def test_a_refusal_ends_the_call(
    make: Callable[[], Answering | StandardRetryStrategy], ending: calls.RetryEnding
) -> None:
    """A refusal ends the call: as exhausted at the attempt limit, by quota with ``retry_after``, else as refused."""
    assert calls.GiveUp(ending) == fail(machine_of(make()))


def test_unsafe_errors_do_not_reach_the_strategy() -> None:
    """An error that is neither retry-safe nor throttling ends the call without a request to the strategy."""
    strategy = Answering()
    decision = machine_of(strategy).fail(ValueError(), now=10.0, deadline=math.inf)

    assert calls.GiveUp(calls.RetryEnding.NOT_RETRY_SAFE) == decision
    assert [] == strategy.shown


def test_a_call_without_a_token_has_one_attempt() -> None:
    """Without a token, the first failure ends the call."""
    machine = calls.CallMachine(calls.CallTerms(Answering(), on=ConnectionError), token=None, began=10.0)

    assert calls.GiveUp(calls.RetryEnding.NO_TOKEN) == fail(machine)


@rows(
    ("deadline", "decision"),
    [
        (12.0, calls.GiveUp(calls.RetryEnding.DEADLINE)),
        (12.0 + 1e-12, calls.GiveUp(calls.RetryEnding.DEADLINE)),
        (12.1, calls.Sleep(1.0)),
    ],
)
def test_no_attempt_begins_at_the_deadline(deadline: float, decision: calls.GiveUp | calls.Sleep) -> None:
    """A delay that ends at the deadline, or within rounding error of it, ends the call; a shorter one does not."""
    assert decision == machine_of(Answering(Token(1.0))).fail(ConnectionError(), now=11.0, deadline=deadline)


@rows("deadline", [11.0, 10.0, -math.inf])
def test_a_deadline_that_has_passed_costs_no_quota(deadline: float) -> None:
    """At or after the deadline, an error that is not throttling ends the call without a request to the strategy."""
    strategy = Answering()

    assert calls.GiveUp(calls.RetryEnding.DEADLINE) == machine_of(strategy).fail(
        ConnectionError(), now=11.0, deadline=deadline
    )
    assert [] == strategy.shown


def test_a_lower_attempt_limit_applies() -> None:
    """With a lower attempt limit, the machine does not request a retry after the last attempt."""
    strategy = Answering(Token(0.0))
    machine = machine_of(strategy, attempts_max=2)
    decisions = [fail(machine) for _ in range(2)]

    assert [calls.Sleep(0.0), calls.GiveUp(calls.RetryEnding.EXHAUSTED)] == decisions
    assert 1 == len(strategy.shown)


@rows(
    ("token", "said"),
    [
        *((Token(delay), "retry_delay=") for delay in (math.nan, math.inf, -0.1, "soon", None, True, 10**400)),
        ("later", "'later'"),
    ],
)
def test_an_invalid_token(token: object, said: str) -> None:
    """A token with an invalid delay, or an object without one, raises an error caused by the attempt's error."""
    error = ConnectionError()
    machine = machine_of(Answering(token))

    with refusal_of("strategy", f"strategy Answering .*{said}") as caught:
        fail(machine, error)

    assert error is caught.value.__cause__


def test_another_exception_of_the_strategy() -> None:
    """If the strategy raises an exception that is not a refusal, the machine propagates it unchanged."""
    defect = ZeroDivisionError()

    with pytest.raises(ZeroDivisionError) as caught:
        fail(machine_of(Answering(defect)))

    assert defect is caught.value


def test_an_invalid_result_of_on() -> None:
    """If ``on`` returns an invalid value, the machine raises an error whose cause is the attempt's error."""
    error = ConnectionError()

    with pytest.raises(ArgumentError, match="^on=.* None") as caught:
        machine_of(Answering(), on=lambda _: None).fail(error, now=10.0, deadline=math.inf)  # type: ignore[arg-type,return-value]

    assert error is caught.value.__cause__


def test_a_rejected_result_is_retried() -> None:
    """If the caller rejects a result, the strategy gets an error with the information that the caller returned."""
    strategy = Answering(Token(0.0), smithy.RetryError())
    machine = machine_of(strategy)
    info = smithy.ErrorInfo(is_retry_safe=True, retry_after=3.0, is_throttling_error=True)
    decisions = [machine.reject(info, now=10.0, deadline=math.inf) for _ in range(2)]

    assert [calls.Sleep(0.0), calls.GiveUp(calls.RetryEnding.REFUSED)] == decisions
    assert (True, 3.0, True) == tuple(
        getattr(strategy.shown[0], name) for name in ("is_retry_safe", "retry_after", "is_throttling_error")
    )


def test_an_asynchronous_strategy() -> None:
    """The machine returns the awaitable of an asynchronous strategy, and continues with the awaited result."""
    terms: calls.CallTerms[None] = calls.CallTerms(smithy.as_async(Answering()), on=ConnectionError)
    machine = calls.CallMachine(terms, token=Token(0.0), began=10.0)
    decision = fail(machine)
    assert isinstance(decision, calls.AwaitStrategy)
    decision.answer.close()  # type: ignore[attr-defined]

    assert calls.Sleep(0.5) == machine.grant(Token(0.5, 1), now=10.0, deadline=math.inf)
    assert calls.GiveUp(calls.RetryEnding.REFUSED) == machine.refuse(smithy.RetryError())


def test_records_are_limited() -> None:
    """A call with very many attempts keeps the last ``RECORDS_MAX`` records."""
    machine = machine_of(Answering(*[Token(0.0)] * (RECORDS_MAX + 5), smithy.RetryError()))
    for _ in range(RECORDS_MAX + 5):
        fail(machine)
    error = ConnectionError()
    fail(machine, error)

    assert list(range(6, RECORDS_MAX + 7)) == [record.number for record in calls.attempts_of(error)]


def test_a_success_clears_the_records() -> None:
    """After a success the machine drops the records of earlier attempts and their errors."""
    machine = machine_of(Answering(Token(0.0), smithy.RetryError()))
    machine.fail(ConnectionError("before"), now=10.0, deadline=math.inf)
    machine.succeed()
    error = ConnectionError("after")
    fail(machine, error)

    assert [error] == [record.error for record in calls.attempts_of(error)]


def test_the_first_token() -> None:
    """The machine checks the first token's delay; a refusal may replace the token, and other exceptions propagate."""
    terms: calls.CallTerms[None] = calls.CallTerms(Answering())
    calls.refuse_first(smithy.RetryError())

    assert 0.5 == calls.first_delay(terms, Token(0.5))
    with pytest.raises(ArgumentError, match="retry_delay=nan"):
        calls.first_delay(terms, Token(math.nan))
    with pytest.raises(ZeroDivisionError):
        calls.refuse_first(ZeroDivisionError())


class Taking(Answering):
    """Strategy that accepts abandoned tokens."""

    def abandon(self, *, token: smithy.RetryToken) -> None:
        """Record the token."""
        self.taken_back = token


def test_the_strategy_gets_unsafe_throttling_errors() -> None:
    """An unsafe throttling error reaches the strategy, but the machine abandons the token of a permitted retry."""
    token = Token(0.0)
    permitting, refusing = Taking(token), Answering(smithy.RetryError())
    decisions = [
        fail(machine_of(strategy, on=lambda _: smithy.ErrorInfo(is_throttling_error=True)))
        for strategy in (permitting, refusing)
    ]

    assert [calls.GiveUp(calls.RetryEnding.NOT_RETRY_SAFE)] * 2 == decisions
    assert [1, 1] == [len(strategy.shown) for strategy in (permitting, refusing)]
    assert token is permitting.taken_back


def test_throttling_at_the_deadline_lowers_the_rate() -> None:
    """Throttling at the deadline lowers the rate, and the strategy gets back the cost of the unused retry."""
    strategy = smithy.AdaptiveRetryStrategy(rng=random.Random(0), clock=lambda: 10.0)
    machine = machine_of(strategy, on=lambda _: smithy.ErrorInfo(is_retry_safe=True, is_throttling_error=True))

    assert calls.GiveUp(calls.RetryEnding.DEADLINE) == machine.fail(ConnectionError(), now=10.0, deadline=10.0)
    assert (500, 0.5) == (strategy.available_quota(), strategy.allowed_rate)
