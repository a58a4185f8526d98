"""Backoffs: the formulas of the four kinds of jitter, their bounds for any attempt, and their lack of state."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.core.retry.smithy.cases import Fixed
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.smithy import DecorrelatedRetryBackoffStrategy, ExponentialRetryBackoffStrategy, Jitter
from triclinium_core.retry.smithy.backoff import WALK_MAX, backoff_delay, check_backoff

seconds = st.one_of(st.floats(0.0, 1e3), st.sampled_from([0.0, 5e-324, 1e-300, 1e300, 1.7e308]))
attempts = st.one_of(st.integers(1, 40), st.integers(1, 10**9), st.sampled_from([1023, 1024, 1025, 1026, 10**400]))
draws = st.floats(0.0, 1.0)


@rows(
    ("jitter", "draw", "delays"),
    [
        (Jitter.NONE, 0.5, [0.0, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]),
        (Jitter.EQUAL, 0.0, [0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]),
        (Jitter.EQUAL, 0.5, [0.0, 0.75, 1.5, 3.0, 6.0, 7.5, 7.5]),
        (Jitter.EQUAL, 1.0, [0.0, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]),
        (Jitter.FULL, 0.0, [0.0] * 7),
        (Jitter.FULL, 0.5, [0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]),
        (Jitter.FULL, 1.0, [0.0, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]),
        (Jitter.DECORRELATED, 0.0, [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        (Jitter.DECORRELATED, 0.5, [0.0, 2.5, 4.75, 8.125, 10.0, 10.0, 10.0]),
        (Jitter.DECORRELATED, 1.0, [0.0, 4.0, 10.0, 10.0, 10.0, 10.0, 10.0]),
    ],
)
def test_formulas(jitter: Jitter, draw: float, delays: list[float]) -> None:
    """For the lowest, middle and highest draw, each kind of jitter follows its formula, from 1 s to 10 s."""
    backoff = ExponentialRetryBackoffStrategy(rng=Fixed(draw), base=1.0, max=10.0, jitter=jitter)

    assert delays == [backoff.compute_next_backoff_delay(attempt) for attempt in range(7)]


def test_defaults() -> None:
    """By default the delays are 25 ms to 20 s with equal jitter, as in the library."""
    backoff = ExponentialRetryBackoffStrategy(rng=Fixed(0.5))

    assert (0.025, 20.0, Jitter.EQUAL) == (backoff.base, backoff.max, backoff.jitter)
    assert 0.01875 == pytest.approx(backoff.compute_next_backoff_delay(1))


@given(seconds, seconds, st.sampled_from(Jitter), attempts, draws)
def test_any_attempt(base: float, most: float, jitter: Jitter, attempt: int, draw: float) -> None:
    """For any attempt the delay is finite, between 0 and the ceiling, and within the bounds of its jitter."""
    backoff = ExponentialRetryBackoffStrategy(rng=Fixed(draw), base=base, max=most, jitter=jitter)
    plain = ExponentialRetryBackoffStrategy(base=base, max=most, jitter=Jitter.NONE).compute_next_backoff_delay(attempt)

    delay = backoff.compute_next_backoff_delay(attempt)

    assert 0.0 <= delay <= most
    match jitter:
        case Jitter.NONE:
            assert plain == delay
        case Jitter.EQUAL:
            assert plain * 0.5 <= delay <= plain
        case Jitter.FULL:
            assert delay <= plain
        case Jitter.DECORRELATED:
            assert min(base, most) <= delay


@given(seconds, seconds, attempts)
def test_grows(base: float, most: float, attempt: int) -> None:
    """Without jitter each delay is twice the previous delay, up to the ceiling."""
    backoff = ExponentialRetryBackoffStrategy(base=base, max=most, jitter=Jitter.NONE)

    before, after = (backoff.compute_next_backoff_delay(number) for number in (attempt, attempt + 1))

    assert min(2 * before, most) == after
    assert (most if base else 0.0) == backoff.compute_next_backoff_delay(10**4)


@rows("jitter", list(Jitter))
def test_a_backoff_has_no_state(jitter: Jitter) -> None:
    """A delay does not depend on the delays that the backoff returned before (decision S7)."""
    rng = random.Random(7)
    backoff = ExponentialRetryBackoffStrategy(rng=rng, base=1.0, max=1e6, jitter=jitter)
    alone = backoff.compute_next_backoff_delay(6)

    for attempt in (1, 2, 30, 3):
        backoff.compute_next_backoff_delay(attempt)
    rng.seed(7)

    assert alone == backoff.compute_next_backoff_delay(6)


def test_decorrelated_delays_are_walked() -> None:
    """A decorrelated delay draws one number for each attempt, but no more than ``WALK_MAX`` numbers."""
    rng = Fixed(0.5)
    backoff = ExponentialRetryBackoffStrategy(rng=rng, jitter=Jitter.DECORRELATED)

    backoff.compute_next_backoff_delay(5)
    assert 5 == rng.draws
    backoff.compute_next_backoff_delay(10**9)
    assert 5 + WALK_MAX == rng.draws


@rows("attempt", [-1, 1.0, math.nan, True, None])
def test_invalid_attempts(attempt: Any) -> None:
    """A number of attempts is refused unless it is a non-negative integer."""
    with refusal_of("retry_attempt", "retry_attempt="):
        ExponentialRetryBackoffStrategy(rng=Fixed()).compute_next_backoff_delay(attempt)


@rows("draw", [-0.1, 1.1, math.nan, math.inf, None, "0.5"])
@rows("jitter", [Jitter.EQUAL, Jitter.FULL, Jitter.DECORRELATED])
def test_invalid_draws(jitter: Jitter, draw: Any) -> None:
    """If the random source returns a number outside 0 to 1, the error names the random source."""
    backoff = ExponentialRetryBackoffStrategy(rng=Fixed(draw), jitter=jitter)

    with refusal_of("rng", "^rng "):
        backoff.compute_next_backoff_delay(3)


@rows("part", [None, 0.5])
def test_an_object_without_the_method_is_refused(part: Any) -> None:
    """An object without ``compute_next_backoff_delay`` is refused, and the error names the missing method."""
    with pytest.raises(ArgumentError, match="must be an object, not a class, with a method compute_next_backoff_delay"):
        check_backoff(part, "backoff")


def test_a_backoff_is_accepted() -> None:
    """An object with ``compute_next_backoff_delay`` is accepted as a backoff, and the delay is in seconds."""
    backoff = ExponentialRetryBackoffStrategy(rng=Fixed(1.0))

    assert backoff is check_backoff(backoff, "backoff")
    assert 0.05 == backoff_delay(backoff, 2, 0.0)


def test_a_decorrelated_delay_follows_the_one_before() -> None:
    """A decorrelated delay is between the base and three times the previous delay, up to the ceiling."""
    shortest, longest = (
        DecorrelatedRetryBackoffStrategy(rng=Fixed(share), base=0.005, max=2.0) for share in (0.0, 1.0)
    )

    assert (0.005, 0.005) == (
        shortest.compute_following_backoff_delay(0.0),
        shortest.compute_following_backoff_delay(1.0),
    )
    assert [0.015, 0.3, 2.0] == [
        pytest.approx(longest.compute_following_backoff_delay(before)) for before in (0.0, 0.1, 1.0)
    ]


def test_a_decorrelated_backoff_gets_the_previous_delay() -> None:
    """A backoff that gets the previous delay uses it; otherwise it draws the previous delays again."""
    backoff = DecorrelatedRetryBackoffStrategy(rng=Fixed(1.0), base=0.005, max=2.0)

    assert 0.3 == pytest.approx(backoff_delay(backoff, 9, 0.1))
    assert [0.0, 0.015, 0.045, 0.135] == [
        pytest.approx(backoff.compute_next_backoff_delay(attempt)) for attempt in range(4)
    ]
