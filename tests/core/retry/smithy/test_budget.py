"""Budget strategy: retries take from a budget, which first attempts fill."""

from __future__ import annotations

import pytest

from tests.core.retry.smithy.cases import ERRORS, retries_of
from triclinium_core.retry.backoff import ConstantRandom
from triclinium_core.retry.smithy import BudgetRetryStrategy, RetryError
from triclinium_core.retry.smithy.quota import SCOPES_MAX


def budget(capacity: float = 5.0, deposit: float = 0.25, max_attempts: int = 1_000) -> BudgetRetryStrategy:
    """Return a strategy whose budget is exact in binary floating point."""
    return BudgetRetryStrategy(rng=ConstantRandom(0.0), capacity=capacity, deposit=deposit, max_attempts=max_attempts)


def test_a_retry_needs_more_than_one_unit() -> None:
    """A budget of five permits four retries, and a further retry after enough first attempts."""
    strategy = budget()

    assert 4 == retries_of(strategy)
    assert [1, 0, 0, 0, 1] == [retries_of(strategy) for _ in range(5)]
    assert 0.25 == strategy.available_budget()


def test_a_success_restores_nothing() -> None:
    """A success does not fill the budget; a first attempt does."""
    strategy = budget()
    token = strategy.acquire_initial_retry_token()
    token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["E"])
    strategy.record_success(token=token)

    assert 4.0 == strategy.available_budget()
    strategy.acquire_initial_retry_token()
    assert 4.25 == strategy.available_budget()


def test_it_never_holds_more_than_its_capacity() -> None:
    """The budget never exceeds its capacity, whether there are retries or not."""
    strategy, short = budget(), budget(deposit=0.75)
    retries_of(short)
    for _ in range(100):
        strategy.record_success(token=strategy.acquire_initial_retry_token())
        short.record_success(token=short.acquire_initial_retry_token())

    assert 5.0 == short.available_budget()
    assert 4 == retries_of(strategy) == retries_of(short)


def test_an_abandoned_retry_costs_nothing() -> None:
    """If the token of a retry is abandoned, the budget gets back its cost."""
    strategy = budget()
    token = strategy.acquire_initial_retry_token()
    strategy.abandon(token=strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["E"]))
    strategy.abandon(token=strategy.acquire_initial_retry_token())

    assert 5.0 == strategy.available_budget()


def test_an_abandoned_first_attempt_feeds_nothing() -> None:
    """Abandoned first attempts do not change the budget."""
    strategy = budget()
    assert 4 == retries_of(strategy)
    for _ in range(100):
        strategy.abandon(token=strategy.acquire_initial_retry_token())

    assert 1.0 == strategy.available_budget()
    assert 1 == retries_of(strategy)


def test_each_scope_has_its_own_budget() -> None:
    """Each scope has its own budget; above ``SCOPES_MAX`` scopes, the budget retried longest ago is full again."""
    strategy = budget()
    first = retries_of(strategy, "a"), retries_of(strategy, "b")
    for number in range(SCOPES_MAX):
        retries_of(strategy, str(number))

    assert (4, 4) == first
    assert 5.0 == strategy.available_budget("a")


def test_a_refusal_states_its_reason() -> None:
    """The error of a refused retry has the scope, the remaining budget and the delay."""
    strategy = budget(capacity=1.0)
    token = strategy.acquire_initial_retry_token(token_scope="orders")
    with pytest.raises(RetryError, match="'orders'.*1 of 1") as caught:
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["E"])

    assert 0.0125 == caught.value.retry_after
    assert 1 == retries_of(budget(max_attempts=2))
    assert "BudgetRetryStrategy(capacity=5, deposit=0.25)" == repr(budget())
