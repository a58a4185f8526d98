"""The adaptive strategy: the standard one, and a rate that all sends keep to once the service has throttled."""

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
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now: Any = 0.0

    def __call__(self) -> float:
        """Return the present."""
        return self.now  # type: ignore[no-any-return]


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


def adaptive(clock: Clock, **options: Any) -> AdaptiveRetryStrategy:
    """Return a strategy whose backoffs are 0, so that only the rate has anybody wait."""
    return AdaptiveRetryStrategy(rng=Fixed(0.0), clock=clock, **options)


def throttle(strategy: AdaptiveRetryStrategy) -> None:
    """Let one request be throttled, without a retry."""
    token = strategy.acquire_initial_retry_token()
    strategy.abandon(token=strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["T"]))


def first_delays(strategy: AdaptiveRetryStrategy, requests: int) -> list[float]:
    """Begin requests, and return what each first attempt waits for."""
    return [strategy.acquire_initial_retry_token().retry_delay for _ in range(requests)]


def test_like_the_standard_strategy_until_it_throttles(clock: Clock) -> None:
    """Attempts, delays and quota are the same, and nobody waits for a rate."""
    strategy = AdaptiveRetryStrategy(rng=Fixed(1.0), clock=clock)

    assert ("ok", [0.05, 0.1]) == delays_of(strategy, ["E", "E", "ok"])
    assert 486 == strategy.available_quota()
    assert [0.0] * 50 == first_delays(strategy, 50)
    assert strategy.allowed_rate is None


def test_first_attempts_wait_after_throttling(clock: Clock) -> None:
    """Each for a place of its own: the service bears one request in two seconds."""
    strategy = adaptive(clock)
    throttle(strategy)

    assert [2.0, 4.0, 6.0] == first_delays(strategy, 3)
    clock.now = 6.0
    assert [2.0] == first_delays(strategy, 1)
    assert 0.5 == strategy.allowed_rate


def test_retries_wait_as_well(clock: Clock) -> None:
    """For the backoff or the rate, whichever is longer."""
    strategy = adaptive(clock)
    throttle(strategy)
    token = strategy.acquire_initial_retry_token()

    second = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["E"])
    third = strategy.refresh_retry_token_for_retry(token_to_renew=second, error=Failure(retry_after=60.0))

    assert [2.0, 4.0, 60.0] == [token.retry_delay, second.retry_delay, third.retry_delay]


def test_a_refused_retry_is_an_answer(clock: Clock) -> None:
    """A throttling error lowers the rate although no attempt is left; nobody waits for the retry that is not made."""
    strategy = adaptive(clock, max_attempts=1)
    token = strategy.acquire_initial_retry_token()

    with pytest.raises(RetryError):
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["T"])

    assert 0.5 == strategy.allowed_rate
    assert [2.0] == first_delays(strategy, 1)


def test_successes_raise_the_rate(clock: Clock) -> None:
    """The longer ago it throttled, up to twice what is measured."""
    strategy = adaptive(clock)
    throttle(strategy)

    rates = []
    for second in range(1, 40):
        clock.now = float(second)
        delays_of(strategy, ["ok"])
        rates.append(strategy.allowed_rate)

    assert 0.5 == rates[0]
    assert 2.0 == pytest.approx(rates[-1])


def test_abandoned(clock: Clock) -> None:
    """The place of a request that gave up is free for the next one, and its token is used up."""
    strategy = adaptive(clock)
    throttle(strategy)
    tokens = [strategy.acquire_initial_retry_token() for _ in range(3)]

    strategy.abandon(token=tokens[1])

    assert [6.0] == first_delays(strategy, 1)
    assert [True, True, True] == [token.holds_slot for token in tokens]
    with pytest.raises(ArgumentError, match="has been used"):
        strategy.abandon(token=tokens[1])
    assert [8.0] == first_delays(strategy, 1)


def test_abandoned_without_a_place(clock: Clock) -> None:
    """Who was told to wait for the longest time has reserved nothing, and gives nothing back."""
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
    """But not a quota."""
    strategy = adaptive(clock)
    throttle(strategy)

    assert 2.0 == strategy.acquire_initial_retry_token(token_scope="a").retry_delay
    assert 4.0 == strategy.acquire_initial_retry_token(token_scope="b").retry_delay


@rows("now", [-1.0, math.nan, "soon"])
def test_a_clock_that_goes_back(clock: Clock, now: Any) -> None:
    """An error, and neither token nor quota have changed."""
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


def test_a_token_of_somebody_else(clock: Clock) -> None:
    """It changes neither the rate nor the quota."""
    strategy, token = adaptive(clock), adaptive(clock).acquire_initial_retry_token()

    with pytest.raises(ArgumentError, match="comes from another strategy"):
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["T"])
    with pytest.raises(ArgumentError, match="comes from another strategy"):
        strategy.record_success(token=token)
    with pytest.raises(ArgumentError, match="comes from another strategy"):
        strategy.abandon(token=token)
    assert strategy.allowed_rate is None


def test_arguments_that_make_no_sense(clock: Clock) -> None:
    """A clock is called; everything else is as for the standard strategy."""
    nothing: Any = 12.5

    with pytest.raises(ArgumentError, match="clock=12.5") as caught:
        AdaptiveRetryStrategy(rng=Fixed(), clock=nothing)
    with pytest.raises(ArgumentError, match="max_attempts=-1"):
        adaptive(clock, max_attempts=-1)

    assert "clock" == caught.value.parameter
