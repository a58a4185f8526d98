"""Validation of a scenario, which refuses an invalid one with the reason before the simulation starts."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.tools import fleet
from triclinium_core.tools.fleet import Fleet, Outage, Scenario, SimulatedService
from triclinium_core.tools.fleet.demand import ClosedLoop, PoissonArrivals, Ramp, Spike
from triclinium_core.tools.fleet.times import ExponentialTime, FixedTime, NormalTime, UniformTime

SERVICE = SimulatedService(capacity=10.0)


def burst(timeout: float = 2.5) -> Fleet:
    """Return a million clients, each of which also begins an operation at 0."""
    return Fleet(clients=1_000_000, timeout=timeout, arrivals=PoissonArrivals(at_once=True))


@rows(
    ("build", "parameter", "said"),
    [
        (lambda: FixedTime(seconds=-1.0), "seconds", "-1.0"),
        (lambda: ExponentialTime(mean=math.nan), "mean", "nan"),
        (lambda: NormalTime(mean=1.0, deviation=-1.0), "deviation", "-1.0"),
        (lambda: UniformTime(least=2.0, most=1.0), "most", "1.0"),
        (lambda: PoissonArrivals(at_once=1), "at_once", "1"),  # type: ignore[arg-type]
        (lambda: ClosedLoop(operations=0), "operations", "0"),
        (lambda: Spike(start=2.0, end=2.0, factor=2.0), "end", "2.0"),
        (lambda: Spike(start=1.0, end=2.0, factor=-1.0), "factor", "-1.0"),
        (lambda: Ramp(points=()), "points", "points"),
        (lambda: Ramp(points=((1.0, 1.0), (1.0, 2.0))), "points", "1.0"),
        (lambda: Ramp(points=((1.0, -1.0),)), "points", "-1.0"),
        (lambda: Ramp(points=[1.0]), "points", "1.0"),  # type: ignore[arg-type]
        (lambda: fleet.CountedRetries(name="", max_attempts=1), "name", "name"),
        (lambda: fleet.CountedRetries(name="n", max_attempts=0), "max_attempts", "0"),
        (lambda: fleet.QuotaRetries(name="n", quota=-1), "quota", "-1"),
        (lambda: fleet.BudgetRetries(name="n", capacity=-1.0), "capacity", "-1.0"),
        (lambda: fleet.BudgetRetries(name="n", deposit=-1.0), "deposit", "-1.0"),
        (lambda: fleet.BreakerRetries(name="n", failure_share=-1.0), "failure_share", "-1.0"),
        (lambda: fleet.CouchbaseRetries(name="n", first=2.0, most=1.0), "first", "2.0"),
        (lambda: fleet.ExponentialDelays(base=-1.0, most=1.0), "base", "-1.0"),
        (lambda: fleet.DecorrelatedDelays(base=1.0, most=-1.0), "most", "-1.0"),
        (lambda: Fleet(clients=0), "clients", "1000000"),
        (lambda: Fleet(clients=True), "clients", "True"),
        (lambda: Fleet(clients=1_000_001), "clients", "1000001"),
        (lambda: Fleet(clients=1.5), "clients", "1.5"),  # type: ignore[arg-type]
        (lambda: Fleet(clients=1, period=1e308), "period", "1000000000"),
        (lambda: Fleet(clients_per_process=0), "clients_per_process", "0"),
        (lambda: Fleet(period=0.0), "period", "0.0"),
        (lambda: Fleet(period=math.nan), "period", "nan"),
        (lambda: Fleet(period="1"), "period", "'1'"),  # type: ignore[arg-type]
        (lambda: Fleet(timeout=math.inf), "timeout", "inf"),
        (lambda: Fleet(attempt_timeout=-1.0), "attempt_timeout", "-1.0"),
        (lambda: Fleet(idempotent=1), "idempotent", "1"),  # type: ignore[arg-type]
        (lambda: SimulatedService(capacity=0.0), "capacity", "1e-09"),
        (lambda: SimulatedService(capacity=1e-310), "capacity", "1e-310"),
        (lambda: SimulatedService(capacity=math.inf), "capacity", "inf"),
        (lambda: SimulatedService(capacity=1.0, latency=1e308), "latency", "1000000000"),
        (lambda: SimulatedService(capacity=1.0, latency=-0.1), "latency", "-0.1"),
        (lambda: SimulatedService(capacity=1.0, queue=0.0), "queue", "0.0"),
        (lambda: SimulatedService(capacity=1.0, rejection_cost=1.1), "rejection_cost", "1.1"),
        (lambda: SimulatedService(capacity=1.0, rejection_cost=math.nan), "rejection_cost", "nan"),
        (lambda: SimulatedService(capacity=1.0, overload="silent"), "overload", "SILENT"),  # type: ignore[arg-type]
        (lambda: Outage(-1.0, 2.0), "start", "-1.0"),
        (lambda: Outage(1.0, math.nan), "end", "nan"),
        (lambda: Outage(2.0, 2.0), "end", "2.0"),
        (lambda: Outage(1.0, 2.0, "away"), "kind", "OutageKind"),  # type: ignore[arg-type]
        (lambda: Scenario(fleet=Fleet(), service=SERVICE, duration=0.0), "duration", "0.0"),
        (lambda: Scenario(fleet=Fleet(), service=SERVICE, bucket=-1.0), "bucket", "-1.0"),
        (lambda: Scenario(fleet=Fleet(), service=SERVICE, bucket=0.0001), "bucket", "600,000"),
        (lambda: Scenario(fleet=Fleet(), service=SERVICE, outage=Outage(1.0, 61.0)), "outage", "61 s.*60 s"),
        (lambda: Scenario(fleet=Fleet(clients=1_000_000, period=1.0), service=SERVICE), "duration", "60,000,000"),
        (lambda: Scenario(fleet=Fleet(clients=1_000_000, timeout=22.0), service=SERVICE), "timeout", "2,200,000"),
        (lambda: Scenario(fleet=burst(), service=SERVICE, duration=195.0), "duration", "20,500,000"),
        (lambda: Scenario(fleet=burst(timeout=12.0), service=SERVICE), "timeout", "2,200,000"),
    ],
)
def test_invalid_value_is_refused(build: Callable[[], object], parameter: str, said: str) -> None:
    """The error names the parameter, and the value or the limit that it breaks."""
    with pytest.raises(errors.InvalidArgumentException, match=said) as caught:
        build()

    assert parameter == caught.value.parameter
