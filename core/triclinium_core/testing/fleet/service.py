"""The service as a pure machine: a request comes, and it is known what becomes of it and when the client hears.

One worker takes ``1 / capacity`` for each request, first come, first served. Since the outage is known from the start,
nothing has to be taken back later.
"""

from __future__ import annotations

import math
from enum import Enum, unique

from triclinium_core.testing.fleet.scenario import Outage, OutageKind, Overload, SimulatedService


@unique
class AttemptOutcome(Enum):
    """What a client hears of one attempt."""

    ANSWERED = "answered"
    THROTTLED = "throttled"
    REFUSED = "refused"
    CLOSED = "closed"
    DENIED = "denied"
    TIMED_OUT = "timed_out"
    """Nothing, for as long as an attempt may take."""


Fate = tuple[AttemptOutcome, float]
"""What becomes of a request, and the instant at which its client hears of it; ``inf`` for never."""

NOT_SENT = frozenset({AttemptOutcome.REFUSED, AttemptOutcome.DENIED})
"""After these nothing of the request has left the client."""

_DURING: dict[OutageKind, AttemptOutcome] = {
    OutageKind.REFUSES: AttemptOutcome.REFUSED,
    OutageKind.CLOSES: AttemptOutcome.CLOSED,
    OutageKind.DENIES: AttemptOutcome.DENIED,
    OutageKind.SILENT: AttemptOutcome.TIMED_OUT,
}
"""How requests end that come during an outage of this kind."""


class ServiceMachine:
    """Feed it every request, oldest first."""

    def __init__(self, service: SimulatedService, outage: Outage | None) -> None:
        self._capacity = service.capacity
        self._work = 1.0 / service.capacity
        self._latency = service.latency
        self._queue = service.queue
        self._is_throttling = service.overload is Overload.THROTTLES
        self._rejection = self._work * service.rejection_cost
        self._start, self._end = (outage.start, outage.end) if outage is not None else (math.inf, math.inf)
        self._kind = outage.kind if outage is not None else OutageKind.REFUSES
        self._free_at = 0.0
        self._is_restarted = False

    def waiting(self, now: float) -> float:
        """Return how many requests wait, or what turning others away has put before them."""
        return max(self._free_at - now, 0.0) * self._capacity

    def receive(self, now: float) -> Fate:
        """Take a request, and return what becomes of it."""
        if now >= self._start:
            if now < self._end:
                outcome = _DURING[self._kind]
                return outcome, math.inf if outcome is AttemptOutcome.TIMED_OUT else now + self._latency
            if not self._is_restarted:
                # What waited was lost with the outage.
                self._is_restarted, self._free_at = True, now
        begin = max(self._free_at, now)
        if begin - now > self._queue:
            # Decision F2: it takes time of the worker too, but no longer than another queue; what is more costs nothing.
            self._free_at = max(self._free_at, min(self._free_at + self._rejection, now + 2 * self._queue))
            return self._lost_in_outage(
                now, AttemptOutcome.THROTTLED, now + self._latency if self._is_throttling else math.inf
            )
        self._free_at = begin + self._work
        return self._lost_in_outage(now, AttemptOutcome.ANSWERED, self._free_at + self._latency)

    def _lost_in_outage(self, now: float, outcome: AttemptOutcome, at: float) -> Fate:
        if now < self._start < at < math.inf:
            return (
                (AttemptOutcome.TIMED_OUT, math.inf)
                if self._kind is OutageKind.SILENT
                else (AttemptOutcome.CLOSED, self._start)
            )
        return outcome, at
