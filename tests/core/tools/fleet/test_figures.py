"""Figures of a fleet: counts over time, percentiles, recovery, and their JSON."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from triclinium_core.tools.fleet import Fleet, Outage, Scenario, SimulatedService, TimeStep, simulate
from triclinium_core.tools.fleet.figures import Tally, recovered_after
from triclinium_core.tools.fleet.times import SECONDS_MAX

SCENARIO = Scenario(fleet=Fleet(), service=SimulatedService(capacity=1.0), duration=2.5, bucket=1.0)


def buckets(*shares: tuple[int, int]) -> Sequence[TimeStep]:
    """Return buckets of one second from the started and the eventually successful operations of each."""
    rest = {"succeeded": 0, "failed": 0, "throttled": 0, "wasted": 0, "queue": 0.0}
    return [
        TimeStep(start=float(second), begun=begun, sent=begun, fulfilled=fulfilled, **rest)  # type: ignore[arg-type]
        for second, (begun, fulfilled) in enumerate(shares)
    ]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([(100, 0), (100, 100), (100, 100)], 0.0),
        ([(100, 0), (100, 94), (100, 95)], 1.0),
        ([(100, 0), (100, 100), (100, 94), (100, 96)], 2.0),
        ([(100, 0), (100, 100), (100, 94)], None),
        ([(100, 0), (0, 0), (100, 100)], 1.0),
        ([(100, 0), (100, 0), (0, 0)], None),
    ],
)
def test_recovery_must_last(shares: list[tuple[int, int]], expected: float | None) -> None:
    """Recovery starts at the first bucket from which at most one operation in 20 fails; empty ones are ignored."""
    assert expected == recovered_after(buckets(*shares), Outage(0.5, 1.0))


def test_recovery_ignores_the_outages_last_bucket() -> None:
    """Recovery starts with the first bucket after the outage, so its time is too long rather than too short."""
    assert 0.5 == recovered_after(buckets((100, 100), (100, 100), (100, 100)), Outage(0.5, 1.5))


def test_figures_as_json() -> None:
    """The JSON of the figures contains all numbers."""
    scenario = Scenario(
        fleet=Fleet(clients=10, period=1.0),
        service=SimulatedService(capacity=20.0),
        outage=Outage(1.0, 2.0),
        duration=4.0,
    )
    found = json.loads(json.dumps(simulate(scenario, "none", rng=random.Random(1)).to_json()))

    assert {
        "strategy",
        "totals",
        "peak_sent_per_second",
        "recovered_after",
        "latencies",
        "latency_mean",
        "finished_at",
        "buckets",
    } == set(found)
    assert {"begun": 40, "sent": 40, "amplification": 1.0}.items() <= found["totals"].items()
    assert found["totals"]["succeeded"] == sum(bucket["succeeded"] for bucket in found["buckets"])
    assert [0.0, 1.0, 2.0, 3.0] == [bucket["start"] for bucket in found["buckets"]]
    assert 0.0 == found["recovered_after"]
    assert {"p50", "p99"} == set(found["latencies"])


def test_each_instant_has_its_bucket() -> None:
    """The last bucket may be shorter; events after the end count only in the totals."""
    tally = Tally(SCENARIO)
    for at in (0.0, 0.999, 1.0, 2.4, 2.5, 2.9, 99.0, math.inf):
        tally.count("sent", at)
    figures = tally.figures("mine")

    assert [(0.0, 2), (1.0, 1), (2.0, 1)] == [(bucket.start, bucket.sent) for bucket in figures.buckets]
    assert 8 == figures.totals.sent
    assert "mine" == figures.strategy


@pytest.mark.parametrize(("bucket", "peak"), [(1.0, 4.0), (10.0, 2.0)])
def test_short_bucket_counts_for_its_real_length(bucket: float, peak: float) -> None:
    """A rate uses the real length of a bucket that the end of the run cuts short."""
    tally = Tally(replace(SCENARIO, bucket=bucket))
    for at in (0.0, 0.5, 1.0, 2.0, 2.4):
        tally.count("sent", at)

    assert peak == tally.figures("").peak_sent


def test_number_of_buckets_of_a_tenth() -> None:
    """A run of 0.3 s has three buckets of 0.1 s, in spite of binary rounding."""
    scenario = Scenario(fleet=Fleet(), service=SimulatedService(capacity=1.0), duration=0.3, bucket=0.1)

    assert 3 == len(Tally(scenario).figures("").buckets)


def test_success_counts_at_its_end_and_start() -> None:
    """A success counts as goodput in the bucket in which it ends, and for recovery in that in which it started."""
    tally = Tally(SCENARIO)
    tally.success(0.5, 1.5)

    assert [(0, 1), (1, 0), (0, 0)] == [(bucket.succeeded, bucket.fulfilled) for bucket in tally.figures("").buckets]


def test_percentiles() -> None:
    """The median and the 99th percentile are within 5 % of the true latencies."""
    tally = Tally(SCENARIO)
    for milliseconds in range(1, 1001):
        tally.success(0.0, milliseconds / 1000)
    latencies = dict(tally.figures("").latencies)

    assert 0.5 == pytest.approx(latencies[50.0], rel=0.05)
    assert 0.99 == pytest.approx(latencies[99.0], rel=0.05)


def test_latencies_of_any_size_are_counted() -> None:
    """Latencies of zero, of days and of the longest timeout are counted."""
    for latency in (1e6, SECONDS_MAX):
        tally = Tally(SCENARIO)
        tally.success(1.0, 1.0)
        tally.success(0.0, latency)
        latencies = dict(tally.figures("").latencies)

        assert latencies[50.0] < 1e-5
        assert latency == pytest.approx(latencies[99.0], rel=0.05)
