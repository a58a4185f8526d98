"""What a caller chose, checked before anything is called."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.calls.history import RetryEnding
from triclinium_core.retry.calls.reports import RetryGivenUp, RetryScheduled, RetrySucceeded
from triclinium_core.retry.calls.terms import CallTerms, check_hooks, is_refusal
from triclinium_core.retry.smithy.asynchronous import as_async
from triclinium_core.retry.smithy.classification import ClassifiedError, ErrorInfo
from triclinium_core.retry.smithy.protocols import RetryError, RetryToken
from triclinium_core.retry.smithy.simple import SimpleRetryStrategy
from triclinium_core.retry.smithy.standard import StandardRetryStrategy

SIMPLE = SimpleRetryStrategy(rng=random.Random(0))


class Later:
    """A strategy that is awaited."""

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Never asked: a test that gets here fails."""
        raise NotImplementedError

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Never asked: a test that gets here fails."""
        raise NotImplementedError

    async def record_success(self, *, token: RetryToken) -> None:
        """Never asked."""

    async def abandon(self, *, token: RetryToken) -> None:
        """Never asked: a test that gets here fails."""
        raise NotImplementedError


def test_strategies_of_both_kinds() -> None:
    """Whether they are awaited is seen once for a class, or on the object where its class does not show it."""
    at_once = SimpleNamespace(
        acquire_initial_retry_token=print, refresh_retry_token_for_retry=print, record_success=print
    )

    assert [False, True, False] == [CallTerms(found).is_async for found in (SIMPLE, Later(), at_once)]


@pytest.mark.parametrize("strategy", [None, StandardRetryStrategy, object(), "standard"])
def test_what_is_no_strategy(strategy: object) -> None:
    """A class in the place of its object is a mistake too."""
    with pytest.raises(InvalidArgumentException, match="must be an object such as StandardRetryStrategy") as caught:
        CallTerms(strategy)  # type: ignore[arg-type]

    assert "strategy" == caught.value.parameter


def test_a_strategy_that_lacks_a_method() -> None:
    """Which one is said."""
    with pytest.raises(InvalidArgumentException, match="it lacks refresh_retry_token_for_retry, record_success$"):
        CallTerms(SimpleNamespace(acquire_initial_retry_token=print))


async def slow(report: object) -> None:
    """Answer too late."""


@pytest.mark.parametrize("parameter", ["token_scope", "name"])
def test_names_are_strings(parameter: str) -> None:
    """What is none is refused with the other arguments, not when the first attempt begins."""
    with pytest.raises(InvalidArgumentException, match=f"{parameter}=3 must be a string or None") as caught:
        CallTerms(SIMPLE, **{parameter: 3})  # type: ignore[arg-type]

    assert parameter == caught.value.parameter


@pytest.mark.parametrize("hooks", [print, "hooks", [3], (slow,), None])
def test_what_is_no_hook(hooks: object) -> None:
    """One function without a list around it, and what does not answer at once."""
    check_hooks([print])

    with pytest.raises(InvalidArgumentException) as caught:
        CallTerms(SIMPLE, hooks=hooks)  # type: ignore[arg-type]

    assert "hooks" == caught.value.parameter


def test_results_are_welcome_where_nobody_judges() -> None:
    """And where they are judged so."""
    assert CallTerms[int](SIMPLE).info_of_result(1) is None
    assert ErrorInfo(is_retry_safe=True) == CallTerms[int](SIMPLE, retry_result=lambda _: True).info_of_result(1)


def test_tokens_are_abandoned_where_the_strategy_takes_them_back() -> None:
    """At once; and whatever it raises is dropped."""
    standard = StandardRetryStrategy(rng=random.Random(0))
    token = standard.acquire_initial_retry_token()
    error = ConnectionError()
    error.is_retry_safe = True  # type: ignore[attr-defined]
    renewed = standard.refresh_retry_token_for_retry(token_to_renew=token, error=error)
    taken = standard.available_quota()
    terms: CallTerms[None] = CallTerms(standard)
    terms.abandon(None)
    terms.abandon(renewed)
    terms.abandon(renewed)
    CallTerms(Later()).abandon(renewed)

    assert (486, 500) == (taken, standard.available_quota())


def test_refusals_of_any_library() -> None:
    """By the name of the class, or of one above it."""
    foreign = type("RetryError", (Exception,), {})
    below = type("QuotaError", (foreign,), {})

    assert [True, True, True, False] == [is_refusal(kind()) for kind in (RetryError, foreign, below, ValueError)]


def test_reports_are_sentences() -> None:
    """For the log."""
    assert "get is tried again in 0.500 s (attempt 1: ValueError: no)" == str(
        RetryScheduled("get", 1, 0.5, ValueError("no"), None)
    )
    assert "get is not tried again: no attempt is left (attempt 3: a result that was to be retried)" == str(
        RetryGivenUp("get", 3, RetryEnding.EXHAUSTED, None, None)
    )
    assert "get succeeded at attempt 2" == str(RetrySucceeded("get", 2, None))


def test_a_token_that_is_abandoned() -> None:
    """It goes back where that takes no time, also to a strategy whose other methods are awaited."""
    strategy = StandardRetryStrategy(rng=random.Random(0))
    shape = as_async(strategy)
    error = ClassifiedError(OSError(), ErrorInfo(is_retry_safe=True))
    for terms in (CallTerms[None](strategy), CallTerms[None](shape), CallTerms[None](Later())):
        token = strategy.refresh_retry_token_for_retry(
            token_to_renew=strategy.acquire_initial_retry_token(), error=error
        )
        terms.abandon(token)

    assert 500 - 14 == strategy.available_quota()


class Half(Later):
    """One method is not awaited."""

    def record_success(self, *, token: RetryToken) -> None:  # type: ignore[override]
        """Never asked."""


def test_a_strategy_of_both_kinds_at_once() -> None:
    """Whoever asked it would await what is no answer, or drop an answer unawaited."""
    with pytest.raises(InvalidArgumentException, match="make them all of one kind") as caught:
        CallTerms(Half())  # type: ignore[arg-type]

    assert "strategy" == caught.value.parameter
