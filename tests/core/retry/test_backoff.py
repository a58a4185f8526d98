"""Delays: the sequences, the jitter, and the cut to a limit."""

from __future__ import annotations

import dataclasses
import math
import random
import sys
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.backoff import (
    RESOLUTION,
    Backoff,
    CappedDelay,
    ExponentialBackoff,
    cap,
    controlled,
    exponential,
)


class Fixed:
    """Randomness that always draws the same number, and counts the draws."""

    def __init__(self, number: float) -> None:
        self.number = number
        self.draws = 0

    def random(self) -> float:
        """Return the number."""
        self.draws += 1
        return self.number


seconds = st.floats(0, 1e6)


@pytest.mark.parametrize(
    ("retry_attempts", "milliseconds"),
    [(0, 1), (1, 10), (2, 50), (3, 100), (4, 500), (5, 1000), (6, 1000), (100, 1000), (10**9, 1000)],
)
def test_controlled(retry_attempts: int, milliseconds: int) -> None:
    """The switch of RFC 0049 "Controlled Backoff for Always Retry"."""
    assert milliseconds / 1000 == controlled(retry_attempts)


def test_controlled_is_a_calculator() -> None:
    """It has the shape of a backoff, so that best effort may be given it."""
    assert 0.01 == controlled(1, Fixed(0.5))


@rows(
    ("retry_attempts", "milliseconds"),
    [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 64), (7, 128), (8, 256), (9, 500), (10, 500), (11, 500)],
)
def test_exponential(retry_attempts: int, milliseconds: int) -> None:
    """From 1 ms to 500 ms, doubling, by the retries already done (decision C2)."""
    assert milliseconds / 1000 == exponential()(retry_attempts, Fixed(0.5))


def test_the_class_has_the_same_defaults() -> None:
    """Whoever builds the calculator directly gets the best-effort one too."""
    assert exponential() == ExponentialBackoff()


@rows("retry_attempts", [999, 1000, 1023, 1024, 1025, 10**6, 10**18, 10**400])
@rows("factor", [2.0, 1.5, 10.0, 1e300])
def test_exponential_does_not_overflow(retry_attempts: int, factor: float) -> None:
    """No count of retries is too much for it."""
    assert 0.5 == exponential(factor=factor)(retry_attempts, Fixed(0.5))


def test_exponential_with_the_largest_ceiling() -> None:
    """A delay grows up to any ceiling that a float can express, and stays finite."""
    calculator = exponential(first=1.0, most=sys.float_info.max, factor=2.0)

    assert 2.0**999 == calculator(999, Fixed(0.5))
    assert sys.float_info.max == calculator(5000, Fixed(0.5))


def test_factor_one_never_grows() -> None:
    """A factor of one makes a constant backoff."""
    for retry_attempts in (10**6, 10**400):
        assert 0.02 == exponential(first=0.02, factor=1.0)(retry_attempts, Fixed(0.5))


def test_first_may_be_the_most() -> None:
    """The bounds may touch."""
    assert 0.5 == exponential(first=0.5, most=0.5)(0, Fixed(0.5))


def test_from_nothing_stays_nothing() -> None:
    """A first delay of nothing is doubled to nothing."""
    assert 0.0 == exponential(first=0.0)(10, Fixed(0.5))


@pytest.mark.parametrize(
    ("jitter", "drawn", "milliseconds"),
    [(1.0, 0.0, 16), (1.0, 0.5, 8), (1.0, 0.75, 4), (0.5, 0.0, 16), (0.5, 0.5, 12), (0.25, 1.0, 12)],
)
def test_jitter_takes_its_share(jitter: float, drawn: float, milliseconds: float) -> None:
    """The random share of a delay is taken off it, so no delay is longer than without jitter."""
    assert milliseconds / 1000 == pytest.approx(exponential(jitter=jitter)(4, Fixed(drawn)))


def test_no_jitter_draws_nothing() -> None:
    """Without jitter a replay needs no randomness, and a shared source is not disturbed."""
    rng = Fixed(0.5)
    exponential()(3, rng)

    assert 0 == rng.draws


def test_jitter_draws_once() -> None:
    """With jitter each delay costs one draw."""
    rng = Fixed(0.5)
    exponential(jitter=0.1)(3, rng)

    assert 1 == rng.draws


@st.composite
def calculators(draw: st.DrawFn, *, jitter: float) -> ExponentialBackoff:
    """Return a calculator with numbers of all kinds, and at most that much jitter."""
    first, most = sorted(draw(st.tuples(st.floats(0, 10), st.floats(0, 100))))
    return ExponentialBackoff(first, most, draw(st.floats(1, 1e6)), draw(st.floats(0, jitter)))


