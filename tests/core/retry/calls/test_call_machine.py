"""Call machine: its decisions after each attempt of a call, and its records of the attempts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

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


@rows(
    ("refusal", "ending"),
    [
        (smithy.RetryError("quota", retry_after=0.1), calls.RetryEnding.QUOTA),
        (smithy.RetryError("other"), calls.RetryEnding.REFUSED),
        (ForeignRetryError("of another library"), calls.RetryEnding.REFUSED),
    ],
)
def test_a_refusal_ends_the_call(refusal: Exception, ending: calls.RetryEnding) -> None:
    """If the strategy refuses a retry, the call ends; a refusal with ``retry_after`` counts as a refusal by quota."""
    decision = machine_of(Answering(refusal)).fail(ConnectionError(), now=10.0, deadline=math.inf)

    assert calls.GiveUp(ending) == decision


class Limited(Answering):
    """Strategy with a maximum number of attempts."""

    max_attempts = 3


def test_a_refusal_before_the_last_attempt() -> None:
    """If the strategy refuses a retry before the maximum number of attempts, the call does not end as exhausted."""
    decision = machine_of(Limited(smithy.RetryError("other"))).fail(ConnectionError(), now=10.0, deadline=math.inf)

    assert calls.GiveUp(calls.RetryEnding.REFUSED) == decision


@rows(
    ("limit", "ending"),
    [({"max_attempts": 1}, calls.RetryEnding.EXHAUSTED), ({"quota_capacity": 13}, calls.RetryEnding.QUOTA)],
)
def test_why_the_standard_strategy_refuses(limit: dict[str, int], ending: calls.RetryEnding) -> None:
    """The ending is "exhausted" at the attempt limit, and "quota" if the quota of the strategy refuses the retry."""
    machine = machine_of(StandardRetryStrategy(rng=random.Random(0), **limit))  # type: ignore[arg-type]

    assert calls.GiveUp(ending) == machine.fail(ConnectionError(), now=10.0, deadline=math.inf)


def test_unsafe_errors_do_not_reach_the_strategy() -> None:
    """An error that is not retry-safe ends the call, and the machine requests no token from the strategy."""
    strategy = Answering()
    decision = machine_of(strategy).fail(ValueError(), now=10.0, deadline=math.inf)

    assert calls.GiveUp(calls.RetryEnding.NOT_RETRY_SAFE) == decision
    assert [] == strategy.shown


def test_a_call_without_a_token_has_one_attempt() -> None:
    """Without a token, the first failure ends the call."""
    machine = calls.CallMachine(calls.CallTerms(Answering(), on=ConnectionError), token=None, began=10.0)

    assert calls.GiveUp(calls.RetryEnding.NO_TOKEN) == machine.fail(ConnectionError(), now=10.0, deadline=math.inf)


@rows(
    ("deadline", "decision"),
    [
        (12.0, calls.GiveUp(calls.RetryEnding.DEADLINE)),
        (12.0 + 1e-12, calls.GiveUp(calls.RetryEnding.DEADLINE)),
        (12.1, calls.Sleep(1.0)),
    ],
)
def test_no_attempt_begins_at_the_deadline(deadline: float, decision: calls.GiveUp | calls.Sleep) -> None:
    """A delay that ends at the deadline, or within rounding error of it, ends the call."""
    assert decision == machine_of(Answering(Token(1.0))).fail(ConnectionError(), now=11.0, deadline=deadline)


@rows("deadline", [11.0, 10.0, -math.inf])
def test_a_deadline_that_has_passed_costs_no_quota(deadline: float) -> None:
    """At or after the deadline, the machine ends the call and requests no token from the strategy."""
    strategy = Answering()

    assert calls.GiveUp(calls.RetryEnding.DEADLINE) == machine_of(strategy).fail(
        ConnectionError(), now=11.0, deadline=deadline
    )
    assert [] == strategy.shown


def test_a_lower_attempt_limit_applies() -> None:
    """With a lower attempt limit, the machine does not request a retry after the last attempt."""
    strategy = Answering(Token(0.0))
    machine = machine_of(strategy, attempts_max=2)
    decisions = [machine.fail(ConnectionError(), now=10.0, deadline=math.inf) for _ in range(2)]

    assert [calls.Sleep(0.0), calls.GiveUp(calls.RetryEnding.EXHAUSTED)] == decisions
    assert 1 == len(strategy.shown)


@rows("delay", [math.nan, math.inf, -0.1, "soon", None, True, 10**400])
def test_an_invalid_delay(delay: object) -> None:
    """An invalid delay raises an error with the strategy and the value, caused by the attempt's error."""
    error = ConnectionError()
    machine = machine_of(Answering(Token(delay)))

    with pytest.raises(ArgumentError, match="strategy Answering .* retry_delay=") as caught:
        machine.fail(error, now=10.0, deadline=math.inf)

    assert ("strategy", error) == (caught.value.parameter, caught.value.__cause__)


