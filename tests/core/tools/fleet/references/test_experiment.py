"""Comparison of figures with a reference, within four standard errors of both means plus rounding."""

from __future__ import annotations

import math
from functools import partial

import pytest

from triclinium_core.tools.fleet.figures import FleetFigures
from triclinium_core.tools.fleet.references.experiment import Quantity, Row


def attempts(figures: FleetFigures) -> float:
    """Return the number of attempts in a run."""
    return float(figures.totals.sent)


quantity = partial(Quantity, reference="reference", subject="subject", unit="unit", measure=attempts, expected=10.0)


def test_tolerance_has_three_parts() -> None:
    """Unless given, a tolerance combines the standard errors of the reference and our runs with the rounding."""
    found = quantity(error=0.3, spread=0.8, rounding=0.05)

    assert 4 * math.hypot(0.3, 0.4) + 0.05 == pytest.approx(found.tolerance(4))
    assert 4 * math.hypot(0.3, 0.08) + 0.05 == pytest.approx(found.tolerance(100))
    assert 2.0 == quantity(error=0.3, spread=0.8, rounding=0.05, slack=2.0).tolerance(4)


def test_mean_of_all_runs_is_compared() -> None:
    """The mean of all runs agrees up to the tolerance and not above it."""
    found = quantity(error=0.0, spread=1.0, rounding=0.0)
    near, far = found.judge([12.0, 12.0, 11.0, 13.0]), found.judge([12.0, 12.0, 11.0, 13.1])

    assert (12.0, True) == (near.got, near.ok)
    assert not far.ok


def test_row_as_json() -> None:
    """A row's JSON has exactly six keys."""
    row = Row("reference", "subject", "unit", 10.0, 0.5, 10.25)

    assert {
        "reference": "reference",
        "quantity": "subject: unit",
        "expected": 10.0,
        "tolerance": 0.5,
        "got": 10.25,
        "ok": True,
    } == row.to_json()