@given(calculators(jitter=0.0), st.integers(0, 10**6))
def test_growth(calculator: ExponentialBackoff, retry_attempts: int) -> None:
    """Every delay lies within the bounds, and none is shorter than the one before."""
    delay, following = (calculator(attempts, Fixed(0.5)) for attempts in (retry_attempts, retry_attempts + 1))

    assert calculator.first <= delay <= following <= calculator.most


@given(calculators(jitter=1.0), st.integers(0, 10**6), st.integers(0, 2**32))
def test_jitter_bounds(calculator: ExponentialBackoff, retry_attempts: int, seed: int) -> None:
    """A jittered delay is at most the plain one, and at least what is left when the whole share is taken off."""
    plain = dataclasses.replace(calculator, jitter=0.0)(retry_attempts, Fixed(0.5))
    delay = calculator(retry_attempts, random.Random(seed))

    assert plain * (1.0 - calculator.jitter) <= delay * (1.0 + 1e-12)
    assert 0.0 <= delay <= plain


@rows("value", [-0.001, math.nan, math.inf, -math.inf, 10**400, -(10**400), "1", None, True])
@rows("name", ["first", "most", "factor", "jitter"])
def test_refuses_what_is_no_number_in_range(name: str, value: object) -> None:
    """A mistake is told when the calculator is made, by the name of its parameter and the value."""
    for build in (ExponentialBackoff, exponential):
        with pytest.raises(InvalidArgumentException) as caught:
            build(**{name: value})  # type: ignore[arg-type]

        assert str(caught.value).startswith(f"{name}=")
        assert name == caught.value.parameter


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("factor", 0.99, "factor=0.99 of an exponential backoff must be a number between 1.0 and inf"),
        ("jitter", 1.01, "jitter=1.01 of an exponential backoff must be a number between 0.0 and 1.0"),
    ],
)
def test_tells_the_range(name: str, value: float, text: str) -> None:
    """The text has the bounds in it."""
    with pytest.raises(InvalidArgumentException) as caught:
        exponential(**{name: value})

    assert text == str(caught.value)


def test_a_most_below_the_first_is_refused() -> None:
    """The parameter that breaks its own bound is the one that is named."""
    with pytest.raises(InvalidArgumentException) as caught:
        exponential(first=0.2, most=0.1)

    assert "first" == caught.value.parameter


def test_cap_of_the_rfc() -> None:
    """2 s into a life of 2.5 s, a delay of 1 s becomes 500 ms, and nothing is sent afterwards."""
    elapsed, timeout, requested = 2.0, 2.5, 1.0

    assert CappedDelay(0.5, dispatches=False) == cap(requested, timeout - elapsed)


@rows(
    ("delay", "remaining", "expected"),
    [
        (0.1, 0.5, CappedDelay(0.1, dispatches=True)),
        (0.499, 0.5, CappedDelay(0.499, dispatches=True)),
        (0.5, 0.5, CappedDelay(0.5, dispatches=False)),
        (0.6, 0.5, CappedDelay(0.5, dispatches=False)),
        (0.0, 0.5, CappedDelay(0.0, dispatches=True)),
        (0.0, 0.0, CappedDelay(0.0, dispatches=False)),
        (0.1, -0.2, CappedDelay(0.0, dispatches=False)),
        (1e9, math.inf, CappedDelay(1e9, dispatches=True)),
        (0.5 - RESOLUTION / 2, 0.5, CappedDelay(0.5, dispatches=False)),
        (0.5 - 2 * RESOLUTION, 0.5, CappedDelay(0.5 - 2 * RESOLUTION, dispatches=True)),
    ],
)
def test_cap(delay: float, remaining: float, expected: CappedDelay) -> None:
    """A delay that would reach or pass the limit is cut to it (decision C23)."""
    assert expected == cap(delay, remaining)


@given(seconds, st.floats(-1e6, 1e6))
def test_cap_never_exceeds(delay: float, remaining: float) -> None:
    """Nothing outlives its limit, nothing is prolonged, and what is not cut is unchanged."""
    capped = cap(delay, remaining)

    assert 0.0 <= capped.delay <= max(remaining, 0.0)
    assert (
        (delay == capped.delay and capped.delay < remaining) if capped.dispatches else delay >= remaining - RESOLUTION
    )


@rows("count", [-1, 1.5, True, None, "1"])
@rows("backoff", [exponential(), controlled])
def test_what_is_no_count(backoff: Backoff, count: Any) -> None:
    """A delay follows a number of retries."""
    with pytest.raises(InvalidArgumentException) as caught:
        backoff(count, random.Random(1))

    assert "retry_attempts" == caught.value.parameter
