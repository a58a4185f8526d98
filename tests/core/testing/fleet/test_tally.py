"""Counts over time: each in its bucket, those after the end in the totals only, and percentiles to a few percent."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from triclinium_core.testing.fleet.scenario import SECONDS_MAX, Fleet, Scenario, SimulatedService
from triclinium_core.testing.fleet.tally import Tally

SCENARIO = Scenario(fleet=Fleet(), service=SimulatedService(capacity=1.0), duration=2.5, bucket=1.0)


def test_each_instant_has_its_bucket() -> None:
    """The last may be cut short, and what comes after the end is in none that is shown."""
    tally = Tally(SCENARIO)
    for at in (0.0, 0.999, 1.0, 2.4, 2.5, 2.9, 99.0, math.inf):
        tally.sent[tally.at(at)] += 1
    figures = tally.figures("mine")

    assert [(0.0, 2), (1.0, 1), (2.0, 1)] == [(bucket.start, bucket.sent) for bucket in figures.buckets]
    assert 8 == figures.totals.sent
    assert "mine" == figures.strategy


@pytest.mark.parametrize(("bucket", "peak"), [(1.0, 4.0), (10.0, 2.0)])
def test_a_bucket_that_is_cut_short_counts_for_as_long_as_it_lasts(bucket: float, peak: float) -> None:
    """Two attempts in its half second are four a second, and a step longer than everything is as long as everything."""
    tally = Tally(replace(SCENARIO, bucket=bucket))
    for at in (0.0, 0.5, 1.0, 2.0, 2.4):
        tally.sent[tally.at(at)] += 1

    assert peak == tally.figures("").peak_sent


def test_buckets_of_tenths_are_as_many_as_they_should_be() -> None:
    """Though ten times a tenth is a little more than one."""
    scenario = Scenario(fleet=Fleet(), service=SimulatedService(capacity=1.0), duration=0.3, bucket=0.1)

    assert 3 == len(Tally(scenario).figures("").buckets)


def test_a_success_counts_where_it_comes_and_where_it_began() -> None:
    """The goodput is of the one, recovery looks at the other."""
    tally = Tally(SCENARIO)
    tally.success(0.5, 1.5)

    assert [(0, 1), (1, 0), (0, 0)] == [(bucket.succeeded, bucket.fulfilled) for bucket in tally.figures("").buckets]


def test_percentiles() -> None:
    """Half of the operations were no slower than the first, nearly all no slower than the second."""
    tally = Tally(SCENARIO)
    for milliseconds in range(1, 1001):
        tally.success(0.0, milliseconds / 1000)
    latencies = dict(tally.figures("").latencies)

    assert 0.5 == pytest.approx(latencies[50.0], rel=0.05)
    assert 0.99 == pytest.approx(latencies[99.0], rel=0.05)


def test_latencies_of_any_size_are_counted() -> None:
    """None at all, days, and what the longest timeout permits."""
    for latency in (1e6, SECONDS_MAX):
        tally = Tally(SCENARIO)
        tally.success(1.0, 1.0)
        tally.success(0.0, latency)
        latencies = dict(tally.figures("").latencies)

        assert latencies[50.0] < 1e-5
        assert latency == pytest.approx(latencies[99.0], rel=0.05)
