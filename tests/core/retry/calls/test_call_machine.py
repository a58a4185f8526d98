"""One call and its attempts: what the machine decides, and what it keeps."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.calls.call_machine import (
    RECORDS_MAX,
    AwaitStrategy,
    CallMachine,
    GiveUp,
    Sleep,
    first_delay,
    refuse_first,
)
from triclinium_core.retry.calls.history import AttemptRecord, RetryEnding, attempts_of
from triclinium_core.retry.calls.terms import CallTerms
from triclinium_core.retry.smithy.adaptive import AdaptiveRetryStrategy
from triclinium_core.retry.smithy.asynchronous import as_async
from triclinium_core.retry.smithy.classification import ErrorInfo
from triclinium_core.retry.smithy.protocols import RetryError, RetryToken
from triclinium_core.retry.smithy.simple import SimpleRetryStrategy
from triclinium_core.retry.smithy.standard import StandardRetryStrategy


class Token:
    """A token of nobody in particular."""

    def __init__(self, retry_delay: object, retry_count: int = 0) -> None:
        self.retry_delay: float = retry_delay  # type: ignore[assignment]
        self.retry_count = retry_count


class Answering:
    """A strategy that answers what it was told to: tokens, or exceptions that it raises."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.shown: list[Exception] = []

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return a token without a delay."""
        return Token(0.0)

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Return or raise the next answer."""
        self.shown.append(error)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    def record_success(self, *, token: RetryToken) -> None:
        """Do nothing."""


class ForeignRetryError(Exception):
    """Another library's refusal."""


ForeignRetryError.__name__ = "RetryError"


def machine_of(
    strategy: Answering | StandardRetryStrategy | SimpleRetryStrategy,
    *,
    on: type[Exception] | Callable[[Exception], bool | ErrorInfo] | None = ConnectionError,
    attempts_max: int | None = None,
) -> CallMachine:
    """Return the machine of a call that began at second 10."""
    terms: CallTerms[None] = CallTerms(strategy, on=on)
    token = strategy.acquire_initial_retry_token()
    return CallMachine(terms, token=token, began=10.0, attempts_max=attempts_max)


def test_a_strategy_lets_it_go_on() -> None:
    """The delay is the token's, and the next attempt has the next number and that token."""
    token = Token(0.5, 1)
    machine = machine_of(Answering(token))
    decision = machine.fail(ConnectionError(), now=11.0, deadline=math.inf)

    assert Sleep(0.5) == decision
    assert (2, token) == (machine.number, machine.token)
    assert [1] == [record.number for record in machine.records]


def test_the_last_error_has_all_attempts() -> None:
    """Number, error, the delay before, the time taken, and why there was no other one."""
    machine = machine_of(Answering(Token(0.5, 1), RetryError("no")))
    first, second = ConnectionError("first"), ConnectionError("second")
    machine.fail(first, now=10.25, deadline=math.inf)
    machine.begin(10.75)
    decision = machine.fail(second, now=11.0, deadline=math.inf)

    assert GiveUp(RetryEnding.REFUSED) == decision
    assert (
        AttemptRecord(1, first, 0.0, 0.25),
        AttemptRecord(2, second, 0.5, 0.25, RetryEnding.REFUSED),
    ) == attempts_of(second)
    assert () == attempts_of(first)


@rows(
    ("refusal", "ending"),
    [
        (RetryError("quota", retry_after=0.1), RetryEnding.QUOTA),
        (RetryError("other"), RetryEnding.REFUSED),
        (ForeignRetryError("of another library"), RetryEnding.REFUSED),
    ],
)
def test_a_refusal_ends_the_call(refusal: Exception, ending: RetryEnding) -> None:
    """The delay that a refusal names stands for the quota."""
    decision = machine_of(Answering(refusal)).fail(ConnectionError(), now=10.0, deadline=math.inf)

    assert GiveUp(ending) == decision


class Limited(Answering):
    """Tells how many attempts it permits."""

    max_attempts = 3


def test_a_refusal_before_the_last_attempt() -> None:
    """It has another reason."""
    decision = machine_of(Limited(RetryError("other"))).fail(ConnectionError(), now=10.0, deadline=math.inf)

    assert GiveUp(RetryEnding.REFUSED) == decision


