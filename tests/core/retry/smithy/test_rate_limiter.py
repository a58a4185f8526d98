"""Rate limiter: the numbers of botocore's tests, the token bucket, and a clock that goes back."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.smithy.rate_limiter import RATE_LEAST, WAIT_MAX, RateLimiter, climbing_time, cubic_rate


def throttled_at_ten() -> tuple[RateLimiter, float]:
    """Return a limiter that had measured 10 responses per second when it was throttled, and the time of throttling."""
    limiter = RateLimiter()
    limiter.advance(0.0)
    for answer in range(1, 400):
        limiter.on_success(answer / 10)
    limiter.on_throttle(40.0)

    assert 10.0 == pytest.approx(limiter.measured_rate)
    return limiter, 40.0


def measured(*instants: float) -> float:
    """Return the rate that the limiter measures for responses at these times."""
    limiter = RateLimiter()
    limiter.advance(0.0)
    for now in instants:
        limiter.on_success(now)
    return limiter.measured_rate


@rows(
    ("instants", "rate"),
    [
        ((), 0.0),
        ((1.0,), 0.8),
        (tuple(range(1, 21)), 1.0),
        ((0.1, 0.2, 0.3, 0.4, 0.49), 0.0),
        ((0.1, 0.2, 0.3, 0.4, 0.49, 0.5), 9.6),
        ((1.0, 1.0, 1.0, 2.0, 3.0), 1.312),
    ],
)
def test_measured_rate(instants: tuple[float, ...], rate: float) -> None:
    """Responses are counted in windows of half a second, and the newest window has a weight of four fifths."""
    assert rate == pytest.approx(measured(*instants))


def test_recent_responses_weigh_more() -> None:
    """After ten seconds without responses, the measured rate has fallen from two per second to almost none."""
    busy = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)

    assert 1.99 <= measured(*busy) <= 2.0
    assert 0.8 * 0.1 + 0.2 * measured(*busy) == pytest.approx(measured(*busy, 14.0))


def test_no_delay_before_throttling() -> None:
    """Before the service throttles, no send is delayed, however many sends happen at the same time."""
    limiter = RateLimiter()

    assert [0.0] * 100 == [limiter.acquire(0.0) for _ in range(100)]
    assert not limiter.is_enabled


def test_the_first_throttling_uses_the_measured_rate() -> None:
    """The first throttling uses the measured rate, because the allowed rate has only started to rise."""
    limiter = RateLimiter()
    for number in range(20):
        limiter.on_success(number / 10)
    limiter.on_throttle(2.0)

    assert limiter.rate == pytest.approx(0.7 * limiter.measured_rate)
    assert limiter.measured_rate > 8.0


def test_the_next_throttling_uses_the_lower_rate() -> None:
    """Each later throttling lowers the rate to seven tenths of the measured or the allowed rate, whichever is lower."""
    limiter, now = throttled_at_ten()
    assert 7.0 == pytest.approx(limiter.rate)

    limiter.on_throttle(now + 0.1)

    assert 4.9 == pytest.approx(limiter.rate)


@rows(("highest", "seconds"), [(10.0, 1.9574338205844317), (8.0, 1.8171205928321397), (0.0, 0.0)])
def test_climbing_time(highest: float, seconds: float) -> None:
    """For each rate, the curve takes the climbing time that botocore's tests expect."""
    assert seconds == pytest.approx(climbing_time(highest))


@rows(("share", "rate"), [(0.0, 7.0), (0.5, 9.625), (1.0, 10.0), (1.5, 10.375), (2.0, 13.0), (3.0, 34.0)])
def test_the_curve(share: float, rate: float) -> None:
    """The curve starts at 0.7 of the rate at which the service throttled, flattens at that rate, and then rises above it."""
    assert rate == pytest.approx(cubic_rate(10.0, share * climbing_time(10.0)))


def test_a_curve_without_an_end() -> None:
    """After a very long time the curve returns infinity and does not raise an error."""
    assert math.inf == cubic_rate(10.0, 1e308)


def test_the_limiter_follows_the_curve() -> None:
    """While responses arrive fast enough, the allowed rate follows the curve."""
    limiter, throttled_at = throttled_at_ten()

    for answer in range(1, 25):
        limiter.on_success(throttled_at + answer / 10)

        assert cubic_rate(10.0, answer / 10) == pytest.approx(limiter.rate)


