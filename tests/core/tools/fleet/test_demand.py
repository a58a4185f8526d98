"""Demand over time: the total until an instant, and the instant of a total."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.tools.fleet.demand import Ramp, Spike, Steady, clock_of, demanded

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
def test_demand_until_an_instant(trend: Steady | Spike | Ramp, duration: float, expected: float) -> None:
    """The demand until an instant is the area under the trend."""
    assert expected == pytest.approx(demanded(trend, duration))


@given(
    trend=st.sampled_from([Steady(), SPIKE, RAMP, Ramp(points=((1.0, 0.0), (2.0, 3.0)))]),
    seconds=st.floats(0.0, 5.9),
)
def test_clock_inverts_the_demand(trend: Steady | Spike | Ramp, seconds: float) -> None:
    """The clock returns the instant at which the given demand is reached."""
    demand = demanded(trend, seconds)

    assert demand == pytest.approx(demanded(trend, clock_of(trend)(demand)), abs=1e-9)


def test_demand_after_the_end_is_never_reached() -> None:
    """A demand above the ramp's total is never reached."""
    assert math.inf == clock_of(RAMP)(7.5)
