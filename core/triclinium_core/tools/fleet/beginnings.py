"""Start times of operations, and the client of each."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from typing import assert_never

from triclinium_core.retry.backoff import Random
from triclinium_core.tools.fleet.demand import ClosedLoop, EvenArrivals, PoissonArrivals, clock_of
from triclinium_core.tools.fleet.scenario import Fleet


class Beginnings:
    """Start times and clients in chronological order; for a closed loop only the first operation of each client.

    Args:
        fleet: the clients.
        duration: instant in seconds; no operation begins then or later.
        rng: random source for the phases of even arrivals, and for start times and clients of Poisson arrivals.
    """

    def __init__(self, fleet: Fleet, duration: float, rng: Random) -> None:
        self._fleet = fleet
        self._duration = duration
        self._rng = rng
        self._clock = clock_of(fleet.trend)
        # Each client has its own part of the period, so that the demand is as even as possible.
        self._phases = (
            array("d", ((client + rng.random()) / fleet.demand for client in range(fleet.clients)))
            if isinstance(fleet.arrivals, EvenArrivals)
            else array("d")
        )

    def __iter__(self) -> Iterator[tuple[float, int]]:
        arrivals = self._fleet.arrivals
        match arrivals:
            case EvenArrivals():
                found = self._even()
            case PoissonArrivals():
                found = self._poisson()
            case ClosedLoop():
                found = ((0.0, client) for client in range(self._fleet.clients))
            case _:
                assert_never(arrivals)
        for at, client in found:
            if at >= self._duration:
                return
            yield at, client

    def _even(self) -> Iterator[tuple[float, int]]:
        clock, period = self._clock, self._fleet.period
        start, periods = 0.0, 0
        while True:
            for client, phase in enumerate(self._phases):
                yield clock(start + phase), client
            periods += 1
            start = periods * period

    def _poisson(self) -> Iterator[tuple[float, int]]:
        # Many independent clients are equivalent to one stream in which each operation belongs to a random client.
        clock, clients, draw, log = self._clock, self._fleet.clients, self._rng.random, math.log
        yield from ((0.0, client) for client in range(self._fleet.at_once))
        gap = 1.0 / self._fleet.demand
        now = 0.0
        while True:
            now -= gap * log(1.0 - draw())
            yield clock(now), int(draw() * clients)
