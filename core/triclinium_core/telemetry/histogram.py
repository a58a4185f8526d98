"""Histogram of durations with few buckets. Its percentiles are at most 1.6 % too high."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

SIGNIFICANT_BITS = 7
"""Number of leading bits of a duration that determine its bucket. The width of a bucket is at most 1/64 of the
durations in the bucket, so durations of up to five minutes in microseconds need at most 1,500 buckets."""


class Histogram:
    """Counts of integers >= 0, in buckets that are wider for larger numbers."""

    __slots__ = ("counts", "largest")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        """Number of entries in each bucket. The key is the smallest number of the bucket."""
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
        """Return the percentiles: for each percentage, a number that this share of the entries does not exceed.

        Each percentile is the largest number of its bucket, but at most the largest entry, so it is never too low. All
        percentiles are 0 if there are no entries.

        Args:
            percents: percentages from 0 to 100, in ascending order.
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
    """Return the largest number of the bucket whose smallest number is ``least``."""
    shift = max(0, least.bit_length() - SIGNIFICANT_BITS)
    return least + (1 << shift) - 1
