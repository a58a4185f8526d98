"""Services as pure machines, which determine the result of each request and the time at which it arrives.

If the result depends on requests that arrive later, the machine returns the instant at which to call it again. The
outage is known from the start, so no result is revoked later.
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
    """Outcome of one attempt for its client."""

    ANSWERED = "answered"
    THROTTLED = "throttled"
    FAILED = "failed"
    """Error after which a retry may succeed."""
    CONFLICT = "conflict"
    """Another client was faster."""
    REFUSED = "refused"
    CLOSED = "closed"
    DENIED = "denied"
    TIMED_OUT = "timed_out"
    """No response within the timeout of the attempt."""


Later = Callable[[float], "Fate"]
"""Function that takes the current instant, and returns the fate of a request."""
Fate = tuple[Union[AttemptOutcome, "Later"], float]
"""Outcome of a request and the instant at which the client gets it (``inf``: never); or a call and its instant."""

NOT_SENT = frozenset({AttemptOutcome.REFUSED, AttemptOutcome.DENIED})
"""Outcomes of attempts that sent nothing."""

_DURING: dict[OutageKind, AttemptOutcome] = {
    OutageKind.REFUSES: AttemptOutcome.REFUSED,
    OutageKind.CLOSES: AttemptOutcome.CLOSED,
    OutageKind.DENIES: AttemptOutcome.DENIED,
    OutageKind.SILENT: AttemptOutcome.TIMED_OUT,
}
"""Outcome of requests that arrive during an outage of each kind."""


class ServiceMachine(ABC):
    """Base class of services. Pass every request to ``receive``, oldest first; call ``ask`` when a fate is a ``Later``.

    Args:
        outage: time in which the service serves no requests; None without an outage.
        failure_rate: share of requests that fail at random.
        rng: random source for failures.
    """

    def __init__(self, outage: Outage | None, failure_rate: float, rng: Random) -> None:
        self._start, self._end = (outage.start, outage.end) if outage is not None else (math.inf, math.inf)
        self._kind = outage.kind if outage is not None else OutageKind.REFUSES
        self._is_restarted = False
        self._failure_rate = failure_rate
        self._rng = rng

    @abstractmethod
    def waiting(self, now: float) -> float:
        """Return the number of requests at the service."""

    def receive(self, now: float) -> Fate:
        """Accept a request that is sent now, and return its fate."""
        if now >= self._start:
            if now < self._end:
                outcome = _DURING[self._kind]
                return outcome, math.inf if outcome is AttemptOutcome.TIMED_OUT else now + self._way()
            if not self._is_restarted:
                # Queued requests were lost in the outage.
                self._is_restarted = True
                self._restart(now)
        return self._lost_in_outage(now, self._take(now))

    def ask(self, later: Later, now: float) -> Fate:
        """Return the fate of a request for which ``later`` was returned."""
        return self._lost_in_outage(now, later(now))

    @abstractmethod
    def _take(self, now: float) -> Fate:
        """Return the fate of a request that is sent now, without regard to an outage."""

    @abstractmethod
    def _way(self) -> float:
        """Return the time until a client learns that the service is down."""

    @abstractmethod
    def _restart(self, now: float) -> None:
        """Forget all requests."""

    def _answer(self) -> AttemptOutcome:
        """Return the outcome of a served request."""
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
    """Service with one worker, first come, first served."""

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
        """Return the queued work, including the work for rejections, as a number of requests."""
        return max(self._free_at - now, 0.0) * self._capacity

    def _take(self, now: float) -> Fate:
        begin = max(self._free_at, now)
        if begin - now > self._queue:
            # Decision F2: rejections take up the worker's time, but together at most as much as another queue.
            self._free_at = max(self._free_at, min(self._free_at + self._rejection, now + 2 * self._queue))
            return AttemptOutcome.THROTTLED, now + self._latency if self._is_throttling else math.inf
        self._free_at = begin + (self._work if self._draw_work is None else self._draw_work())
        return self._answer(), self._free_at + self._latency

    def _way(self) -> float:
        return self._latency

    def _restart(self, now: float) -> None:
        self._free_at = now


class ParallelMachine(ServiceMachine):
    """Service that serves all requests concurrently."""

    def __init__(
        self, service: ParallelService, outage: Outage | None, *, failure_rate: float = 0.0, rng: Random
    ) -> None:
        super().__init__(outage, failure_rate, rng)
        self._base = service.base
        self._growth = service.growth
        self._leg = sampler(service.leg, rng)
        self._ends: list[float] = []

    def waiting(self, now: float) -> float:
        """Return the number of requests in service; always 0 without ``growth``."""
        ends = self._ends
        while ends and ends[0] <= now:
            heappop(ends)
        return float(len(ends))

    def _take(self, now: float) -> Fate:
        begin = now + self._leg()
        if self._growth:
            # The time depends on the number of requests in service when this one arrives, and a request that is sent
            # later may arrive earlier.
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
    """Service with one row and its version."""

    def __init__(self, service: ContendedRow, outage: Outage | None, *, failure_rate: float = 0.0, rng: Random) -> None:
        super().__init__(outage, failure_rate, rng)
        self._leg = sampler(service.leg, rng)
        self._version = 0

    def waiting(self, now: float) -> float:
        """Return 0, because reads and writes take no time."""
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
        # Writes survive a restart.
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
