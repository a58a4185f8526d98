"""Strategies in a scenario, which are read from plain data and retry like the strategy that they name."""

from __future__ import annotations

import random

import msgspec
import pytest

from tests.rows import rows
from triclinium_core.tools import fleet


def attempts_of(retries: fleet.Retries, *, operations: int = 1) -> int:
    """Return the number of attempts if each fails after a millisecond."""
    scenario = fleet.Scenario(
        fleet=fleet.Fleet(clients=1, timeout=1.0, arrivals=fleet.ClosedLoop(operations=operations)),
        service=fleet.ParallelService(leg=fleet.FixedTime(seconds=0.0005)),
        failure_rate=1.0,
        strategies=(retries,),
    )
    return fleet.simulate(scenario, retries.name, rng=random.Random(1)).totals.sent


@rows(
    ("retries", "attempts"),
    [
        (fleet.CountedRetries(name="n", max_attempts=4), 4),
        (fleet.CountedRetries(name="n", max_attempts=4, delays=fleet.ExponentialDelays(base=9.0, most=9.0)), 1),
        (fleet.CountedRetries(name="n", max_attempts=4, delays=fleet.DecorrelatedDelays(base=0.001, most=0.01)), 4),
        (fleet.QuotaRetries(name="n", max_attempts=9, quota=28, delays=fleet.NoDelay()), 3),
        (fleet.BudgetRetries(name="n", capacity=3.0), 3),
        (fleet.BreakerRetries(name="n", failure_share=2.0), 3),
        (fleet.CouchbaseRetries(name="n", first=0.3, most=0.3), 4),
    ],
)
def test_each_kind_is_a_strategy(retries: fleet.Retries, attempts: int) -> None:
    """Each kind of strategy makes as many attempts as its numbers permit."""
    assert attempts == attempts_of(retries)


def test_clients_of_a_process_share_their_strategy() -> None:
    """Two operations share one retry budget, which pays for two retries in total."""
    assert 2 + 2 == attempts_of(fleet.BudgetRetries(name="n", capacity=3.0, deposit=0.0), operations=2)


def test_a_scenario_is_plain_data() -> None:
    """A scenario is read from the values of TOML or JSON; an unknown key is rejected."""
    plain = {
        "fleet": {"clients": 5, "arrivals": {"type": "poisson"}, "trend": {"type": "ramp", "points": [[0, 1], [9, 2]]}},
        "service": {"type": "parallel", "base": 0.1, "leg": {"type": "exponential", "mean": 0.01}},
        "failure_rate": 0.1,
        "strategies": [{"type": "breaker", "name": "mine", "delays": {"type": "exponential", "base": 1, "most": 2}}],
    }
    scenario = msgspec.convert(plain, fleet.Scenario)

    assert scenario == msgspec.convert(msgspec.to_builtins(scenario), fleet.Scenario)
    assert (
        fleet.BreakerRetries(name="mine", delays=fleet.ExponentialDelays(base=1.0, most=2.0)),
    ) == scenario.strategies
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**plain, "failure_rates": 0.1}, fleet.Scenario)
