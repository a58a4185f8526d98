"""Histogram of durations with few buckets, and percentiles within 1.6 %."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

SIGNIFICANT_BITS = 7
"""Number of leading bits that determine the bucket of a duration. A bucket is at most 1/64 as wide as the durations in
it, so durations up to five minutes in microseconds need at most 1,500 buckets."""


class Histogram:
    """Counts of integers >= 0, in buckets whose width grows with the numbers."""

    __slots__ = ("counts", "largest")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        """Number of entries by the smallest number of their bucket."""
        self.largest: int = 0

    @property
    def total_count(self) -> int:
        """Number of entries."""
        return sum(self.counts.values())

    def add(self, number: int) -> None:
        """Count a number."""
        shift = number.bit_length() - SIGNIFICANT_BITS
        least = number >> shift << shift if shift > 0 else number
        self.counts[least] = self.counts.get(least, 0) + 1
        self.largest = max(self.largest, number)

    def percentiles(self, percents: Sequence[float]) -> list[int]:
        """Return for each percentage a number that this share of the entries does not exceed; 0 without entries.

        It is the largest number of its bucket, but at most the largest entry, so a percentile is never too low.

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
    """Return the largest number of the bucket whose smallest is ``least``."""
    shift = max(0, least.bit_length() - SIGNIFICANT_BITS)
    return least + (1 << shift) - 1
