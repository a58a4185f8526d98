"""What a caller chose, checked before anything is called."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry import calls, smithy

SIMPLE = smithy.SimpleRetryStrategy(rng=random.Random(0))


class Later:
    """A strategy that is awaited."""

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> smithy.RetryToken:
        """Never asked: a test that gets here fails."""
        raise NotImplementedError

    async def refresh_retry_token_for_retry(
        self, *, token_to_renew: smithy.RetryToken, error: Exception
    ) -> smithy.RetryToken:
        """Never asked: a test that gets here fails."""
        raise NotImplementedError

    async def record_success(self, *, token: smithy.RetryToken) -> None:
        """Never asked."""

    async def abandon(self, *, token: smithy.RetryToken) -> None:
        """Never asked: a test that gets here fails."""
        raise NotImplementedError


def test_strategies_of_both_kinds() -> None:
    """Whether they are awaited is seen once for a class, or on the object where its class does not show it."""
    at_once = SimpleNamespace(
        acquire_initial_retry_token=print, refresh_retry_token_for_retry=print, record_success=print
    )

    assert [False, True, False] == [calls.CallTerms(found).is_async for found in (SIMPLE, Later(), at_once)]


@rows("strategy", [None, smithy.StandardRetryStrategy, object(), "standard"])
def test_what_is_no_strategy(strategy: object) -> None:
    """A class in the place of its object is a mistake too, and where methods are missing it is said which."""
    with pytest.raises(ArgumentError, match="lacks refresh_retry_token_for_retry, record_success$"):
        calls.CallTerms(SimpleNamespace(acquire_initial_retry_token=print))
    with pytest.raises(ArgumentError, match="must be an object such as StandardRetryStrategy") as caught:
        calls.CallTerms(strategy)  # type: ignore[arg-type]

    assert "strategy" == caught.value.parameter


async def slow(report: object) -> None:
    """Answer too late."""


@rows("parameter", ["token_scope", "name"])
def test_names_are_strings(parameter: str) -> None:
    """Anything else is refused with the other arguments, not when the first attempt begins."""
    with pytest.raises(ArgumentError, match=f"{parameter}=3 must be a string or None") as caught:
        calls.CallTerms(SIMPLE, **{parameter: 3})  # type: ignore[arg-type]

    assert parameter == caught.value.parameter


@rows("hooks", [print, "hooks", [3], (slow,), None])
def test_what_is_no_hook(hooks: object) -> None:
    """One function without a list around it, and what does not answer at once."""
    calls.check_hooks([print])

    with pytest.raises(ArgumentError) as caught:
        calls.CallTerms(SIMPLE, hooks=hooks)  # type: ignore[arg-type]

    assert "hooks" == caught.value.parameter


def test_results_are_welcome_where_nobody_judges() -> None:
    """And where they are judged so."""
    assert calls.CallTerms[int](SIMPLE).info_of_result(1) is None
    assert smithy.ErrorInfo(is_retry_safe=True) == calls.CallTerms[int](
        SIMPLE, retry_result=lambda _: True
    ).info_of_result(1)


def test_refusals_of_any_library() -> None:
    """By the name of the class, or of one above it."""
    foreign = type("RetryError", (Exception,), {})
    below = type("QuotaError", (foreign,), {})

    assert [True, True, True, False] == [
        calls.is_refusal(kind()) for kind in (smithy.RetryError, foreign, below, ValueError)
    ]


@rows(
    ("report", "facts"),
    [
        (
            calls.RetryScheduled("get", 1, 0.5, ValueError("no"), None),
            ["get", "0.500 s", "attempt 1", "ValueError: no"],
        ),
        (
            calls.RetryGivenUp("get", 3, calls.RetryEnding.EXHAUSTED, None, None),
            ["get", "no attempt is left", "attempt 3", "a result"],
        ),
        (calls.RetrySucceeded("get", 2, None), ["get", "succeeded", "attempt 2"]),
    ],
)
def test_reports_are_sentences(report: object, facts: list[str]) -> None:
    """For the log: which call, which attempt, and what comes of it."""
    assert [] == [fact for fact in facts if fact not in str(report)]


def test_a_token_that_is_abandoned() -> None:
    """It goes back once, where that takes no time, also to a strategy whose other methods are awaited."""
    strategy = smithy.StandardRetryStrategy(rng=random.Random(0))
    shape = smithy.as_async(strategy)
    error = smithy.ClassifiedError(OSError(), smithy.ErrorInfo(is_retry_safe=True))
    for terms in (calls.CallTerms[None](strategy), calls.CallTerms[None](shape), calls.CallTerms[None](Later())):
        token = strategy.refresh_retry_token_for_retry(
            token_to_renew=strategy.acquire_initial_retry_token(), error=error
        )
        terms.abandon(None)
        terms.abandon(token)
        terms.abandon(token)

    assert 500 - 14 == strategy.available_quota()


class Half(Later):
    """One method is not awaited."""

    def record_success(self, *, token: smithy.RetryToken) -> None:  # type: ignore[override]
        """Never asked."""


def test_a_strategy_of_both_kinds_at_once() -> None:
    """Whoever asked it would await what is no answer, or drop an answer unawaited."""
    with pytest.raises(ArgumentError, match="make them all of one kind") as caught:
        calls.CallTerms(Half())  # type: ignore[arg-type]

    assert "strategy" == caught.value.parameter
