"""Limit on the number of streams that are being opened at the same time, for maps with many nodes.

A connection that has chosen its address waits here for a slot, except one that seeks any node of the cluster. A stream
that opens frees its slot immediately, so the client connects to responsive nodes without a delay. A stream that is
refused, or gets no response, keeps its slot for ``PLACE_SECONDS_MAX``. So attempts at unreachable nodes take turns and
leave CPU time for other work.
"""

from __future__ import annotations

import math

from triclinium_core.contract.couchbase import TimerKind
from triclinium_core.contract.neutral import StreamId, Timers
from triclinium_core.runtime.kv.connection.connection import Connection

PLACES_MAX = 16
"""Number of slots for streams that are being opened. For each, a driver needs tasks and sockets, and about half a
millisecond. More streams would delay everything else in the event loop. Most clusters have fewer nodes."""
PLACE_SECONDS_MAX = 0.05
"""Seconds for which a stream that does not open keeps its slot. So the client makes at most 320 attempts per second at
unreachable nodes, which use a tenth of a core, and tries a thousand unresponsive nodes within four seconds."""


class Openings:
    """Connections that wait for a slot, and streams that have a slot."""

    def __init__(self, timers: Timers[TimerKind]) -> None:
        self._timers = timers
        self._called_at = -math.inf
        """Time for which the timer was last set."""
        self._waiting: dict[Connection, None] = {}
        self._places: dict[StreamId, float] = {}
        """Time at which each stream frees its slot, in ascending order."""

    def wait(self, connection: Connection) -> None:
        """Add a connection to the end of the queue."""
        self._waiting[connection] = None

    def stop_waiting(self, connection: Connection) -> bool:
        """Remove a connection from the queue. Return whether the connection was queued."""
        return connection in self._waiting and self._waiting.pop(connection) is None

    def next(self, now: float) -> Connection | None:
        """Remove and return the next connection. Return None if no connection waits or no slot is free."""
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
        """Record that the client has ordered a stream, which takes a slot."""
        self._places[stream] = now + PLACE_SECONDS_MAX

    def opened(self, stream: StreamId) -> None:
        """Record that a stream is open, and free its slot."""
        self._places.pop(stream, None)

    def _schedule_next(self, now: float) -> None:
        """Set a timer for the time at which the first slot becomes free."""
        if self._called_at <= now:
            self._called_at = next(iter(self._places.values()))
            self._timers.schedule(self._called_at, TimerKind.OPENING, self)
