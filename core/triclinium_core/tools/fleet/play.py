"""Simulation loop: one heap of events in virtual time.

If the end of an attempt is known and does not affect other operations, the loop completes the attempt immediately. So
most operations without problems need no entry in the heap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush

from triclinium_core import errors
from triclinium_core.retry.backoff import Random
from triclinium_core.tools.fleet.beginnings import Beginnings
from triclinium_core.tools.fleet.demand import ClosedLoop
from triclinium_core.tools.fleet.figures import FleetFigures, Tally
from triclinium_core.tools.fleet.scenario import Scenario
from triclinium_core.tools.fleet.service import AttemptOutcome, Later, service_machine
from triclinium_core.tools.fleet.strategies import STRATEGIES, Call, MakeProcess, Process, clients_of
from triclinium_core.tools.fleet.times import sampler

_Entry = tuple[float, int, Call | None, AttemptOutcome | Later | int | None]
"""Instant, number that orders entries of the same instant, operation, and event of the operation: the end of an
attempt, a call of the service about it, or None if the next attempt is due. Without an operation, the event is the
number of a client that begins an operation, or a call of the service about a request whose client has left."""

OnProgress = Callable[[float], None]
"""Callback for the progress of a simulation, in virtual seconds from 0 to its duration."""

PROGRESS_STEPS = 200
"""Maximum number of calls of ``OnProgress``."""


def simulate(scenario: Scenario, strategy: str, *, rng: Random, on_progress: OnProgress | None = None) -> FleetFigures:
    """Return the figures of a scenario in which all clients have the strategy with this name.

    The same scenario, strategy and numbers of ``rng`` give the same figures.

    Args:
        scenario: clients, service and outage.
        strategy: name of a strategy of the scenario or of ``STRATEGIES``.
        rng: random source for start times, durations and jitter.
        on_progress: callback for the progress in virtual seconds.

    Raises:
        InvalidArgumentException: there is no strategy with this name.
    """
    own = {retries.name: retries for retries in scenario.strategies}
    if strategy in own:
        make_process = clients_of(own[strategy])
    elif strategy in STRATEGIES:
        make_process = STRATEGIES[strategy].make_process
    else:
        raise errors.InvalidArgumentException(
            f"unknown strategy: {strategy!r}; choose from {', '.join([*own, *STRATEGIES])}", parameter="strategy"
        )
    return play(scenario, strategy, make_process, rng, on_progress)


def play(
    scenario: Scenario, name: str, make_process: MakeProcess, rng: Random, on_progress: OnProgress | None = None
) -> FleetFigures:
    """Return the figures of a scenario for a custom strategy, with ``name`` as its name in the figures."""
    player = _Player(scenario, make_process, rng)
    player.play(on_progress)
    return player.tally.figures(name)


class _Player:
    """Running operations and future events."""

    def __init__(self, scenario: Scenario, make_process: MakeProcess, rng: Random) -> None:
        fleet = scenario.fleet
        self.tally = Tally(scenario)
        self._scenario = scenario
        self._service = service_machine(scenario, rng)
        self._heap: list[_Entry] = []
        self._entries = 0
        self._beginnings = Beginnings(fleet, scenario.duration, rng)
        loop = fleet.arrivals if isinstance(fleet.arrivals, ClosedLoop) else None
        self._pause = sampler(loop.pause, rng) if loop is not None else None
        self._remaining = [loop.operations] * fleet.clients if loop is not None else []
        processes = math.ceil(fleet.clients / fleet.clients_per_process)
        self._processes: list[Process] = [make_process(fleet, rng) for _ in range(processes)]

    def play(self, on_progress: OnProgress | None) -> None:
        """Begin all operations, and follow each to its end."""
        heap, duration = self._heap, self._scenario.duration
        step = duration / PROGRESS_STEPS
        report_at = step if on_progress is not None else math.inf
        for at, client in self._beginnings:
            if on_progress is not None and at >= report_at:
                on_progress(at)
                report_at = at + step
            while heap and heap[0][0] <= at:
                self._happen()
            self._begin(client, at)
        while heap:
            self._happen()
        if on_progress is not None:
            on_progress(duration)

    def _begin(self, client: int, now: float) -> None:
        self.tally.count("begun", now)
        # Assign the clients to the processes in turn.
        call = self._processes[client % len(self._processes)](now, now + self._scenario.fleet.timeout)
        call.client = client
        resume_at = call.begin(now)
        if resume_at is None:
            self._send(call, now)
        else:
            self._push(resume_at, call, None)

    def _happen(self) -> None:
        now, _, call, what = heappop(self._heap)
        if call is None:
            if isinstance(what, int):
                self._begin(what, now)
            elif callable(what):
                self._serve_abandoned(what, now)
        elif what is None:
            if call.resume(now):
                self._send(call, now)
            else:
                self._fail(call, now)
        elif what is AttemptOutcome.ANSWERED:
            call.succeed(now)
            self._succeed(call, now)
        elif isinstance(what, AttemptOutcome):
            resume_at = call.fail(what, now)
            if resume_at is None:
                self._fail(call, now)
            else:
                self._push(resume_at, call, None)
        elif callable(what):
            self._follow(call, *self._service.ask(what, now))

    def _send(self, call: Call, now: float) -> None:
        service, tally = self._service, self.tally
        tally.count("sent", now)
        fate, at = service.receive(now)
        tally.waits(service.waiting(now), now)
        if isinstance(fate, AttemptOutcome):
            call.dispatch(fate, now)
            if fate is AttemptOutcome.THROTTLED:
                tally.count("throttled", now)
        else:
            call.dispatch(None, now)
        call.gives_up_at = min(call.deadline, now + call.attempt_timeout)
        self._follow(call, fate, at)

    def _follow(self, call: Call, fate: AttemptOutcome | Later, at: float) -> None:
        """Continue an attempt: its client gets the outcome or leaves, or a call of the service is scheduled."""
        gives_up_at = call.gives_up_at
        if at >= gives_up_at:
            if fate is AttemptOutcome.ANSWERED:
                self.tally.count("wasted", at)
            elif not isinstance(fate, AttemptOutcome):
                self._push(at, None, fate)
            if gives_up_at < call.deadline:
                self._push(gives_up_at, call, AttemptOutcome.TIMED_OUT)
            else:
                call.expire(call.deadline)
                self._fail(call, call.deadline)
        elif fate is AttemptOutcome.ANSWERED and not call.records_success:
            self._succeed(call, at)
        else:
            self._push(at, call, fate)

    def _serve_abandoned(self, later: Later, now: float) -> None:
        """Let the service continue a request whose client has left."""
        fate, at = self._service.ask(later, now)
        if fate is AttemptOutcome.ANSWERED:
            self.tally.count("wasted", at)
        elif not isinstance(fate, AttemptOutcome):
            self._push(at, None, fate)

    def _succeed(self, call: Call, now: float) -> None:
        self.tally.success(call.began, now)
        if self._pause is not None:
            self._go_round(call.client, now)

    def _fail(self, call: Call, now: float) -> None:
        self.tally.failure(now)
        if self._pause is not None:
            self._go_round(call.client, now)

    def _go_round(self, client: int, now: float) -> None:
        """Schedule the next operation of a client in a closed loop."""
        assert self._pause is not None
        self._remaining[client] -= 1
        begin_at = now + self._pause()
        if self._remaining[client] and begin_at < self._scenario.duration:
            self._push(begin_at, None, client)

    def _push(self, at: float, call: Call | None, what: AttemptOutcome | Later | int | None) -> None:
        self._entries += 1
        heappush(self._heap, (at, self._entries, call, what))
