"""One heap of named timers, and the next wakeup.

Cancelling releases the subject immediately and leaves the time in the heap. Times of cancelled timers are skipped, and
removed once they outnumber the live ones, so the size of the heap is proportional to the number of live timers.
"""

from __future__ import annotations

import heapq
import math
from enum import Enum, unique
from typing import NewType

TimerId = NewType("TimerId", int)

SWEEP_SIZE_MIN = 64
"""Below this many entries a sweep would cost more than it frees."""


@unique
class TimerKind(Enum):
    """What is due."""

    DEADLINE = "an operation or a request has run out of time: it fails with a timeout"
    RETRY = "the delay before an attempt is over: the operation or request is dispatched"
    CONNECT = "a stream was not opened and bootstrapped in time: it is given up"
    RECONNECT = "the backoff of one connection is over: it is opened again"
    UNUSED_BUCKET = "the backoff of a bucket that its nodes do not have is over: it is forgotten if nothing uses it"
    OPENING = "a stream was not opened in a moment: the next connection has its turn"
    KEEP_ALIVE = "a connection may have been silent for too long: it is sent a NOOP"
    KEEP_ALIVE_ANSWER = "a NOOP was not answered in time: the connection is given up"
    CIRCUIT_BREAKER = "an open breaker has slept long enough: it sends its canary"
    COLLECTION_QUESTION = "a collection's id was not told in time: it is asked for again, if anybody waits for it"
    DRAIN = "a connection to a node that left the map still has requests without an answer: it is closed"
    NO_ROOM = "a connection may have had no room for too long: it is given up"
    CONFIG_POLL = "a node that does not announce new cluster configs is asked for the newest"
    SERVICE_LOOKUP = "DNS did not say in time where the cluster is: the host is used as it stands"
    PING = "a ping has waited for long enough: what has not answered is reported as it is"
    READINESS = "an endpoint over HTTP did not answer a ping: whoever waits until it is ready asks it again"
    NODES_DEADLINE = "a wait for the nodes of a bucket has taken too long: it fails with a timeout"
    MANIFEST_QUESTION = "a node had an older manifest, or has not told in time: it is asked for it again"
    DECODING = "an answer over HTTP is read in part: the next part is read"
    HTTP_CONNECT = "a stream to an HTTP service was not opened in time: it is given up"
    HTTP_BREAKER = "the open breaker of an HTTP endpoint has slept long enough: it sends its canary"
    HTTP_IDLE = "a connection to an HTTP service had nothing to carry: it is closed before the node does"
    TELEMETRY = "the interval is over since there was something to tell of operations: it is told"
    CANARY = "the canary was not answered in time: the breaker opens again"


TIMERS_OF_HTTP_STREAMS = frozenset({TimerKind.HTTP_CONNECT, TimerKind.HTTP_IDLE})
"""What closes streams to services over HTTP."""

TIMERS_OF_INQUIRIES = frozenset(
    {TimerKind.PING, TimerKind.READINESS, TimerKind.NODES_DEADLINE, TimerKind.MANIFEST_QUESTION}
)
"""What is asked about the cluster."""

TIMERS_OF_CONNECTIONS = frozenset({TimerKind.CONNECT, TimerKind.RECONNECT, TimerKind.DRAIN})
"""What opens and closes streams, whatever travels on them."""

TIMERS_OF_KEEP_ALIVE = frozenset(
    {
        TimerKind.KEEP_ALIVE,
        TimerKind.KEEP_ALIVE_ANSWER,
        TimerKind.CONFIG_POLL,
        TimerKind.NO_ROOM,
        TimerKind.CIRCUIT_BREAKER,
        TimerKind.CANARY,
    }
)
"""Checks of open connections: their silence, their room, their configs and their breakers."""

TIMERS_OF_A_STREAM: tuple[TimerKind, ...] = (
    TimerKind.CONNECT,
    TimerKind.KEEP_ALIVE,
    TimerKind.KEEP_ALIVE_ANSWER,
    TimerKind.CIRCUIT_BREAKER,
    TimerKind.DRAIN,
    TimerKind.NO_ROOM,
    TimerKind.CONFIG_POLL,
    TimerKind.CANARY,
)
"""What nobody waits for once the stream is gone."""


class Timers:
    """Timers by id, each with its kind and its subject, and a heap of their times."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, TimerId]] = []
        """Times of all timers, including cancelled ones. It refers to no subject."""
        self._live: dict[TimerId, tuple[TimerKind, object]] = {}
        """Kind and subject of each timer that is neither cancelled nor fired."""
        self._next_id = 0
        self.wakeup: float = math.inf
        """When the next timer is due; ``inf`` for never."""

    def __len__(self) -> int:
        return len(self._live)

    def schedule(self, when: float, kind: TimerKind, subject: object) -> TimerId:
        """Add a timer and return its id. One that is due at ``inf`` never fires."""
        self._next_id += 1
        timer = TimerId(self._next_id)
        if when < math.inf:
            self._live[timer] = kind, subject
            heapq.heappush(self._heap, (when, timer))
            self.wakeup = self._heap[0][0]
        return timer

    def cancel(self, timer: TimerId | None) -> None:
        """Forget a timer and its subject; ignore None and a timer that has fired."""
        if timer is None:
            return
        self._live.pop(timer, None)
        if len(self._heap) > SWEEP_SIZE_MIN and len(self._heap) > 2 * len(self._live):
            self._heap = [entry for entry in self._heap if entry[1] in self._live]
            heapq.heapify(self._heap)
        self._look_ahead()

    @property
    def newest(self) -> TimerId:
        """Id of the timer that was added last; 0 before the first."""
        return TimerId(self._next_id)

    def pop_due(self, now: float, newest: TimerId) -> tuple[TimerKind, object] | None:
        """Remove and return the oldest timer that is due, or None; also None where that was added after ``newest``."""
        if self.wakeup > now or not self._heap or self._heap[0][1] > newest:
            return None
        _, timer = heapq.heappop(self._heap)
        due = self._live.pop(timer)
        self._look_ahead()
        return due

    def _look_ahead(self) -> None:
        while self._heap and self._heap[0][1] not in self._live:
            heapq.heappop(self._heap)
        self.wakeup = self._heap[0][0] if self._heap else math.inf