@rows(("limit", "ending"), [({"max_attempts": 1}, RetryEnding.EXHAUSTED), ({"quota_capacity": 13}, RetryEnding.QUOTA)])
def test_why_the_standard_strategy_refuses(limit: dict[str, int], ending: RetryEnding) -> None:
    """It says how many attempts it permits, and what its quota would have waited for."""
    machine = machine_of(StandardRetryStrategy(rng=random.Random(0), **limit))  # type: ignore[arg-type]

    assert GiveUp(ending) == machine.fail(ConnectionError(), now=10.0, deadline=math.inf)


def test_what_is_not_retry_safe_is_not_shown_to_the_strategy() -> None:
    """Nothing is taken from its quota either."""
    strategy = Answering()
    decision = machine_of(strategy).fail(ValueError(), now=10.0, deadline=math.inf)

    assert GiveUp(RetryEnding.NOT_RETRY_SAFE) == decision
    assert [] == strategy.shown


def test_a_call_without_a_token_has_one_attempt() -> None:
    """There is nothing to refresh."""
    machine = CallMachine(CallTerms(Answering(), on=ConnectionError), token=None, began=10.0)

    assert GiveUp(RetryEnding.NO_TOKEN) == machine.fail(ConnectionError(), now=10.0, deadline=math.inf)


@rows(
    ("deadline", "decision"),
    [
        (12.0, GiveUp(RetryEnding.DEADLINE)),
        (12.0 + 1e-12, GiveUp(RetryEnding.DEADLINE)),
        (12.1, Sleep(1.0)),
    ],
)
def test_no_attempt_begins_at_the_deadline(deadline: float, decision: GiveUp | Sleep) -> None:
    """A delay that ends at the deadline is too long, and so is one that misses it by the noise of a sum of floats."""
    assert decision == machine_of(Answering(Token(1.0))).fail(ConnectionError(), now=11.0, deadline=deadline)


@rows("deadline", [11.0, 10.0, -math.inf])
def test_a_deadline_that_has_passed_costs_no_quota(deadline: float) -> None:
    """The strategy is not asked."""
    strategy = Answering()

    assert GiveUp(RetryEnding.DEADLINE) == machine_of(strategy).fail(ConnectionError(), now=11.0, deadline=deadline)
    assert [] == strategy.shown


def test_a_test_may_permit_less() -> None:
    """Then the strategy is not asked about the last attempt."""
    strategy = Answering(Token(0.0))
    machine = machine_of(strategy, attempts_max=2)
    decisions = [machine.fail(ConnectionError(), now=10.0, deadline=math.inf) for _ in range(2)]

    assert [Sleep(0.0), GiveUp(RetryEnding.EXHAUSTED)] == decisions
    assert 1 == len(strategy.shown)


@rows("delay", [math.nan, math.inf, -0.1, "soon", None, True, 10**400])
def test_a_delay_that_cannot_be_slept(delay: object) -> None:
    """The strategy and the value are named, and the error of the attempt is the cause."""
    error = ConnectionError()
    machine = machine_of(Answering(Token(delay)))

    with pytest.raises(ArgumentError, match="strategy Answering answered retry_delay=") as caught:
        machine.fail(error, now=10.0, deadline=math.inf)

    assert ("strategy", error) == (caught.value.parameter, caught.value.__cause__)


def test_an_answer_that_is_no_token() -> None:
    """What has no delay at all is shown as it is."""
    machine = machine_of(Answering("later"))

    with pytest.raises(ArgumentError, match="answered 'later' for a token"):
        machine.fail(ConnectionError(), now=10.0, deadline=math.inf)


def test_a_defect_of_the_strategy_is_no_refusal() -> None:
    """It leaves as it is."""
    defect = ZeroDivisionError()

    with pytest.raises(ZeroDivisionError) as caught:
        machine_of(Answering(defect)).fail(ConnectionError(), now=10.0, deadline=math.inf)

    assert defect is caught.value


def test_nonsense_of_a_function_names_the_error_as_its_cause() -> None:
    """The caller's function answered neither yes nor no."""
    error = ConnectionError()

    with pytest.raises(ArgumentError, match="answered None; it must answer True, False") as caught:
        machine_of(Answering(), on=lambda _: None).fail(error, now=10.0, deadline=math.inf)  # type: ignore[arg-type,return-value]

    assert error is caught.value.__cause__


