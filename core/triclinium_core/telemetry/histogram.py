"""Histogram of durations: few numbers, and any percentile within 1.6 %."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

SIGNIFICANT_BITS = 7
"""Bits of a duration that tell its bucket from others. A bucket is at most 1/64 as wide as the durations in it, so five
minutes in microseconds make 1,500 buckets at the very most."""


class Histogram:
    """Counts whole numbers of at least 0, in buckets that grow with them."""

    __slots__ = ("counts", "largest")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        """How many numbers there were, by the least one of their bucket."""
        self.largest: int = 0

    @property
    def total_count(self) -> int:
        """How many numbers there were."""
        return sum(self.counts.values())

    def add(self, number: int) -> None:
        """Count a number."""
        shift = number.bit_length() - SIGNIFICANT_BITS
        least = number >> shift << shift if shift > 0 else number
        self.counts[least] = self.counts.get(least, 0) + 1
        self.largest = max(self.largest, number)

    def percentiles(self, percents: Sequence[float]) -> list[int]:
        """Return for each percentage a number that so many of the numbers do not exceed; 0 where there were none.

        It is the largest of its bucket, so that a percentile is never flattered, and no more than the largest number.

        Args:
            percents: from 0 to 100, ascending.
        """
        found = list[int]()
        seen, total = 0, self.total_count
        buckets = iter(sorted(self.counts.items()))
        least = 0
        for percent in percents:
            wanted = max(1, ceil(total * percent / 100))
            while seen < min(wanted, total):
                least, count = next(buckets)
                seen += count
            found.append(min(_largest_beside(least), self.largest))
        return found


def _largest_beside(least: int) -> int:
    """Return the largest number of the bucket that begins with ``least``."""
    shift = max(0, least.bit_length() - SIGNIFICANT_BITS)
    return least + (1 << shift) - 1
