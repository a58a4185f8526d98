"""Services as pure machines: the result of each request, and its time.

Where that cannot be known at once, because it depends on requests that will come before, the machine says when it has to
be asked again. Since the outage is known from the start, nothing has to be taken back later.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum, unique
from functools import partial
from heapq import heappop, heappush
from typing import Union, assert_never

from triclinium_core.retry.backoff import Random
from triclinium_core.tools.fleet.scenario import (
    ContendedRow,
    Outage,
    OutageKind,
    Overload,
    ParallelService,
    Scenario,
    SimulatedService,
    Work,
)
from triclinium_core.tools.fleet.times import ExponentialTime, sampler


@unique
class AttemptOutcome(Enum):
    """What a client hears of one attempt."""

    ANSWERED = "answered"
    THROTTLED = "throttled"
    FAILED = "failed"
    """An error that says that a retry may succeed."""
    CONFLICT = "conflict"
    """Somebody else was faster."""
    REFUSED = "refused"
    CLOSED = "closed"
    DENIED = "denied"
    TIMED_OUT = "timed_out"
    """Nothing, for as long as an attempt may take."""


Later = Callable[[float], "Fate"]
"""What to ask, with the present instant, for what becomes of a request."""
Fate = tuple[Union[AttemptOutcome, "Later"], float]
"""What becomes of a request, and the instant at which its client hears of it, ``inf`` for never; or whom to ask, and when."""

NOT_SENT = frozenset({AttemptOutcome.REFUSED, AttemptOutcome.DENIED})
"""After these nothing of the request has left the client."""

_DURING: dict[OutageKind, AttemptOutcome] = {
    OutageKind.REFUSES: AttemptOutcome.REFUSED,
    OutageKind.CLOSES: AttemptOutcome.CLOSED,
    OutageKind.DENIES: AttemptOutcome.DENIED,
    OutageKind.SILENT: AttemptOutcome.TIMED_OUT,
}
"""How requests end that come during an outage of this kind."""


class ServiceMachine(ABC):
    """Feed it every request, oldest first, and ask it again when it says so.

    Args:
        outage: when it serves nobody.
        failure_rate: the share of requests that fail by chance.
        rng: draws which.
    """

    def __init__(self, outage: Outage | None, failure_rate: float, rng: Random) -> None:
        self._start, self._end = (outage.start, outage.end) if outage is not None else (math.inf, math.inf)
        self._kind = outage.kind if outage is not None else OutageKind.REFUSES
        self._is_restarted = False
        self._failure_rate = failure_rate
        self._rng = rng

    @abstractmethod
    def waiting(self, now: float) -> float:
        """Return how many requests are at the service."""

    def receive(self, now: float) -> Fate:
        """Take a request that is sent now, and return what becomes of it."""
        if now >= self._start:
            if now < self._end:
                outcome = _DURING[self._kind]
                return outcome, math.inf if outcome is AttemptOutcome.TIMED_OUT else now + self._way()
            if not self._is_restarted:
                # What waited was lost with the outage.
                self._is_restarted = True
                self._restart(now)
        return self._lost_in_outage(now, self._take(now))

    def ask(self, later: Later, now: float) -> Fate:
        """Return what becomes of a request of which ``later`` was all that was known."""
        return self._lost_in_outage(now, later(now))

    @abstractmethod
    def _take(self, now: float) -> Fate:
        """Return what becomes of a request that is sent now, and that no outage meets."""

    @abstractmethod
    def _way(self) -> float:
        """Return how long it takes to hear that nobody serves."""

    @abstractmethod
    def _restart(self, now: float) -> None:
        """Forget all requests."""

    def _answer(self) -> AttemptOutcome:
        """Return how a request ends that is served."""
        if self._failure_rate and self._rng.random() < self._failure_rate:
            return AttemptOutcome.FAILED
        return AttemptOutcome.ANSWERED

    def _lost_in_outage(self, now: float, fate: Fate) -> Fate:
        if now < self._start < fate[1] < math.inf:
            return (
                (AttemptOutcome.TIMED_OUT, math.inf)
                if self._kind is OutageKind.SILENT
                else (AttemptOutcome.CLOSED, self._start)
            )
        return fate


class QueueMachine(ServiceMachine):
    """One worker, first come, first served."""

    def __init__(
        self, service: SimulatedService, outage: Outage | None, *, failure_rate: float = 0.0, rng: Random
    ) -> None:
        super().__init__(outage, failure_rate, rng)
        self._capacity = service.capacity
        self._work = 1.0 / service.capacity
        self._draw_work = sampler(ExponentialTime(mean=self._work), rng) if service.work is Work.EXPONENTIAL else None
        self._latency = service.latency
        self._queue = service.queue
        self._is_throttling = service.overload is Overload.THROTTLES
        self._rejection = self._work * service.rejection_cost
        self._free_at = 0.0

    def waiting(self, now: float) -> float:
        """Return how many requests wait, or what turning others away has put before them."""
        return max(self._free_at - now, 0.0) * self._capacity

    def _take(self, now: float) -> Fate:
        begin = max(self._free_at, now)
        if begin - now > self._queue:
            # Decision F2: it takes time of the worker too, but no longer than another queue; what is more costs nothing.
            self._free_at = max(self._free_at, min(self._free_at + self._rejection, now + 2 * self._queue))
            return AttemptOutcome.THROTTLED, now + self._latency if self._is_throttling else math.inf
        self._free_at = begin + (self._work if self._draw_work is None else self._draw_work())
        return self._answer(), self._free_at + self._latency

    def _way(self) -> float:
        return self._latency

    def _restart(self, now: float) -> None:
        self._free_at = now


class ParallelMachine(ServiceMachine):
    """Everybody is served at the same time."""

    def __init__(
        self, service: ParallelService, outage: Outage | None, *, failure_rate: float = 0.0, rng: Random
    ) -> None:
        super().__init__(outage, failure_rate, rng)
        self._base = service.base
        self._growth = service.growth
        self._leg = sampler(service.leg, rng)
        self._ends: list[float] = []

    def waiting(self, now: float) -> float:
        """Return how many requests are served."""
        ends = self._ends
        while ends and ends[0] <= now:
            heappop(ends)
        return float(len(ends))

    def _take(self, now: float) -> Fate:
        begin = now + self._leg()
        if self._growth:
            # Another request may overtake it on the way.
            return self._begin, begin
        return self._answer(), begin + self._base + self._leg()

    def _begin(self, now: float) -> Fate:
        end = now + self._base + self._growth * (self.waiting(now) + 1.0)
        heappush(self._ends, end)
        return self._answer(), end + self._leg()

    def _way(self) -> float:
        return self._leg() + self._leg()

    def _restart(self, now: float) -> None:
        self._ends.clear()


class RowMachine(ServiceMachine):
    """One row and its version."""

    def __init__(self, service: ContendedRow, outage: Outage | None, *, failure_rate: float = 0.0, rng: Random) -> None:
        super().__init__(outage, failure_rate, rng)
        self._leg = sampler(service.leg, rng)
        self._version = 0

    def waiting(self, now: float) -> float:
        """Return 0: neither a read nor a write takes the row any time."""
        return 0.0

    def _take(self, now: float) -> Fate:
        return self._read, now + self._leg()

    def _read(self, now: float) -> Fate:
        return partial(self._write, self._version), now + self._leg() + self._leg()

    def _write(self, version: int, now: float) -> Fate:
        outcome = self._answer() if version == self._version else AttemptOutcome.CONFLICT
        if outcome is AttemptOutcome.ANSWERED:
            self._version += 1
        return outcome, now + self._leg()

    def _way(self) -> float:
        return self._leg() + self._leg()

    def _restart(self, now: float) -> None:
        # What was written is still there.
        return


def service_machine(scenario: Scenario, rng: Random) -> ServiceMachine:
    """Return the machine of a scenario's service."""
    service, outage, failure_rate = scenario.service, scenario.outage, scenario.failure_rate
    match service:
        case SimulatedService():
            return QueueMachine(service, outage, failure_rate=failure_rate, rng=rng)
        case ParallelService():
            return ParallelMachine(service, outage, failure_rate=failure_rate, rng=rng)
        case ContendedRow():
            return RowMachine(service, outage, failure_rate=failure_rate, rng=rng)
        case _:
            assert_never(service)