def test_a_result_that_is_to_be_retried() -> None:
    """Strategies see an error that says what the caller says, and the record has none."""
    strategy = Answering(Token(0.0), RetryError())
    machine = machine_of(strategy)
    info = ErrorInfo(is_retry_safe=True, retry_after=3.0, is_throttling_error=True)
    decisions = [machine.reject(info, now=10.0, deadline=math.inf) for _ in range(2)]

    assert [Sleep(0.0), GiveUp(RetryEnding.REFUSED)] == decisions
    assert (True, 3.0, True) == tuple(
        getattr(strategy.shown[0], name) for name in ("is_retry_safe", "retry_after", "is_throttling_error")
    )


def test_a_strategy_that_answers_later() -> None:
    """Its answer is handed out to be awaited, and what comes of it goes on as if it had come at once."""
    terms: CallTerms[None] = CallTerms(as_async(Answering()), on=ConnectionError)
    machine = CallMachine(terms, token=Token(0.0), began=10.0)
    decision = machine.fail(ConnectionError(), now=10.0, deadline=math.inf)
    assert isinstance(decision, AwaitStrategy)
    decision.answer.close()  # type: ignore[attr-defined]

    assert Sleep(0.5) == machine.grant(Token(0.5, 1), now=10.0, deadline=math.inf)
    assert GiveUp(RetryEnding.REFUSED) == machine.refuse(RetryError())


def test_no_more_records_than_can_be_kept() -> None:
    """Of a call with very many attempts the last ones are remembered."""
    machine = machine_of(Answering(*[Token(0.0)] * (RECORDS_MAX + 5), RetryError()))
    for _ in range(RECORDS_MAX + 5):
        machine.fail(ConnectionError(), now=10.0, deadline=math.inf)
    error = ConnectionError()
    machine.fail(error, now=10.0, deadline=math.inf)

    assert list(range(6, RECORDS_MAX + 7)) == [record.number for record in attempts_of(error)]


def test_a_success_forgets() -> None:
    """Errors of attempts before are not kept alive."""
    machine = machine_of(Answering(Token(0.0), RetryError()))
    machine.fail(ConnectionError("before"), now=10.0, deadline=math.inf)
    machine.succeed()
    error = ConnectionError("after")
    machine.fail(error, now=10.0, deadline=math.inf)

    assert [error] == [record.error for record in attempts_of(error)]


def test_the_first_token() -> None:
    """Its delay is looked at as any other's, and only a refusal may stand in its place."""
    terms: CallTerms[None] = CallTerms(Answering())
    refuse_first(RetryError())

    assert 0.5 == first_delay(terms, Token(0.5))
    with pytest.raises(ArgumentError, match="retry_delay=nan"):
        first_delay(terms, Token(math.nan))
    with pytest.raises(ZeroDivisionError):
        refuse_first(ZeroDivisionError())


def test_throttling_is_shown_to_the_strategy_whatever_comes() -> None:
    """It cannot permit a retry of what is not retry-safe."""
    permitting, refusing = Answering(Token(0.0)), Answering(RetryError())
    decisions = [
        machine_of(strategy, on=lambda _: ErrorInfo(is_throttling_error=True)).fail(
            ConnectionError(), now=10.0, deadline=math.inf
        )
        for strategy in (permitting, refusing)
    ]

    assert [GiveUp(RetryEnding.NOT_RETRY_SAFE)] * 2 == decisions
    assert [1, 1] == [len(strategy.shown) for strategy in (permitting, refusing)]


class Taking(Answering):
    """Takes tokens back."""

    def abandon(self, *, token: RetryToken) -> None:
        """Write it down."""
        self.taken_back = token


def test_a_retry_of_what_is_not_retry_safe_is_given_back() -> None:
    """A strategy that was shown it because it throttles may permit one all the same."""
    token = Token(0.0)
    strategy = Taking(token)
    machine_of(strategy, on=lambda _: ErrorInfo(is_throttling_error=True)).fail(
        ConnectionError(), now=10.0, deadline=math.inf
    )

    assert token is strategy.taken_back


def test_throttling_is_shown_to_the_strategy_at_the_deadline_too() -> None:
    """Its rate falls; what the retry took is given back, for it is not made."""
    strategy = AdaptiveRetryStrategy(rng=random.Random(0), clock=lambda: 10.0)
    machine = machine_of(strategy, on=lambda _: ErrorInfo(is_retry_safe=True, is_throttling_error=True))

    assert GiveUp(RetryEnding.DEADLINE) == machine.fail(ConnectionError(), now=10.0, deadline=10.0)
    assert (500, 0.5) == (strategy.available_quota(), strategy.allowed_rate)
