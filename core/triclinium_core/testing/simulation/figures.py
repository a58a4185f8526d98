"""Statistics of a history, which can be added to the statistics of other histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

MINUTE = 60.0
HOUR = 3600.0

Row = tuple[str, int]


@dataclass(slots=True)
class Figures:
    """Statistics of one history, or the sum of several."""

    operations: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """Number of operations by outcome, in words."""
    faults: Counter[str] = field(default_factory=Counter)
    """Number of faults that struck and of other problems, by kind, in words."""
    changes: Counter[str] = field(default_factory=Counter)
    """Number of changes, such as to the map and to collections, by kind."""
    virtual_seconds: float = 0.0
    requests: int = 0
    """Number of requests to HTTP services."""
    request_outcomes: Counter[str] = field(default_factory=Counter)
    """Number of requests by outcome, in words."""
    rows: int = 0
    """Number of rows received by readers."""

    def add(self, other: Figures) -> None:
        """Add the statistics of another history."""
        self.operations += other.operations
        self.outcomes += other.outcomes
        self.faults += other.faults
        self.changes += other.changes
        self.virtual_seconds += other.virtual_seconds
        self.requests += other.requests
        self.request_outcomes += other.request_outcomes
        self.rows += other.rows

    def lines(self) -> list[str]:
        """Return the statistics as lines of a table with aligned columns, and the virtual time."""
        operations = _rows("operations", self.operations, self.outcomes)
        changes = _rows("changes", self.changes.total(), self.changes)
        requests = [*_rows("requests", self.requests, self.request_outcomes), ("rows", self.rows)]
        left = _aligned([*operations, *requests, *changes])
        right = _aligned(_rows("troubles", self.faults.total(), self.faults))
        pairs = zip_longest(left, right, fillvalue="")
        table = [f"{one:{len(left[0])}}    {other}".rstrip() for one, other in pairs]
        return [*table, f"{_duration(self.virtual_seconds)} in virtual time"]


def _rows(title: str, total: int, counts: Counter[str]) -> Iterator[Row]:
    yield title, total
    for name, count in sorted((+counts).items(), key=lambda row: (-row[1], row[0])):
        yield f"  {name}", count


def _aligned(rows: Iterable[Row]) -> list[str]:
    texts = [(name, f"{count:,}") for name, count in rows]
    names = max(len(name) for name, _ in texts)
    counts = max(len(count) for _, count in texts)
    return [f"{name:{names}}  {count:>{counts}}" for name, count in texts]


def _duration(seconds: float) -> str:
    return f"{seconds / HOUR:,.1f} hours" if seconds >= HOUR else f"{seconds / MINUTE:.1f} minutes"
