"""Random times: their means, deviations and limits."""

from __future__ import annotations

import random
import statistics

import pytest

from tests.rows import rows
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
def test_mean_and_deviation_of_draws(
    time: FixedTime | ExponentialTime | NormalTime | UniformTime, mean: float, deviation: float
) -> None:
    """The draws have the given mean and deviation and are never negative."""
    draw = sampler(time, random.Random(1))
    drawn = [draw() for _ in range(DRAWS)]

    assert mean == pytest.approx(statistics.mean(drawn), rel=0.03)
    assert deviation == pytest.approx(statistics.pstdev(drawn), rel=0.03)
    assert min(drawn) >= 0.0


def test_normal_time_is_never_negative() -> None:
    """Negative draws change their sign, so a mean of zero gives the mean of a half-normal distribution."""
    draw = sampler(NormalTime(mean=0.0, deviation=1.0), random.Random(1))

    assert 0.798 == pytest.approx(statistics.mean(draw() for _ in range(DRAWS)), rel=0.03)
