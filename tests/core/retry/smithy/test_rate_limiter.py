"""The rate limiter: the figures of botocore's own tests, the bucket, and a clock that goes back."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.smithy.rate_limiter import RATE_LEAST, WAIT_MAX, RateLimiter, climbing_time, cubic_rate


def throttled_at_ten() -> tuple[RateLimiter, float]:
    """Return a limiter that measured 10 answers a second when it was throttled, and when that was."""
    limiter = RateLimiter()
    limiter.advance(0.0)
    for answer in range(1, 400):
        limiter.on_success(answer / 10)
    limiter.on_throttle(40.0)

    assert 10.0 == pytest.approx(limiter.measured_rate)
    return limiter, 40.0


def measured(*instants: float) -> float:
    """Return the rate that answers at these instants amount to."""
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
    """Answers are counted by half seconds, the newest of which weighs four fifths."""
    assert rate == pytest.approx(measured(*instants))


def test_recent_answers_weigh_more() -> None:
    """After ten quiet seconds little is left of two a second."""
    busy = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)

    assert 1.99 <= measured(*busy) <= 2.0
    assert 0.8 * 0.1 + 0.2 * measured(*busy) == pytest.approx(measured(*busy, 14.0))


def test_nobody_waits_before_it_throttles() -> None:
    """However many send at once."""
    limiter = RateLimiter()

    assert [0.0] * 100 == [limiter.acquire(0.0) for _ in range(100)]
    assert not limiter.is_enabled


def test_throttling_takes_three_tenths() -> None:
    """The first time of what is measured."""
    limiter, _ = throttled_at_ten()

    assert limiter.is_enabled
    assert 7.0 == pytest.approx(limiter.rate)


def test_throttled_soon() -> None:
    """The first time what is allowed means nothing yet: it has only begun to climb."""
    limiter = RateLimiter()
    for number in range(20):
        limiter.on_success(number / 10)
    limiter.on_throttle(2.0)

    assert limiter.rate == pytest.approx(0.7 * limiter.measured_rate)
    assert limiter.measured_rate > 8.0


def test_throttled_again() -> None:
    """From then on of the least of what is measured and what is allowed."""
    limiter, now = throttled_at_ten()

    limiter.on_throttle(now + 0.1)

    assert 4.9 == pytest.approx(limiter.rate)


@rows(("highest", "seconds"), [(10.0, 1.9574338205844317), (8.0, 1.8171205928321397), (0.0, 0.0)])
def test_climbing_time(highest: float, seconds: float) -> None:
    """The figures of botocore's tests."""
    assert seconds == pytest.approx(climbing_time(highest))


@rows(("share", "rate"), [(0.0, 7.0), (0.5, 9.625), (1.0, 10.0), (1.5, 10.375), (2.0, 13.0), (3.0, 34.0)])
def test_the_curve(share: float, rate: float) -> None:
    """It begins with seven tenths, is flat where it throttled, and goes on as steeply as it came."""
    assert rate == pytest.approx(cubic_rate(10.0, share * climbing_time(10.0)))


def test_a_curve_without_an_end() -> None:
    """A very long time allows any rate; it raises nothing."""
    assert math.inf == cubic_rate(10.0, 1e308)


def test_the_limiter_follows_the_curve() -> None:
    """As long as the answers come fast enough."""
    limiter, throttled_at = throttled_at_ten()

    for answer in range(1, 25):
        limiter.on_success(throttled_at + answer / 10)

        assert cubic_rate(10.0, answer / 10) == pytest.approx(limiter.rate)


def test_twice_the_measured_rate_at_most() -> None:
    """What was never tried is not allowed, however long ago it throttled."""
    limiter, now = throttled_at_ten()

    limiter.on_success(now + 1000.0)

    assert 2 * limiter.measured_rate == pytest.approx(limiter.rate)
    assert limiter.rate < 5.0


def test_a_rate_of_nothing() -> None:
    """A service that throttles the very first request is still asked every two seconds."""
    limiter = RateLimiter()
    limiter.on_throttle(0.0)

    assert RATE_LEAST == limiter.rate
    assert [2.0, 4.0, 6.0] == [limiter.acquire(0.0) for _ in range(3)]


def test_waiting_for_tokens() -> None:
    """Each send waits for a token of its own; time refills the bucket, up to what fits."""
    limiter, now = throttled_at_ten()
    while not limiter.acquire(now):
        pass
    first = limiter.acquire(now)

    assert 1 / 7 == pytest.approx(limiter.acquire(now) - first)
    assert first == pytest.approx(limiter.acquire(now + 2 / 7))
    assert 0.0 == limiter.acquire(now + 1000.0)
    assert 6.0 == pytest.approx(limiter.level)


def test_reservations_end_somewhere() -> None:
    """Nobody is told to wait for longer than 20 s, and who is told that reserves nothing."""
    limiter = RateLimiter()
    limiter.on_throttle(0.0)

    waits = [limiter.acquire(0.0) for _ in range(100)]

    assert [2.0 * place for place in range(1, 10)] == waits[:9]
    assert {WAIT_MAX} == set(waits[9:])
    assert -9.0 == limiter.level


def test_what_was_reserved_at_a_higher_rate_keeps_nobody_waiting() -> None:
    """It is sent in the time that it was told; at a lower rate the rest would wait for minutes."""
    limiter, now = throttled_at_ten()
    while limiter.acquire(now) < WAIT_MAX:
        pass
    reserved = limiter.level
    for _ in range(20):
        limiter.on_throttle(now)

    assert (0.5, True) == (limiter.rate, reserved < -100)
    assert WAIT_MAX > limiter.acquire(now + 22.0)


def test_given_back() -> None:
    """The place of a send that does not take place is free for the next, and the bucket does not overflow."""
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
    """Or tells no time: an error that names it, and nothing has changed."""
    limiter, other = throttled_at_ten()[0], throttled_at_ten()[0]

    with pytest.raises(ArgumentError, match="now=") as caught:
        getattr(limiter, method)(now)

    assert "now" == caught.value.parameter
    assert (other.level, other.rate, other.measured_rate) == (limiter.level, limiter.rate, limiter.measured_rate)
    assert other.acquire(50.0) == limiter.acquire(50.0)


def test_a_clock_that_tells_nonsense_first() -> None:
    """The limiter begins with the first instant that is one, wherever that lies."""
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
def test_whatever_happens(history: list[tuple[str, float]], now: float) -> None:
    """Rate, bucket and waits stay within their bounds; left alone for 22 s, the limiter lets the next one send."""
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
