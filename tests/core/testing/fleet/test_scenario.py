"""A scenario that makes no sense is refused before anything is played, by what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tests.rows import rows
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.testing.fleet import Fleet, Outage, Scenario, SimulatedService

SERVICE = SimulatedService(capacity=10.0)


@rows(
    ("build", "parameter", "words"),
    [
        (lambda: Fleet(clients=0), "clients", "clients=0 must be an integer between 1 and 1,000,000"),
        (lambda: Fleet(clients=True), "clients", "clients=True"),
        (lambda: Fleet(clients=1_000_001), "clients", "clients=1000001"),
        (lambda: Fleet(clients=1.5), "clients", "clients=1.5"),  # type: ignore[arg-type]
        (lambda: Fleet(clients_per_process=0), "clients_per_process", "clients_per_process=0"),
        (lambda: Fleet(period=0.0), "period", "period=0.0 must be a finite number of seconds, more than 0"),
        (lambda: Fleet(period=math.nan), "period", "period=nan"),
        (lambda: Fleet(period="1"), "period", "period='1'"),  # type: ignore[arg-type]
        (lambda: Fleet(timeout=math.inf), "timeout", "timeout=inf"),
        (lambda: Fleet(attempt_timeout=-1.0), "attempt_timeout", "attempt_timeout=-1.0"),
        (lambda: Fleet(idempotent=1), "idempotent", "idempotent=1 must be True or False"),  # type: ignore[arg-type]
        (lambda: SimulatedService(capacity=0.0), "capacity", "requests per second, at least 1e-09"),
        (lambda: SimulatedService(capacity=1e-310), "capacity", "capacity=1e-310 must be a finite number of requests"),
        (lambda: SimulatedService(capacity=math.inf), "capacity", "capacity=inf must be a finite number of requests"),
        (lambda: SimulatedService(capacity=1.0, latency=1e308), "latency", "at least 0 and at most 1e\\+09"),
        (lambda: Fleet(clients=1, period=1e308), "period", "more than 0 and at most 1e\\+09"),
        (lambda: SimulatedService(capacity=1.0, latency=-0.1), "latency", "latency=-0.1 must be .* at least 0"),
        (lambda: SimulatedService(capacity=1.0, queue=0.0), "queue", "queue=0.0"),
        (lambda: SimulatedService(capacity=1.0, rejection_cost=1.1), "rejection_cost", "a share between 0 and 1"),
        (lambda: SimulatedService(capacity=1.0, rejection_cost=math.nan), "rejection_cost", "rejection_cost=nan"),
        (
            lambda: SimulatedService(capacity=1.0, overload="silent"),  # type: ignore[arg-type]
            "overload",
            "overload='silent' must be one of Overload.THROTTLES, Overload.SILENT",
        ),
        (lambda: Outage(-1.0, 2.0), "start", "start=-1.0 of an outage"),
        (lambda: Outage(1.0, math.nan), "end", "end=nan of an outage"),
        (lambda: Outage(2.0, 2.0), "end", "end=2.0 of an outage must come after its start, 2.0"),
        (lambda: Outage(1.0, 2.0, "away"), "kind", "kind='away' must be one of OutageKind"),  # type: ignore[arg-type]
        (lambda: Scenario(fleet=Fleet(), service=SERVICE, duration=0.0), "duration", "duration=0.0"),
        (lambda: Scenario(fleet=Fleet(), service=SERVICE, bucket=-1.0), "bucket", "bucket=-1.0"),
        (
            lambda: Scenario(fleet=Fleet(), service=SERVICE, outage=Outage(1.0, 61.0)),
            "outage",
            "the outage ends at 61 s, after the duration of 60 s; let it end earlier, or simulate for longer",
        ),
        (
            lambda: Scenario(fleet=Fleet(clients=1_000_000, period=1.0), service=SERVICE),
            "duration",
            "these are 60,000,000 operations, and 20,000,000 at most; simulate fewer clients, or less time",
        ),
        (
            lambda: Scenario(fleet=Fleet(clients=1_000_000, timeout=100.0), service=SERVICE),
            "timeout",
            "these are 10,000,000 operations under way, and 2,000,000 at most; shorten the timeout",
        ),
        (lambda: Scenario(fleet=Fleet(), service=SERVICE, bucket=0.0001), "bucket", "600,000 buckets, and 100,000"),
    ],
)
def test_nonsense_is_refused(build: Callable[[], object], parameter: str, words: str) -> None:
    """The error names the value, and which parameter it is."""
    with pytest.raises(InvalidArgumentException, match=words) as caught:
        build()

    assert parameter == caught.value.parameter


def test_the_demand_is_what_clients_ask_for() -> None:
    """Operations that begin in a second."""
    assert 10_000.0 == Fleet(clients=100_000, period=10.0).demand
