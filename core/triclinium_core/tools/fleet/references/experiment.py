"""An experiment: a set-up that is played a number of times, and what its figures are compared with.

A figure agrees when it differs from the expected one by no more than its tolerance. That has three parts: four standard
errors of the difference of two means, theirs and ours, and half a unit of the last digit that was published. Of four
standard errors chance makes more once in 16,000 figures, so that another seed hardly ever fails without a cause.
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
"""Standard errors by which two figures may differ."""


def mean(values: Sequence[float]) -> float:
    """Return the mean of the figures of all runs."""
    return math.fsum(values) / len(values)


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison."""

    reference: str
    """Whose figure."""
    subject: str
    """The part of the set-up that it is about."""
    unit: str
    """What is counted or measured."""
    expected: float
    tolerance: float
    """By how much the two may differ."""
    got: float

    @property
    def quantity(self) -> str:
        """Subject and unit."""
        return f"{self.subject}: {self.unit}"

    @property
    def ok(self) -> bool:
        """Whether they agree."""
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
    """Whose figure."""
    subject: str
    """The part of the set-up that it is about."""
    unit: str
    """What is counted or measured."""
    expected: float
    measure: Callable[[FleetFigures], float]
    """Reads it off one run."""
    spread: float = 0.0
    """The standard deviation of single runs."""
    error: float = 0.0
    """The standard error of what is expected; 0 for a formula."""
    rounding: float = 0.0
    """Half a unit of its last digit."""
    slack: float | None = None
    """The tolerance itself, where it is not one of means; the experiment says why."""
    summary: Callable[[Sequence[float]], float] = mean
    """Makes one figure of those of all runs."""

    def tolerance(self, runs: int) -> float:
        """Return by how much the figure of so many runs may differ."""
        if self.slack is not None:
            return self.slack
        return SIGMAS * math.hypot(self.error, self.spread / math.sqrt(runs)) + self.rounding

    def judge(self, values: Sequence[float]) -> Row:
        """Return the comparison, given what was read off each run."""
        tolerance = self.tolerance(len(values))
        return Row(self.reference, self.subject, self.unit, self.expected, tolerance, self.summary(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A set-up and what is known of it."""

    name: str
    """Unlike those of all others; a seed of its own is made from it."""
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
