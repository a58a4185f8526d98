"""Limit on the number of streams that open at the same time, for maps with many nodes.

A connection that has chosen its address waits here for a slot. A stream that opens frees its slot immediately, so a
cluster that responds is connected as fast as it responds. A stream that is refused, or gets no response, keeps its slot
for a moment. So attempts at unreachable nodes take turns and leave CPU time for other work.
"""

from __future__ import annotations

import math

from triclinium_core.contract.couchbase import TimerKind
from triclinium_core.contract.neutral import StreamId, Timers
from triclinium_core.runtime.kv.connection.connection import Connection

PLACES_MAX = 16
"""Maximum number of streams that open at the same time. Each costs a driver tasks and sockets, about half a
millisecond: more of them would delay everything else in the event loop. Most clusters have fewer nodes."""
PLACE_SECONDS_MAX = 0.05
"""Seconds for which a stream that does not open keeps its slot. 320 attempts a second at unreachable nodes use a tenth
of a core, and a thousand silent nodes are all tried within four seconds."""


class Openings:
    """Connections that wait for a slot, and slots in use."""

    def __init__(self, timers: Timers[TimerKind]) -> None:
        self._timers = timers
        self._called_at = -math.inf
        """Time for which the timer is or was last set."""
        self._waiting: dict[Connection, None] = {}
        self._places: dict[StreamId, float] = {}
        """End of each stream's slot; the earliest comes first."""

    def wait(self, connection: Connection) -> None:
        """Add a connection to the end of the queue."""
        self._waiting[connection] = None

    def stop_waiting(self, connection: Connection) -> bool:
        """Remove a connection from the queue. Return whether it was in it."""
        return connection in self._waiting and self._waiting.pop(connection) is None

    def next(self, now: float) -> Connection | None:
        """Remove and return the next connection; None if none waits or no slot is free."""
        while self._places and next(iter(self._places.values())) <= now:
            del self._places[next(iter(self._places))]
        if not self._waiting:
            return None
        if len(self._places) >= PLACES_MAX:
            self._schedule_next(now)
            return None
        connection = next(iter(self._waiting))
        del self._waiting[connection]
        return connection

    def began(self, stream: StreamId, now: float) -> None:
        """Record that a stream was ordered and takes a slot."""
        self._places[stream] = now + PLACE_SECONDS_MAX

    def opened(self, stream: StreamId) -> None:
        """Record that a stream is open, and free its slot."""
        self._places.pop(stream, None)

    def _schedule_next(self, now: float) -> None:
        """Schedule a call of ``next`` for when the first slot becomes free."""
        if self._called_at <= now:
            self._called_at = next(iter(self._places.values()))
            self._timers.schedule(self._called_at, TimerKind.OPENING, self)
