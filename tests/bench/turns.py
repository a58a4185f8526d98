"""Measurement of contenders that take turns, so that other load on the machine affects all of them.

Contenders are compared by their ratio within each round, because rounds differ more than contenders do. Less is better
in all units.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import msgspec

PROCESSOR = "µs of processor time"
"""Processor time of all threads of this process, without the server."""
WALL = "µs of wall clock"
"""Wall clock divided by all operations, so that 10 µs are 100,000 operations per second."""

Turn = Callable[[], Mapping[str, float]]
"""Function that does the work once, and returns the cost of each operation by unit."""


class Effort(NamedTuple):
    """Amount of work for a figure."""

    rounds: int
    """Number of rounds in which each contender has a turn."""
    scale: float = 1.0
    """Share of the work of a turn; 1 for figures, less to check that a row works."""

    def of(self, count: int) -> int:
        """Return the scaled number of operations."""
        return max(1, round(count * self.scale))

    @property
    def short(self) -> Effort:
        """Effort with more rounds, for turns that take a few milliseconds."""
        return self._replace(rounds=3 * self.rounds)

    @property
    def long(self) -> Effort:
        """Effort with fewer rounds, for turns that take seconds."""
        return self._replace(rounds=max(1, self.rounds // 2))


class Spread(msgspec.Struct, frozen=True):
    """Median and quartiles of all rounds."""

    low: float
    median: float
    high: float


class Row(msgspec.Struct, frozen=True):
    """Figure of one contender, or of several that took turns.

    ``costs`` are keyed by contender; ``ratios`` are those of all other contenders to the first. ``missing`` are the
    contenders that are not installed.
    """

    table: str
    what: str
    unit: str
    costs: Mapping[str, Spread]
    ratios: Mapping[str, Spread]
    missing: Sequence[str] = ()


def measure(table: str, what: str, contenders: Mapping[str, Turn | None], effort: Effort) -> Iterator[Row]:
    """Yield a row for each unit; a contender without a turn is missing."""
    turns = {name: turn for name, turn in contenders.items() if turn is not None}
    missing = [name for name in contenders if name not in turns]
    if not turns:
        yield Row(table, what, "", {}, {}, missing)
        return
    found = take_turns(turns, effort.rounds)
    first, *others = found
    for unit in found[first][0]:
        values = {name: [costs[unit] for costs in rounds] for name, rounds in found.items()}
        yield Row(
            table,
            what,
            unit,
            {name: spread(costs) for name, costs in values.items()},
            {name: ratio(values[name], values[first]) for name in others},
            missing,
        )


def take_turns(turns: Mapping[str, Turn], rounds: int) -> Mapping[str, Sequence[Mapping[str, float]]]:
    """Return the costs of each contender in each round. Each round starts with the next contender in turn."""
    names = list(turns)
    found: dict[str, list[Mapping[str, float]]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            # Collect garbage and freeze objects, so that a turn neither collects earlier garbage nor scans old objects.
            gc.collect()
            gc.freeze()
            found[name].append(turns[name]())
    return found


class Stopwatch:
    """Measurement of a block in processor time and wall clock."""

    def __enter__(self) -> Self:
        self._wall, self._processor = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self._processor = time.process_time() - self._processor
        self._wall = time.perf_counter() - self._wall

    def processor(self, operations: int) -> Mapping[str, float]:
        """Return the cost of each operation of the block."""
        return {PROCESSOR: self._processor / operations * 1e6}

    def both(self, operations: int) -> Mapping[str, float]:
        """Return the cost of each operation of the block in both units."""
        return {**self.processor(operations), WALL: self._wall / operations * 1e6}


def spread(values: Sequence[float]) -> Spread:
    """Return median and quartiles; for a single value, the value itself."""
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(low, median, high)


def ratio(of: Sequence[float], to: Sequence[float]) -> Spread:
    """Return ``of`` divided by ``to`` for each round."""
    return spread([one / other for one, other in zip(of, to, strict=True)])
