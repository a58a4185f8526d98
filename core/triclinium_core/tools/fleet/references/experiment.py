"""Experiment: a set-up that is run a number of times, and the figures with which it is compared.

A figure agrees if its difference from the expected figure is at most its tolerance. Without a ``slack``, the tolerance
is four standard errors of the difference between the published mean and ours, plus half a unit of the last published
digit. By chance, one figure in 16,000 differs by more than four standard errors, so another seed hardly ever fails
without a cause.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triclinium_core.retry.backoff import Random
from triclinium_core.tools.fleet.figures import FleetFigures
from triclinium_core.tools.fleet.play import simulate
from triclinium_core.tools.fleet.scenario import Scenario

SIGMAS = 4.0
"""Number of standard errors by which two figures may differ."""


def mean(values: Sequence[float]) -> float:
    """Return the mean of the figures of all runs."""
    return math.fsum(values) / len(values)


@dataclass(frozen=True, slots=True)
class Row:
    """Comparison of one figure."""

    reference: str
    """Name of the source of the figure."""
    subject: str
    """Part of the set-up."""
    unit: str
    """Unit of the figure."""
    expected: float
    tolerance: float
    """Maximum difference."""
    got: float

    @property
    def quantity(self) -> str:
        """Subject and unit."""
        return f"{self.subject}: {self.unit}"

    @property
    def ok(self) -> bool:
        """Whether the figures agree."""
        return abs(self.got - self.expected) <= self.tolerance

    def to_json(self) -> dict[str, object]:
        """Return the row as an object for JSON."""
        return {
            "reference": self.reference,
            "quantity": self.quantity,
            "expected": self.expected,
            "tolerance": round(self.tolerance, 6),
            "got": round(self.got, 6),
            "ok": self.ok,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One figure of an experiment."""

    reference: str
    """Name of the source of the figure."""
    subject: str
    """Part of the set-up."""
    unit: str
    """Unit of the figure."""
    expected: float
    measure: Callable[[FleetFigures], float]
    """Function that returns the figure of one run."""
    spread: float = 0.0
    """Standard deviation of single runs."""
    error: float = 0.0
    """Standard error of the expected figure; 0 for a formula."""
    rounding: float = 0.0
    """Half a unit of the last digit of the expected figure."""
    slack: float | None = None
    """Tolerance that replaces the tolerance of means; the experiment states why. None uses the tolerance of means."""
    summary: Callable[[Sequence[float]], float] = mean
    """Function that combines the figures of all runs into one."""

    def tolerance(self, runs: int) -> float:
        """Return the maximum difference for the figure of ``runs`` runs."""
        if self.slack is not None:
            return self.slack
        return SIGMAS * math.hypot(self.error, self.spread / math.sqrt(runs)) + self.rounding

    def judge(self, values: Sequence[float]) -> Row:
        """Return the comparison, given the figure of each run."""
        tolerance = self.tolerance(len(values))
        return Row(self.reference, self.subject, self.unit, self.expected, tolerance, self.summary(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Set-up with its expected figures."""

    name: str
    """Unique name, from which the seed of the experiment is derived."""
    scenario: Scenario
    strategy: str
    runs: int
    quantities: Sequence[Quantity]

    def play(self, rng: Random) -> Sequence[float]:
        """Return the figures of one run, in the order of the quantities."""
        figures = simulate(self.scenario, self.strategy, rng=rng)
        return [quantity.measure(figures) for quantity in self.quantities]

    def judge(self, runs: Sequence[Sequence[float]]) -> Sequence[Row]:
        """Return a comparison for each quantity, given the figures of all runs."""
        return [quantity.judge([figures[index] for figures in runs]) for index, quantity in enumerate(self.quantities)]
