"""The simulation itself: one heap of what is to come, in virtual time.

An attempt whose end is known, and that nobody else has to hear of, is settled at once: without trouble an operation
costs no entry of the heap.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.backoff import Random
from triclinium_core.testing.fleet.figures import FleetFigures, Tally
from triclinium_core.testing.fleet.scenario import Scenario
from triclinium_core.testing.fleet.service import AttemptOutcome, ServiceMachine
from triclinium_core.testing.fleet.strategies import STRATEGIES, Call, MakeProcess, Process

_Entry = tuple[float, int, Call, AttemptOutcome | None]
"""When, a number that settles who is first at the same instant, and how an attempt ends; None for the next attempt."""

OnProgress = Callable[[float], None]
"""Hears how far a simulation has come, in virtual seconds from 0 to its duration."""

PROGRESS_STEPS = 200
"""How often it hears so, at most."""


def simulate(scenario: Scenario, strategy: str, *, rng: Random, on_progress: OnProgress | None = None) -> FleetFigures:
    """Return what the outage is like when all clients have the strategy of this name.

    The same scenario, strategy and numbers of ``rng`` give the same figures.

    Args:
        strategy: one of ``STRATEGIES``.
        rng: the phases of the clients, and the jitter of their backoffs.
        on_progress: hears how far the simulation has come, in virtual seconds.

    Raises:
        InvalidArgumentException: there is no such strategy.
    """
    if strategy not in STRATEGIES:
        raise InvalidArgumentException(
            f"there is no strategy {strategy!r}; there is {', '.join(STRATEGIES)}", parameter="strategy"
        )
    return play(scenario, strategy, STRATEGIES[strategy].make_process, rng, on_progress)


def play(
    scenario: Scenario, name: str, make_process: MakeProcess, rng: Random, on_progress: OnProgress | None = None
) -> FleetFigures:
    """Return the same for a strategy of one's own, under the name that the figures shall have."""
    player = _Player(scenario, make_process, rng)
    player.play(on_progress)
    return player.tally.figures(name)


class _Player:
    """Operations under way, and what happens next."""

    def __init__(self, scenario: Scenario, make_process: MakeProcess, rng: Random) -> None:
        fleet = scenario.fleet
        self.tally = Tally(scenario)
        self._scenario = scenario
        self._service = ServiceMachine(scenario.service, scenario.outage)
        self._heap: list[_Entry] = []
        self._entries = 0
        # Each client has its share of the period, so that the demand is as even as clients can make it.
        self._phases = array("d", ((client + rng.random()) / fleet.demand for client in range(fleet.clients)))
        processes = math.ceil(fleet.clients / fleet.clients_per_process)
        self._processes: list[Process] = [make_process(fleet, rng) for _ in range(processes)]

    def play(self, on_progress: OnProgress | None) -> None:
        """Let all operations begin, and follow each to its end."""
        heap, timeout, duration = self._heap, self._scenario.fleet.timeout, self._scenario.duration
        step = duration / PROGRESS_STEPS
        report_at = step if on_progress is not None else math.inf
        for at, process in self._beginnings():
            if on_progress is not None and at >= report_at:
                on_progress(at)
                report_at = at + step
            while heap and heap[0][0] <= at:
                self._happen()
            self.tally.count("begun", at)
            call = process(at, at + timeout)
            resume_at = call.begin(at)
            if resume_at is None:
                self._send(call, at)
            else:
                self._push(resume_at, call, None)
        while heap:
            self._happen()
        if on_progress is not None:
            on_progress(duration)

    def _beginnings(self) -> Iterator[tuple[float, Process]]:
        """Yield when operations begin, and in which process. Neighbours in time are in different processes."""
        fleet, duration = self._scenario.fleet, self._scenario.duration
        processes, count = self._processes, len(self._processes)
        start = 0.0
        periods = 0
        while start < duration:
            for client, phase in enumerate(self._phases):
                if start + phase >= duration:
                    return
                yield start + phase, processes[client % count]
            periods += 1
            start = periods * fleet.period

    def _happen(self) -> None:
        now, _, call, outcome = heappop(self._heap)
        if outcome is None:
            if call.resume(now):
                self._send(call, now)
            else:
                self.tally.count("failed", now)
        elif outcome is AttemptOutcome.ANSWERED:
            call.succeed(now)
            self.tally.success(call.began, now)
        else:
            resume_at = call.fail(outcome, now)
            if resume_at is None:
                self.tally.count("failed", now)
            else:
                self._push(resume_at, call, None)

    def _send(self, call: Call, now: float) -> None:
        service, tally = self._service, self.tally
        tally.count("sent", now)
        outcome, at = service.receive(now)
        tally.waits(service.waiting(now), now)
        if outcome is AttemptOutcome.THROTTLED:
            tally.count("throttled", now)
        call.dispatch(outcome, now)
        gives_up_at = min(call.deadline, now + call.attempt_timeout)
        if at >= gives_up_at:
            if outcome is AttemptOutcome.ANSWERED:
                tally.count("wasted", at)
            if gives_up_at < call.deadline:
                self._push(gives_up_at, call, AttemptOutcome.TIMED_OUT)
            else:
                call.expire(call.deadline)
                self.tally.count("failed", call.deadline)
        elif outcome is AttemptOutcome.ANSWERED and not call.hears_success:
            tally.success(call.began, at)
        else:
            self._push(at, call, outcome)

    def _push(self, at: float, call: Call, outcome: AttemptOutcome | None) -> None:
        self._entries += 1
        heappush(self._heap, (at, self._entries, call, outcome))
