"""Random times: their means, their limits, and what makes no sense."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.tools.fleet.times import ExponentialTime, FixedTime, NormalTime, UniformTime, sampler

DRAWS = 20_000


@rows(
    ("time", "mean", "deviation"),
    [
        (FixedTime(seconds=2.0), 2.0, 0.0),
        (ExponentialTime(mean=2.0), 2.0, 2.0),
        (NormalTime(mean=10.0, deviation=2.0), 10.0, 2.0),
        (UniformTime(least=1.0, most=4.0), 2.5, 0.866),
    ],
)
def test_what_is_drawn(
    time: FixedTime | ExponentialTime | NormalTime | UniformTime, mean: float, deviation: float
) -> None:
    """As spread as it says, and never below zero."""
    draw = sampler(time, random.Random(1))
    drawn = [draw() for _ in range(DRAWS)]

    assert mean == pytest.approx(statistics.mean(drawn), rel=0.03)
    assert deviation == pytest.approx(statistics.pstdev(drawn), rel=0.03)
    assert min(drawn) >= 0.0


def test_a_normal_time_has_no_sign() -> None:
    """Where the mean is zero, half of the draws would be before the beginning."""
    draw = sampler(NormalTime(mean=0.0, deviation=1.0), random.Random(1))

    assert 0.798 == pytest.approx(statistics.mean(draw() for _ in range(DRAWS)), rel=0.03)


@rows(
    ("build", "parameter"),
    [
        (lambda: FixedTime(seconds=-1.0), "seconds"),
        (lambda: ExponentialTime(mean=float("nan")), "mean"),
        (lambda: NormalTime(mean=1.0, deviation=-1.0), "deviation"),
        (lambda: UniformTime(least=2.0, most=1.0), "most"),
    ],
)
def test_nonsense_is_refused(build: Callable[[], object], parameter: str) -> None:
    """By the name of what is wrong."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        build()

    assert parameter == caught.value.parameter
