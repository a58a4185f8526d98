"""Histogram with few buckets: its percentiles are never too low, and at most 1/64 too high."""

from __future__ import annotations

from math import ceil

from hypothesis import example, given, strategies as st

from triclinium_core.telemetry.histogram import Histogram

PERCENTS = (50.0, 90.0, 99.0, 99.9, 100.0)


def histogram_of(*numbers: int) -> Histogram:
    """Return a histogram of the numbers."""
    histogram = Histogram()
    for number in numbers:
        histogram.add(number)
    return histogram


def test_empty_histogram() -> None:
    """Count and percentiles of an empty histogram are 0."""
    assert (0, [0] * 5) == (Histogram().total_count, Histogram().percentiles(PERCENTS))


@given(numbers=st.lists(st.integers(0, 10**10), min_size=1, max_size=200))
@example(numbers=[*range(1, 128)])
@example(numbers=[1_000_003])
def test_a_percentile_is_close_above_the_true_one(numbers: list[int]) -> None:
    """A percentile is at most 1/64 above the exact one; below 128 it is exact, and so is the maximum."""
    found = histogram_of(*numbers).percentiles(PERCENTS)
    ordered = sorted(numbers)
    true = [ordered[max(1, ceil(len(numbers) * percent / 100)) - 1] for percent in PERCENTS]

    assert len(numbers) == histogram_of(*numbers).total_count
    assert all(exact <= got <= exact + exact / 64 for exact, got in zip(true, found, strict=True))
    assert [got for got in found if got < 128] == [exact for exact in true if exact < 128]
    assert max(numbers) == found[-1]


def test_there_are_few_buckets() -> None:
    """For any number of durations up to five minutes, the histogram has at most 1,500 buckets."""
    assert len(histogram_of(*range(0, 300_000_000, 9_973)).counts) <= 1_500
