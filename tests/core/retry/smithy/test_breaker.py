"""Breaker strategy: it permits no retry while too many attempts fail."""

from __future__ import annotations

import pytest

from tests.core.retry.smithy.cases import ERRORS, retries_of
from triclinium_core.retry.backoff import ConstantRandom
from triclinium_core.retry.smithy import BreakerRetryStrategy, RetryError
from triclinium_core.retry.smithy.quota import SCOPES_MAX


def breaker(failure_share: float = 0.25) -> BreakerRetryStrategy:
    """Return a breaker strategy."""
    return BreakerRetryStrategy(rng=ConstantRandom(0.0), failure_share=failure_share)


def succeed(strategy: BreakerRetryStrategy, times: int, scope: str | None = None) -> None:
    """Run requests that succeed in their first attempt."""
    for _ in range(times):
        strategy.record_success(token=strategy.acquire_initial_retry_token(token_scope=scope))


def test_it_trips_above_its_share() -> None:
    """The breaker permits a retry while the share of failures is at most its limit, and refuses it above the limit."""
    strategy = breaker()
    succeed(strategy, 7)

    assert 2 == retries_of(strategy)
    assert 0.375 == strategy.failure_share()
    assert 0 == retries_of(strategy)


def test_successes_close_it() -> None:
    """After enough successful requests the breaker permits retries again."""
    strategy = breaker()
    assert 0 == retries_of(strategy)
    succeed(strategy, 99)

    assert 3 == retries_of(strategy)


def test_scopes_are_counted_apart() -> None:
    """Each scope has its own counts; if there are too many scopes, the oldest scope starts again from zero."""
    strategy = breaker(failure_share=1.0)
    token = strategy.acquire_initial_retry_token(token_scope="old")
    retries_of(strategy, "a")
    assert (2.0, 0.0) == (strategy.failure_share("a"), strategy.failure_share("b"))
    for number in range(SCOPES_MAX):
        succeed(strategy, 1, str(number))

    assert 0.0 == strategy.failure_share("a")
    assert 1 == strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["E"]).retry_count


def test_failures_of_forgotten_scopes_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a dropped scope has a failure, the breaker stores this scope again and drops another."""
    monkeypatch.setattr("triclinium_core.retry.smithy.breaker.SCOPES_MAX", 2)
    strategy = breaker(failure_share=1.0)
    tokens = [strategy.acquire_initial_retry_token(token_scope=str(number)) for number in range(5)]
    for token in tokens:
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["E"])

    assert [0.0, 0.0, 0.0, 1.0, 1.0] == [strategy.failure_share(str(number)) for number in range(5)]


def test_a_refusal_states_its_reason() -> None:
    """The error of a refused retry has the number of attempts and the share of failures."""
    strategy = breaker()
    token = strategy.acquire_initial_retry_token()
    with pytest.raises(RetryError, match="1 attempts.*0.25"):
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["E"])

    assert token.is_used
    assert "BreakerRetryStrategy(max_attempts=4, failure_share=0.25)" == repr(strategy)