def test_twice_the_measured_rate_at_most() -> None:
    """The allowed rate is at most twice the measured rate, however long ago the service throttled."""
    limiter, now = throttled_at_ten()

    limiter.on_success(now + 1000.0)

    assert 2 * limiter.measured_rate == pytest.approx(limiter.rate)
    assert limiter.rate < 5.0


def test_waiting_for_tokens() -> None:
    """Each send waits for its own token, and the bucket refills with time up to its capacity."""
    limiter, now = throttled_at_ten()
    while not limiter.acquire(now):
        pass
    first = limiter.acquire(now)

    assert 1 / 7 == pytest.approx(limiter.acquire(now) - first)
    assert first == pytest.approx(limiter.acquire(now + 2 / 7))
    assert 0.0 == limiter.acquire(now + 1000.0)
    assert 6.0 == pytest.approx(limiter.level)


def test_the_maximum_delay_reserves_nothing() -> None:
    """At the minimum rate, sends follow each other by two seconds; one that has to wait 20 s reserves no token."""
    limiter = RateLimiter()
    limiter.on_throttle(0.0)
    assert RATE_LEAST == limiter.rate

    waits = [limiter.acquire(0.0) for _ in range(100)]

    assert [2.0 * place for place in range(1, 10)] == waits[:9]
    assert {WAIT_MAX} == set(waits[9:])
    assert -9.0 == limiter.level


def test_early_reservations_do_not_delay_later_sends() -> None:
    """If the rate has dropped, earlier reservations do not keep later sends at the maximum delay."""
    limiter, now = throttled_at_ten()
    while limiter.acquire(now) < WAIT_MAX:
        pass
    reserved = limiter.level
    for _ in range(20):
        limiter.on_throttle(now)

    assert (0.5, True) == (limiter.rate, reserved < -100)
    assert WAIT_MAX > limiter.acquire(now + 22.0)


def test_a_returned_token_is_free_again() -> None:
    """If a token is returned, the next send can take it, and the bucket holds no more than its capacity."""
    limiter = RateLimiter()
    limiter.on_throttle(0.0)
    limiter.acquire(0.0)
    limiter.acquire(0.0)

    limiter.give_back()

    assert 4.0 == limiter.acquire(0.0)
    for _ in range(9):
        limiter.give_back()
    assert 1.0 == limiter.level


@rows("now", [-1.0, math.nan, math.inf, -math.inf, 10**400, 10**5000, "1", None, True])
@rows("method", ["advance", "acquire", "on_success", "on_throttle"])
def test_a_clock_that_goes_back(method: str, now: Any) -> None:
    """If a time is invalid, an error names it, and the limiter does not change."""
    limiter, other = throttled_at_ten()[0], throttled_at_ten()[0]

    with refusal_of("now", "now="):
        getattr(limiter, method)(now)

    assert (other.level, other.rate, other.measured_rate) == (limiter.level, limiter.rate, limiter.measured_rate)
    assert other.acquire(50.0) == limiter.acquire(50.0)


def test_an_invalid_first_time() -> None:
    """If the first time is invalid, it is refused, and the limiter starts with the next valid time."""
    limiter = RateLimiter()
    with pytest.raises(ArgumentError):
        limiter.advance(math.nan)

    limiter.advance(-1e9)

    assert 0.0 == limiter.acquire(1e299)


steps = st.tuples(
    st.sampled_from(["acquire", "give_back", "on_success", "on_success", "on_throttle"]),
    st.one_of(st.just(0.0), st.floats(0.0, 2.0), st.sampled_from([1e-9, 100.0, 1e9])),
)


@given(st.lists(steps, max_size=60), st.sampled_from([0.0, -5.0, 1e6]))
def test_any_history_stays_within_bounds(history: list[tuple[str, float]], now: float) -> None:
    """Rate, bucket and delays stay within their bounds, and after 22 s without sends the next send is not delayed."""
    limiter = RateLimiter()
    for method, elapsed in history:
        now += elapsed
        if method == "give_back":
            limiter.give_back()
        else:
            limiter.advance(now)
            wait = getattr(limiter, method)(now)
            assert wait is None or 0.0 <= wait <= WAIT_MAX
        assert RATE_LEAST <= limiter.rate < math.inf
        assert -WAIT_MAX * limiter.rate <= limiter.level <= max(limiter.rate, 1.0)

    assert 0.0 == limiter.acquire(now + WAIT_MAX + 1 / RATE_LEAST)
