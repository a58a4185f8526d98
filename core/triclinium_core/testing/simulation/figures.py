"""What a history was like, in numbers that can be added up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

SECONDS_PER_HOUR = 3600.0


@dataclass(slots=True)
class Figures:
    """Of one history, or of many together."""

    operations: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """How operations ended, in words."""
    faults: Counter[str] = field(default_factory=Counter)
    """Faults that struck, by the name of their constructor, and what else went wrong."""
    changes: Counter[str] = field(default_factory=Counter)
    """Changes of map and collections."""
    virtual_seconds: float = 0.0

    def add(self, other: Figures) -> None:
        """Add the numbers of another history."""
        self.operations += other.operations
        self.outcomes += other.outcomes
        self.faults += other.faults
        self.changes += other.changes
        self.virtual_seconds += other.virtual_seconds

    def lines(self) -> list[str]:
        """Return them in words, a line each."""
        hours = self.virtual_seconds / SECONDS_PER_HOUR
        return [
            f"operations  {self.operations:,}: {_counted(self.outcomes)}",
            f"troubles    {self.faults.total():,}: {_counted(self.faults)}",
            f"changes     {self.changes.total():,}: {_counted(self.changes)}",
            f"time        {hours:,.2f} virtual hours",
        ]


def _counted(counts: Counter[str]) -> str:
    ordered = sorted((+counts).items(), key=lambda row: (-row[1], row[0]))
    return ", ".join(f"{count:,} {name}" for name, count in ordered) or "none"
