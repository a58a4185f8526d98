"""Several contenders take turns, so that whatever else the machine does strikes each of them.

What is measured is processor time of this process: a server or another client that runs beside it does not count. What
matters is a ratio, taken within each round, for rounds differ more than contenders do.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping, Sequence

import msgspec

Turn = Callable[[], float]
"""Does the work once, and returns what each operation of it cost: seconds of processor time, bytes, or calls."""


class Spread(msgspec.Struct, frozen=True):
    """The median of all rounds, and their quartiles."""

    low: float
    median: float
    high: float


class Row(msgspec.Struct, frozen=True):
    """One thing that was measured: what it cost each contender, and how many times as much as the first of them."""

    part: str
    what: str
    unit: str
    costs: Mapping[str, Spread]
    ratios: Mapping[str, Spread]


def take_turns(contenders: Mapping[str, Turn], rounds: int) -> Mapping[str, Sequence[float]]:
    """Return what each contender needed in each round. Every round begins with another contender."""
    names = list(contenders)
    found: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            # What the one before has left behind is not for this one to collect.
            gc.collect()
            found[name].append(contenders[name]())
    return found


def row(part: str, what: str, contenders: Mapping[str, Turn], rounds: int, *, unit: str = "µs") -> Row:
    """Measure, and return what was found; seconds are told as microseconds."""
    found = take_turns(contenders, rounds)
    scale = 1e6 if unit == "µs" else 1.0
    first, *others = found
    return Row(
        part,
        what,
        unit,
        {name: spread([cost * scale for cost in costs]) for name, costs in found.items()},
        {name: ratio(found[name], found[first]) for name in others},
    )


def spread(values: Sequence[float]) -> Spread:
    """Return median and quartiles; of fewer than two values, the value itself."""
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(low, median, high)


def ratio(of: Sequence[float], to: Sequence[float]) -> Spread:
    """Return ``of`` divided by ``to``, round by round."""
    return spread([one / other for one, other in zip(of, to, strict=True)])
