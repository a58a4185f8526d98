"""Adaptive strategy: a standard strategy that also limits the rate of all sends once the service has throttled."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.core.retry.smithy.cases import ERRORS, Failure, Fixed, delays_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.smithy import AdaptiveRetryStrategy, RetryError
from triclinium_core.retry.smithy.rate_limiter import WAIT_MAX


class Clock:
    """Clock whose time the test sets."""

    def __init__(self) -> None:
        self.now: Any = 0.0

    def __call__(self) -> float:
        """Return the current time."""
        return self.now  # type: ignore[no-any-return]


@pytest.fixture
def clock() -> Clock:
    """Return a clock at 0."""
    return Clock()


def adaptive(clock: Clock, **options: Any) -> AdaptiveRetryStrategy:
    """Return a strategy whose backoffs are 0, so that only the rate limit causes delays."""
    return AdaptiveRetryStrategy(rng=Fixed(0.0), clock=clock, **options)


def throttle(strategy: AdaptiveRetryStrategy) -> None:
    """Report a throttling error of one request, and abandon the token of the permitted retry."""
    token = strategy.acquire_initial_retry_token()
    strategy.abandon(token=strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["T"]))


def first_delays(strategy: AdaptiveRetryStrategy, requests: int) -> list[float]:
    """Start requests. Return the delays of their first attempts."""
    return [strategy.acquire_initial_retry_token().retry_delay for _ in range(requests)]


def test_like_the_standard_strategy_until_it_throttles(clock: Clock) -> None:
    """Until the service throttles, attempts, delays and quota follow the standard strategy."""
    strategy = AdaptiveRetryStrategy(rng=Fixed(1.0), clock=clock)

    assert ("ok", [0.05, 0.1]) == delays_of(strategy, ["E", "E", "ok"])
    assert 486 == strategy.available_quota()
    assert [0.0] * 50 == first_delays(strategy, 50)
    assert strategy.allowed_rate is None


def test_first_attempts_wait_after_throttling(clock: Clock) -> None:
    """After throttling, first attempts follow each other at the allowed rate of one request per two seconds."""
    strategy = adaptive(clock)
    throttle(strategy)

    assert [2.0, 4.0, 6.0] == first_delays(strategy, 3)
    clock.now = 6.0
    assert [2.0] == first_delays(strategy, 1)
    assert 0.5 == strategy.allowed_rate


def test_retries_wait_as_well(clock: Clock) -> None:
    """A retry waits for its backoff or for its turn at the allowed rate, whichever is later."""
    strategy = adaptive(clock)
    throttle(strategy)
    token = strategy.acquire_initial_retry_token()

    second = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["E"])
    third = strategy.refresh_retry_token_for_retry(token_to_renew=second, error=Failure(retry_after=60.0))

    assert [2.0, 4.0, 60.0] == [token.retry_delay, second.retry_delay, third.retry_delay]


def test_a_refused_retry_still_lowers_the_rate(clock: Clock) -> None:
    """If a retry is refused, its throttling error still lowers the rate, but the retry reserves no slot."""
    strategy = adaptive(clock, max_attempts=1)
    token = strategy.acquire_initial_retry_token()

    with pytest.raises(RetryError):
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["T"])

    assert 0.5 == strategy.allowed_rate
    assert [2.0] == first_delays(strategy, 1)


def test_successes_raise_the_rate(clock: Clock) -> None:
    """While requests succeed, the rate rises with the time since throttling, up to twice the measured rate."""
    strategy = adaptive(clock)
    throttle(strategy)

    rates = []
    for second in range(1, 40):
        clock.now = float(second)
        delays_of(strategy, ["ok"])
        rates.append(strategy.allowed_rate)

    assert 0.5 == rates[0]
    assert 2.0 == pytest.approx(rates[-1])


def test_abandon_frees_the_slot(clock: Clock) -> None:
    """If a token is abandoned, the next request gets its slot, and the token cannot be used again."""
    strategy = adaptive(clock)
    throttle(strategy)
    tokens = [strategy.acquire_initial_retry_token() for _ in range(3)]

    strategy.abandon(token=tokens[1])

    assert [6.0] == first_delays(strategy, 1)
    assert [True, True, True] == [token.holds_slot for token in tokens]
    with pytest.raises(ArgumentError, match="has been used"):
        strategy.abandon(token=tokens[1])
    assert [8.0] == first_delays(strategy, 1)


def test_abandon_without_a_slot(clock: Clock) -> None:
    """A token with the maximum delay holds no slot, so abandoning the token frees no slot."""
    strategy = adaptive(clock)
    early = strategy.acquire_initial_retry_token()
    throttle(strategy)
    tokens = [strategy.acquire_initial_retry_token() for _ in range(12)]

    assert not early.holds_slot
    strategy.abandon(token=early)
    assert [True] * 9 + [False] * 3 == [token.holds_slot for token in tokens]
    strategy.abandon(token=tokens[-1])
    assert [WAIT_MAX] == first_delays(strategy, 1)


def test_scopes_share_a_rate(clock: Clock) -> None:
    """Requests of different scopes share one rate."""
    strategy = adaptive(clock)
    throttle(strategy)

    assert 2.0 == strategy.acquire_initial_retry_token(token_scope="a").retry_delay
    assert 4.0 == strategy.acquire_initial_retry_token(token_scope="b").retry_delay


@rows("now", [-1.0, math.nan, "soon"])
def test_a_clock_that_goes_back(clock: Clock, now: Any) -> None:
    """If the clock goes back or returns no time, the strategy raises an error; token and quota do not change."""
    strategy = adaptive(clock)
    token = strategy.acquire_initial_retry_token()
    token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["E"])
    clock.now = now

    with pytest.raises(ArgumentError, match="now="):
        strategy.acquire_initial_retry_token()
    with pytest.raises(ArgumentError, match="now="):
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["E"])
    with pytest.raises(ArgumentError, match="now="):
        strategy.record_success(token=token)
    clock.now = 1.0
    assert 486 == strategy.available_quota()
    strategy.record_success(token=token)


def test_a_token_of_another_strategy(clock: Clock) -> None:
    """A token of another strategy is refused, and the rate does not change."""
    strategy, token = adaptive(clock), adaptive(clock).acquire_initial_retry_token()

    with pytest.raises(ArgumentError, match="comes from another strategy"):
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["T"])
    with pytest.raises(ArgumentError, match="comes from another strategy"):
        strategy.record_success(token=token)
    with pytest.raises(ArgumentError, match="comes from another strategy"):
        strategy.abandon(token=token)
    assert strategy.allowed_rate is None