def test_an_object_that_is_not_a_token() -> None:
    """A strategy that returns an object without a delay causes an error that shows the object."""
    machine = machine_of(Answering("later"))

    with pytest.raises(ArgumentError, match="strategy Answering .* 'later'"):
        machine.fail(ConnectionError(), now=10.0, deadline=math.inf)


def test_another_exception_of_the_strategy() -> None:
    """If the strategy raises an exception that is not a refusal, the machine propagates it unchanged."""
    defect = ZeroDivisionError()

    with pytest.raises(ZeroDivisionError) as caught:
        machine_of(Answering(defect)).fail(ConnectionError(), now=10.0, deadline=math.inf)

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
    decision = machine.fail(ConnectionError(), now=10.0, deadline=math.inf)
    assert isinstance(decision, calls.AwaitStrategy)
    decision.answer.close()  # type: ignore[attr-defined]

    assert calls.Sleep(0.5) == machine.grant(Token(0.5, 1), now=10.0, deadline=math.inf)
    assert calls.GiveUp(calls.RetryEnding.REFUSED) == machine.refuse(smithy.RetryError())


def test_records_are_limited() -> None:
    """A call with very many attempts keeps the last ``RECORDS_MAX`` records."""
    machine = machine_of(Answering(*[Token(0.0)] * (RECORDS_MAX + 5), smithy.RetryError()))
    for _ in range(RECORDS_MAX + 5):
        machine.fail(ConnectionError(), now=10.0, deadline=math.inf)
    error = ConnectionError()
    machine.fail(error, now=10.0, deadline=math.inf)

    assert list(range(6, RECORDS_MAX + 7)) == [record.number for record in calls.attempts_of(error)]


def test_a_success_clears_the_records() -> None:
    """After a success the machine drops the records of earlier attempts and their errors."""
    machine = machine_of(Answering(Token(0.0), smithy.RetryError()))
    machine.fail(ConnectionError("before"), now=10.0, deadline=math.inf)
    machine.succeed()
    error = ConnectionError("after")
    machine.fail(error, now=10.0, deadline=math.inf)

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


def test_the_strategy_gets_unsafe_throttling_errors() -> None:
    """A throttling error that is not retry-safe reaches the strategy, but the machine ignores a permitted retry."""
    permitting, refusing = Answering(Token(0.0)), Answering(smithy.RetryError())
    decisions = [
        machine_of(strategy, on=lambda _: smithy.ErrorInfo(is_throttling_error=True)).fail(
            ConnectionError(), now=10.0, deadline=math.inf
        )
        for strategy in (permitting, refusing)
    ]

    assert [calls.GiveUp(calls.RetryEnding.NOT_RETRY_SAFE)] * 2 == decisions
    assert [1, 1] == [len(strategy.shown) for strategy in (permitting, refusing)]


class Taking(Answering):
    """Strategy that accepts abandoned tokens."""

    def abandon(self, *, token: smithy.RetryToken) -> None:
        """Record the token."""
        self.taken_back = token


def test_an_unsafe_permitted_retry_is_abandoned() -> None:
    """If a strategy permits a retry of an error that is not retry-safe, the machine abandons the token."""
    token = Token(0.0)
    strategy = Taking(token)
    machine_of(strategy, on=lambda _: smithy.ErrorInfo(is_throttling_error=True)).fail(
        ConnectionError(), now=10.0, deadline=math.inf
    )

    assert token is strategy.taken_back


def test_throttling_at_the_deadline_lowers_the_rate() -> None:
    """Throttling at the deadline lowers the rate, and the strategy gets back the cost of the unused retry."""
    strategy = smithy.AdaptiveRetryStrategy(rng=random.Random(0), clock=lambda: 10.0)
    machine = machine_of(strategy, on=lambda _: smithy.ErrorInfo(is_retry_safe=True, is_throttling_error=True))

    assert calls.GiveUp(calls.RetryEnding.DEADLINE) == machine.fail(ConnectionError(), now=10.0, deadline=10.0)
    assert (500, 0.5) == (strategy.available_quota(), strategy.allowed_rate)
