"""The figures of a fleet: when it counts as recovered, and what they are as JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pytest

from triclinium_core.testing.fleet import Bucket, Fleet, Outage, Scenario, SimulatedService, simulate
from triclinium_core.testing.fleet.figures import recovered_after


def buckets(*shares: tuple[int, int]) -> Sequence[Bucket]:
    """Return buckets of a second, given how many operations began in each, and how many of these succeeded."""
    return [
        Bucket(
            start=float(second),
            begun=begun,
            sent=begun,
            succeeded=0,
            failed=0,
            fulfilled=fulfilled,
            throttled=0,
            wasted=0,
            queue=0.0,
        )
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
def test_recovered_is_what_stays_so(shares: list[tuple[int, int]], expected: float | None) -> None:
    """From the first bucket on after which no more than one operation in twenty fails; empty buckets say nothing."""
    assert expected == recovered_after(buckets(*shares), Outage(0.5, 1.0))


def test_a_bucket_that_the_outage_ends_in_does_not_count() -> None:
    """The first whole one does, so that the time is told too long rather than too short."""
    assert 0.5 == recovered_after(buckets((100, 100), (100, 100), (100, 100)), Outage(0.5, 1.5))


def test_figures_as_json() -> None:
    """Every number stands in it, and JSON takes all of them."""
    scenario = Scenario(
        fleet=Fleet(clients=10, period=1.0),
        service=SimulatedService(capacity=20.0),
        outage=Outage(1.0, 2.0),
        duration=4.0,
    )
    found = json.loads(json.dumps(simulate(scenario, "none", rng=random.Random(1)).to_json()))

    assert {"strategy", "totals", "peak_sent_per_second", "recovered_after", "latencies", "buckets"} == set(found)
    assert {"begun": 40, "sent": 40, "amplification": 1.0}.items() <= found["totals"].items()
    assert found["totals"]["succeeded"] == sum(bucket["succeeded"] for bucket in found["buckets"])
    assert [0.0, 1.0, 2.0, 3.0] == [bucket["start"] for bucket in found["buckets"]]
    assert 0.0 == found["recovered_after"]
    assert {"p50", "p99"} == set(found["latencies"])
