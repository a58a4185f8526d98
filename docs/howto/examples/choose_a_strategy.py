"""Compare a custom strategy with the built-in ones in an outage."""

from __future__ import annotations

import random

from triclinium import BestEffortRetryStrategy, exponential
from triclinium_core.tools.fleet import (
    Fleet,
    FleetFigures,
    Outage,
    Scenario,
    SimulatedService,
    couchbase_clients,
    play,
    simulate,
)

FLEET = Fleet(clients=500, period=10.0)
SCENARIO = Scenario(
    fleet=FLEET,
    service=SimulatedService(capacity=1.5 * FLEET.demand),
    outage=Outage(20.0, 30.0),
)


def patient() -> BestEffortRetryStrategy:
    """Return best effort with full jitter, and delays of up to two seconds."""
    return BestEffortRetryStrategy(exponential(first=0.05, most=2.0, jitter=1.0))


def show(figures: FleetFigures) -> None:
    """Print the result of one strategy."""
    totals = figures.totals
    recovered = "never" if figures.recovered_after is None else f"after {figures.recovered_after:g} s"
    print(
        f"{figures.strategy:21} {totals.succeeded / totals.begun:6.1%} succeeded, "
        f"{figures.peak_sent:4.0f} requests/s at most, recovered {recovered}"
    )


if __name__ == "__main__":
    for name in ("best_effort", "best_effort_jittered", "standard"):
        show(simulate(SCENARIO, name, rng=random.Random(1)))
    show(play(SCENARIO, "patient", couchbase_clients(patient), random.Random(1)))
