"""Start times of operations, which are even, random or equal, under constant and changing demand."""

from __future__ import annotations

import random
import statistics
from itertools import pairwise

import pytest

from triclinium_core.tools.fleet.beginnings import Beginnings
from triclinium_core.tools.fleet.demand import ClosedLoop, PoissonArrivals, Spike
from triclinium_core.tools.fleet.scenario import Fleet


def beginnings(fleet: Fleet, duration: float) -> list[tuple[float, int]]:
    """Return the start times with their clients."""
    return list(Beginnings(fleet, duration, random.Random(1)))


def test_even_clients_share_the_period() -> None:
    """Each even client starts once in each period, in its own part of the period."""
    found = beginnings(Fleet(clients=4, period=2.0), 4.0)

    assert [0, 1, 2, 3] * 2 == [client for _, client in found]
    assert all(0.5 * place <= at < 0.5 * (place + 1) for place, (at, _) in enumerate(found))


def test_random_clients_are_memoryless() -> None:
    """Gaps are exponential, so their deviation equals their mean, and a client has its share."""
    found = beginnings(Fleet(clients=10, period=1.0, arrivals=PoissonArrivals()), 1_000.0)
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(found)]

    assert 0.1 == pytest.approx(statistics.mean(gaps), rel=0.04)
    assert 0.1 == pytest.approx(statistics.pstdev(gaps), rel=0.04)
    assert 1_000 == pytest.approx(sum(client == 3 for _, client in found), rel=0.15)


def test_random_clients_may_start_together() -> None:
    """With ``at_once``, each random client starts at time 0, in addition to its random starts."""
    found = beginnings(Fleet(clients=5, period=1.0, arrivals=PoissonArrivals(at_once=True)), 1.0)

    assert [(0.0, client) for client in range(5)] == found[:5]
    assert all(at > 0.0 for at, _ in found[5:])


def test_spike_is_denser() -> None:
    """A spike multiplies the starts of even clients."""
    found = beginnings(Fleet(clients=10, period=1.0, trend=Spike(start=1.0, end=2.0, factor=3.0)), 3.0)
    counts = [sum(start <= at < start + 1 for at, _ in found) for start in range(3)]

    assert [10, 30, 10] == counts


def test_closed_loop_starts_together() -> None:
    """All clients of a closed loop start at time 0; later starts depend on when operations end."""
    assert [(0.0, 0), (0.0, 1)] == beginnings(Fleet(clients=2, arrivals=ClosedLoop(operations=9)), 1.0)
