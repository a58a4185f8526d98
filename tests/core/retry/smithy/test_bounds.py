"""What arguments have to be: each check lets through what it should, and names what it does not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tests.core.retry.smithy.cases import Fixed
from tests.rows import rows
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.smithy.backoff import ExponentialRetryBackoffStrategy
from triclinium_core.retry.smithy.bounds import (
    backoff_delay,
    is_seconds,
    require_backoff,
    require_count,
    require_random,
)


class Hundred(int):
    """A whole number of somebody's own making."""


class Unshowable:
    """Something that cannot be shown."""

    def __repr__(self) -> str:
        raise OSError("not to be shown")


@rows("seconds", [0, 0.0, 1e-9, 1, 3.5, 1e300, 10**300])
def test_seconds(seconds: float) -> None:
    """Any finite number of at least 0 can be slept."""
    assert is_seconds(seconds)


@rows("seconds", [-1, -1e-9, math.nan, math.inf, -math.inf, 10**400, 10**5000, True, None, "1", Fraction(1, 2), 1j])
def test_no_seconds(seconds: Any) -> None:
    """Anything else cannot be slept, however long it is."""
    assert not is_seconds(seconds)


@rows("count", [0, 1, 10**9, 10**5000, Hundred(100)])
def test_counts(count: int) -> None:
    """Any whole number that is large enough."""
    assert count == require_count("attempts", count)


@rows(("count", "least"), [(-1, 0), (-(10**5000), 0), (0, 1), (1.0, 0), (True, 0), ("1", 0)])
def test_no_counts(count: Any, least: int) -> None:
    """What is no count, or too small, is named."""
    with pytest.raises(InvalidArgumentException, match=f"^attempts=.* must be a whole number of at least {least}"):
        require_count("attempts", count, least=least)


def test_parts() -> None:
    """Randomness and backoffs are known by their methods."""
    rng, backoff = random.Random(1), ExponentialRetryBackoffStrategy(rng=Fixed(1.0))

    assert (rng, backoff) == (require_random(rng), require_backoff("backoff", backoff))
    assert 0.05 == backoff_delay(backoff, 2)


@rows("check", [require_random, lambda part: require_backoff("backoff", part)])
@rows("part", [None, 0.5, Unshowable()])
def test_no_parts(check: Callable[[Any], object], part: Any) -> None:
    """What lacks the method is named, with the method."""
    with pytest.raises(InvalidArgumentException, match="must have a method"):
        check(part)
