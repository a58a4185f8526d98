"""The demand over time: how much there is until an instant, and when so much has come."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.tools.fleet.demand import ClosedLoop, PoissonArrivals, Ramp, Spike, Steady, clock_of, demanded

SPIKE = Spike(start=2.0, end=4.0, factor=3.0)
RAMP = Ramp(points=((0.0, 1.0), (2.0, 2.0), (6.0, 0.0)))


@rows(
    ("trend", "duration", "expected"),
    [
        (Steady(), 5.0, 5.0),
        (SPIKE, 1.0, 1.0),
        (SPIKE, 3.0, 5.0),
        (SPIKE, 5.0, 9.0),
        (RAMP, 2.0, 3.0),
        (RAMP, 4.0, 6.0),
        (RAMP, 99.0, 7.0),
        (Ramp(points=((1.0, 0.5),)), 4.0, 2.0),
    ],
)
def test_the_demand_of_a_time(trend: Steady | Spike | Ramp, duration: float, expected: float) -> None:
    """Is the area under its lines."""
    assert expected == pytest.approx(demanded(trend, duration))


@given(
    trend=st.sampled_from([Steady(), SPIKE, RAMP, Ramp(points=((1.0, 0.0), (2.0, 3.0)))]),
    seconds=st.floats(0.0, 5.9),
)
def test_the_clock_undoes_the_demand(trend: Steady | Spike | Ramp, seconds: float) -> None:
    """At the instant that it tells, exactly so much has been demanded."""
    demand = demanded(trend, seconds)

    assert demand == pytest.approx(demanded(trend, clock_of(trend)(demand)), abs=1e-9)


def test_a_demand_that_ended_never_comes() -> None:
    """The ramp has had all it ever has."""
    assert math.inf == clock_of(RAMP)(7.5)


@rows(
    ("build", "parameter"),
    [
        (lambda: PoissonArrivals(at_once=1), "at_once"),  # type: ignore[arg-type]
        (lambda: ClosedLoop(operations=0), "operations"),
        (lambda: Spike(start=2.0, end=2.0, factor=2.0), "end"),
        (lambda: Spike(start=1.0, end=2.0, factor=-1.0), "factor"),
        (lambda: Ramp(points=()), "points"),
        (lambda: Ramp(points=((1.0, 1.0), (1.0, 2.0))), "points"),
        (lambda: Ramp(points=((1.0, -1.0),)), "points"),
        (lambda: Ramp(points=[1.0]), "points"),  # type: ignore[arg-type]
    ],
)
def test_nonsense_is_refused(build: Callable[[], object], parameter: str) -> None:
    """By the name of what is wrong."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        build()

    assert parameter == caught.value.parameter
