"""The budget strategy: first attempts feed retries, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.core.retry.smithy.cases import retries_of
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.backoff import ConstantRandom
from triclinium_core.retry.smithy import BudgetRetryStrategy, ClassifiedError, ErrorInfo, RetryError
from triclinium_core.retry.smithy.quota import SCOPES_MAX

ERROR = ClassifiedError(OSError(), ErrorInfo(is_retry_safe=True))


def budget(capacity: float = 5.0, deposit: float = 0.25, max_attempts: int = 1_000) -> BudgetRetryStrategy:
    """Return a strategy whose budget is exact in binary."""
    return BudgetRetryStrategy(rng=ConstantRandom(0.0), capacity=capacity, deposit=deposit, max_attempts=max_attempts)


def test_a_retry_is_made_while_more_than_one_is_left() -> None:
    """So four of a budget of five, and another one as soon as first attempts have added what is missing."""
    strategy = budget()

    assert 4 == retries_of(strategy)
    assert [1, 0, 0, 0, 1] == [retries_of(strategy) for _ in range(5)]
    assert 0.25 == strategy.available_budget()


def test_a_success_gives_nothing_back() -> None:
    """Only requests do."""
    strategy = budget()
    token = strategy.acquire_initial_retry_token()
    token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERROR)
    strategy.record_success(token=token)

    assert 4.0 == strategy.available_budget()
    strategy.acquire_initial_retry_token()
    assert 4.25 == strategy.available_budget()


def test_it_never_holds_more_than_its_capacity() -> None:
    """However many requests need no retry, and also after one that needed some."""
    strategy, short = budget(), budget(deposit=0.75)
    retries_of(short)
    for _ in range(100):
        strategy.record_success(token=strategy.acquire_initial_retry_token())
        short.record_success(token=short.acquire_initial_retry_token())

    assert 5.0 == short.available_budget()
    assert 4 == retries_of(strategy) == retries_of(short)


def test_an_attempt_that_is_not_made_costs_nothing() -> None:
    """What it took is back."""
    strategy = budget()
    token = strategy.acquire_initial_retry_token()
    strategy.abandon(token=strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERROR))
    strategy.abandon(token=strategy.acquire_initial_retry_token())

    assert 5.0 == strategy.available_budget()


def test_a_first_attempt_that_is_not_made_feeds_nothing() -> None:
    """Whoever leaves before anything is sent neither fills an empty budget nor empties a full one."""
    strategy = budget()
    assert 4 == retries_of(strategy)
    for _ in range(100):
        strategy.abandon(token=strategy.acquire_initial_retry_token())

    assert 1.0 == strategy.available_budget()
    assert 1 == retries_of(strategy)


def test_scopes_have_budgets_of_their_own() -> None:
    """And so many that are short are remembered; the one that took a retry longest ago counts as full again."""
    strategy = budget()
    first = retries_of(strategy, "a"), retries_of(strategy, "b")
    for number in range(SCOPES_MAX):
        retries_of(strategy, str(number))

    assert (4, 4) == first
    assert 5.0 == strategy.available_budget("a")


def test_a_refusal_says_why() -> None:
    """With what is left, and the delay that there would have been; a limit of attempts ends a request as well."""
    strategy = budget(capacity=1.0)
    token = strategy.acquire_initial_retry_token(token_scope="orders")
    with pytest.raises(RetryError, match="'orders'.*1 of 1") as caught:
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERROR)

    assert 0.0125 == caught.value.retry_after
    assert 1 == retries_of(budget(max_attempts=2))
    assert "BudgetRetryStrategy(capacity=5, deposit=0.25)" == repr(budget())


@pytest.mark.parametrize(
    ("build", "parameter"), [(lambda: budget(capacity=-1.0), "capacity"), (lambda: budget(deposit=-1.0), "deposit")]
)
def test_nonsense_is_refused(build: Callable[[], BudgetRetryStrategy], parameter: str) -> None:
    """By the name of what is wrong."""
    with pytest.raises(ArgumentError) as caught:
        build()

    assert parameter == caught.value.parameter
