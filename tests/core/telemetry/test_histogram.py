"""Histogram with few buckets: its percentiles are never too low, and at most 1/64 too high."""

from __future__ import annotations

from math import ceil

from hypothesis import given, strategies as st

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


def test_small_numbers_are_exact() -> None:
    """Each number below 128 has its own bucket, so its percentile is exact."""
    assert [50, 90, 99, 100, 100] == histogram_of(*range(1, 101)).percentiles(PERCENTS)


def test_maximum_is_exact() -> None:
    """The maximum is the exact largest number, and not the limit of its bucket."""
    assert [1_000_003] * 5 == histogram_of(1_000_003).percentiles(PERCENTS)


@given(numbers=st.lists(st.integers(0, 10**10), min_size=1, max_size=200))
def test_a_percentile_is_close_above_the_true_one(numbers: list[int]) -> None:
    """A percentile is at least the exact percentile, and at most 1/64 above it."""
    found = histogram_of(*numbers).percentiles(PERCENTS)
    ordered = sorted(numbers)
    true = [ordered[max(1, ceil(len(numbers) * percent / 100)) - 1] for percent in PERCENTS]

    assert len(numbers) == histogram_of(*numbers).total_count
    assert all(exact <= got <= exact + exact / 64 for exact, got in zip(true, found, strict=True))


def test_there_are_few_buckets() -> None:
    """For any number of durations up to five minutes, the histogram has at most 1,500 buckets."""
    assert len(histogram_of(*range(0, 300_000_000, 9_973)).counts) <= 1_500
