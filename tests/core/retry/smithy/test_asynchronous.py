"""Asynchronous form of a strategy: it returns the strategy's results, and its coroutines never suspend."""

from __future__ import annotations

from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from tests.core.retry.smithy.cases import Failure, Fixed
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry import smithy
from triclinium_core.retry.smithy import RetryToken
from triclinium_core.retry.smithy.asynchronous import AsyncShape


def answer(question: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine that never suspends."""
    with pytest.raises(StopIteration) as ended:
        question.send(None)
    return ended.value.value


def test_the_same_results() -> None:
    """The asynchronous form has the tokens, delays and quota of the strategy, and its coroutines need no event loop."""
    strategy = smithy.StandardRetryStrategy(rng=Fixed(1.0))
    shape = smithy.as_async(strategy)

    token = answer(shape.acquire_initial_retry_token(token_scope="s3"))
    token = answer(shape.refresh_retry_token_for_retry(token_to_renew=token, error=Failure()))

    assert (1, 0.05, "s3") == (token.retry_count, token.retry_delay, token.token_scope)
    assert 486 == strategy.available_quota("s3")
    assert answer(shape.record_success(token=token)) is None
    assert 500 == strategy.available_quota("s3")


def test_a_refusal_is_raised_when_awaited() -> None:
    """If a retry is refused, the coroutine raises the error when the coroutine runs."""
    shape = smithy.as_async(smithy.SimpleRetryStrategy(rng=Fixed(), max_attempts=1))
    token = answer(shape.acquire_initial_retry_token())

    with pytest.raises(smithy.RetryError, match="max_attempts=1"):
        shape.refresh_retry_token_for_retry(token_to_renew=token, error=Failure()).send(None)


def test_an_asynchronous_strategy_stays_as_it_is() -> None:
    """``as_async`` returns an asynchronous strategy unchanged."""
    strategy = smithy.SimpleRetryStrategy(rng=Fixed())
    shape = AsyncShape(strategy)

    assert (False, True) == (smithy.is_async(strategy), smithy.is_async(shape))
    assert strategy is shape.strategy
    assert shape is smithy.as_async(shape)


def test_the_attributes_of_the_design() -> None:
    """The asynchronous form has the limit and the backoff of its strategy, or neither if the strategy has neither."""
    strategy = smithy.StandardRetryStrategy(rng=Fixed(), max_attempts=7)
    full, bare = smithy.as_async(strategy), smithy.as_async(Plain())

    assert (7, strategy.backoff_strategy) == (full.max_attempts, full.backoff_strategy)
    assert [False, False] == [hasattr(bare, name) for name in ("max_attempts", "backoff_strategy")]


def test_an_asynchronous_form_is_not_wrapped_again() -> None:
    """``AsyncShape`` refuses a strategy that is already asynchronous."""
    shape: Any = AsyncShape(smithy.SimpleRetryStrategy(rng=Fixed()))

    with pytest.raises(ArgumentError, match="strategy=.*AsyncShape"):
        AsyncShape(shape)


def test_a_token_is_abandoned_without_waiting() -> None:
    """``abandon`` is synchronous; it does nothing if the wrapped strategy has no ``abandon``."""
    strategy = smithy.StandardRetryStrategy(rng=Fixed())
    token = strategy.refresh_retry_token_for_retry(
        token_to_renew=strategy.acquire_initial_retry_token(), error=Failure(safe=True)
    )
    taken = strategy.available_quota()
    AsyncShape(strategy).abandon(token=token)
    AsyncShape(Plain()).abandon(token=token)

    assert (486, 500) == (taken, strategy.available_quota())


def unused(*args: Any, **given: Any) -> Any:
    """Fail, because only the presence of these methods is tested."""
    raise AssertionError


class Plain:
    """Strategy without ``abandon``."""

    acquire_initial_retry_token = refresh_retry_token_for_retry = record_success = unused


class Mixed(Plain):
    """Synchronous strategy except for one asynchronous method."""

    async def record_success(self, *, token: RetryToken) -> None:
        """Do nothing: no test calls this."""


@rows("make", [AsyncShape, smithy.as_async])
@rows(
    ("given", "hint"),
    [
        (SimpleNamespace(record_success=unused), "lacks acquire_initial_retry_token, refresh_retry_token_for_retry$"),
        (Plain, "it is a class"),
        (Mixed(), "record_success"),
    ],
)
def test_an_invalid_strategy_is_refused(make: Any, given: Any, hint: str) -> None:
    """An object that lacks methods, a class, and an object with both sync and async methods are refused."""
    with refusal_of("strategy", hint):
        make(given)
