"""Delays before retries: their sequences, their jitter, and their limit."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.core.retry.smithy.cases import Fixed
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.retry.backoff import RESOLUTION, Backoff, ExponentialBackoff, cap, controlled, exponential

seconds = st.floats(0, 1e6)


@rows(
    ("retry_attempts", "milliseconds"),
    [(0, 1), (1, 10), (2, 50), (3, 100), (4, 500), (5, 1000), (6, 1000), (100, 1000), (10**9, 1000)],
)
def test_controlled(retry_attempts: int, milliseconds: int) -> None:
    """``controlled`` returns the delays of RFC 0049 "Controlled Backoff for Always Retry"."""
    assert milliseconds / 1000 == controlled(retry_attempts)


@rows(
    ("retry_attempts", "milliseconds"),
    [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 64), (7, 128), (8, 256), (9, 500), (10, 500), (11, 500)],
)
def test_exponential(retry_attempts: int, milliseconds: int) -> None:
    """The exponential delay doubles with each retry, from 1 ms to 500 ms (decision C2)."""
    assert milliseconds / 1000 == exponential()(retry_attempts, Fixed(0.5))


@rows("retry_attempts", [999, 1000, 1023, 1024, 1025, 10**6, 10**18, 10**400])
@rows("factor", [2.0, 1.5, 10.0, 1e300])
def test_exponential_does_not_overflow(retry_attempts: int, factor: float) -> None:
    """The delay stays at its ceiling for very large numbers of retries and large factors."""
    assert 0.5 == exponential(factor=factor)(retry_attempts, Fixed(0.5))


@rows("retry_attempts", [0, 999, 1000, 10**6, 10**400])
def test_no_first_delay_never_grows(retry_attempts: int) -> None:
    """A backoff that begins with 0 returns 0 after any number of retries."""
    assert 0.0 == exponential(first=0.0)(retry_attempts, Fixed(0.5))


def test_exponential_with_the_largest_ceiling() -> None:
    """If the ceiling is the largest float, the delay grows up to the ceiling and stays finite."""
    calculator = exponential(first=1.0, most=sys.float_info.max, factor=2.0)

    assert 2.0**999 == calculator(999, Fixed(0.5))
    assert sys.float_info.max == calculator(5000, Fixed(0.5))


@rows(
    ("jitter", "drawn", "milliseconds"),
    [(1.0, 0.0, 16), (1.0, 0.5, 8), (1.0, 0.75, 4), (0.5, 0.0, 16), (0.5, 0.5, 12), (0.25, 1.0, 12)],
)
def test_jitter_shortens_delays_by_its_share(jitter: float, drawn: float, milliseconds: float) -> None:
    """Jitter subtracts a random part of the delay, so no delay is longer than without jitter."""
    assert milliseconds / 1000 == pytest.approx(exponential(jitter=jitter)(4, Fixed(drawn)))


@rows(("jitter", "draws"), [(0.0, 0), (0.1, 1)])
def test_jitter_draws_one_number(jitter: float, draws: int) -> None:
    """A delay with jitter draws one random number, and a delay without jitter draws none."""
    rng = Fixed(0.5)
    exponential(jitter=jitter)(3, rng)

    assert draws == rng.draws


@st.composite
def calculators(draw: st.DrawFn, *, jitter: float) -> ExponentialBackoff:
    """Draw an exponential backoff with a jitter of at most ``jitter``."""
    first, most = sorted(draw(st.tuples(st.floats(0, 10), st.floats(0, 100))))
    return ExponentialBackoff(first, most, draw(st.floats(1, 1e6)), draw(st.floats(0, jitter)))


@given(calculators(jitter=0.0), st.integers(0, 10**6))
def test_growth(calculator: ExponentialBackoff, retry_attempts: int) -> None:
    """Each delay is between ``first`` and ``most``, and is not shorter than the previous delay."""
    delay, following = (calculator(attempts, Fixed(0.5)) for attempts in (retry_attempts, retry_attempts + 1))

    assert calculator.first <= delay <= following <= calculator.most


@given(calculators(jitter=1.0), st.integers(0, 10**6), st.integers(0, 2**32))
def test_jitter_bounds(calculator: ExponentialBackoff, retry_attempts: int, seed: int) -> None:
    """A delay with jitter is at most the delay without jitter, and is shorter by at most the jitter's share."""
    plain = dataclasses.replace(calculator, jitter=0.0)(retry_attempts, Fixed(0.5))
    delay = calculator(retry_attempts, random.Random(seed))

    assert plain * (1.0 - calculator.jitter) <= delay * (1.0 + 1e-12)
    assert 0.0 <= delay <= plain


@rows(
    ("name", "value"),
    [
        *itertools.product(
            ("first", "most", "factor", "jitter"),
            (-0.001, math.nan, math.inf, -math.inf, 10**400, -(10**400), "1", None, True, 1j),
        ),
        ("first", 0.6),
        ("factor", 0.99),
        ("jitter", 1.01),
    ],
)
@rows("build", [ExponentialBackoff, exponential])
def test_refuses_numbers_out_of_range(build: Callable[..., object], name: str, value: object) -> None:
    """If a number is out of range, the constructor raises an error that names the parameter."""
    with refusal_of(name, kind=errors.InvalidArgumentException) as caught:
        build(**{name: value})

    assert str(caught.value).startswith(f"{name}=")


@rows(
    ("delay", "remaining", "expected"),
    [
        (0.1, 0.5, (0.1, True)),
        (0.499, 0.5, (0.499, True)),
        (0.5, 0.5, (0.5, False)),
        (0.6, 0.5, (0.5, False)),
        (0.0, 0.5, (0.0, True)),
        (0.0, 0.0, (0.0, False)),
        (0.1, -0.2, (0.0, False)),
        (1e9, math.inf, (1e9, True)),
        (0.5 - RESOLUTION / 2, 0.5, (0.5, False)),
        (0.5 - 2 * RESOLUTION, 0.5, (0.5 - 2 * RESOLUTION, True)),
    ],
)
def test_cap(delay: float, remaining: float, expected: tuple[float, bool]) -> None:
    """If a delay reaches the limit, it is cut to the limit, and the retry is not sent (decision C23)."""
    assert expected == cap(delay, remaining)


@given(seconds, st.floats(-1e6, 1e6))
def test_cap_never_exceeds(delay: float, remaining: float) -> None:
    """A delay that was cut is between 0 and the limit, and any other delay is unchanged."""
    capped, dispatches = cap(delay, remaining)

    assert 0.0 <= capped <= max(remaining, 0.0)
    assert (delay == capped and capped < remaining) if dispatches else delay >= remaining - RESOLUTION


@rows("count", [-1, 1.5, True, None, "1"])
@rows("backoff", [exponential(), controlled])
def test_a_backoff_refuses_other_than_counts(backoff: Backoff, count: Any) -> None:
    """A backoff refuses a number of retries that is not a non-negative integer."""
    with refusal_of("retry_attempts", kind=errors.InvalidArgumentException):
        backoff(count, random.Random(1))
