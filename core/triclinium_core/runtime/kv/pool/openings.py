"""Limit on the streams that open at a time, however many nodes a map has.

A connection that has chosen its address waits here for a place. A stream that is open frees its place at once, so a
cluster that answers is connected as fast as it answers. One that is refused, or silent, keeps its place for a moment, so
nodes that cannot be reached take their turns and leave the client its time.
"""

from __future__ import annotations

import math

from triclinium_core.contract.couchbase import TimerKind
from triclinium_core.contract.neutral import StreamId, Timers
from triclinium_core.runtime.kv.connection.connection import Connection

PLACES_MAX = 16
"""Streams that are opened at a time. Each costs a driver tasks and sockets, half a millisecond or so: more of them at
once would be felt by everything else in the event loop. Most clusters have fewer nodes."""
PLACE_SECONDS_MAX = 0.05
"""For so long a stream that does not open keeps its place: 320 attempts a second, with nobody there, are a tenth of a
core; and a thousand nodes that are silent are all asked within four seconds."""


class Openings:
    """The connections that wait for a place, and the places that are taken."""

    def __init__(self, timers: Timers[TimerKind]) -> None:
        self._timers = timers
        self._called_at = -math.inf
        """When the timer goes off, or went off last."""
        self._waiting: dict[Connection, None] = {}
        self._places: dict[StreamId, float] = {}
        """By the stream that has it, until when each place is taken; the first to be free comes first."""

    def wait(self, connection: Connection) -> None:
        """Let a connection wait for its turn."""
        self._waiting[connection] = None

    def stop_waiting(self, connection: Connection) -> bool:
        """Let a connection wait no longer, and return whether it did."""
        return connection in self._waiting and self._waiting.pop(connection) is None

    def next(self, now: float) -> Connection | None:
        """Return the connection whose turn it is, once; None where none waits or no place is free."""
        while self._places and next(iter(self._places.values())) <= now:
            del self._places[next(iter(self._places))]
        if not self._waiting:
            return None
        if len(self._places) >= PLACES_MAX:
            self._have_time_told(now)
            return None
        connection = next(iter(self._waiting))
        del self._waiting[connection]
        return connection

    def began(self, stream: StreamId, now: float) -> None:
        """Record that a stream was ordered: it takes a place."""
        self._places[stream] = now + PLACE_SECONDS_MAX

    def opened(self, stream: StreamId) -> None:
        """Record that a stream is open, and its place free."""
        self._places.pop(stream, None)

    def _have_time_told(self, now: float) -> None:
        """Have ``next`` called when a place becomes free, at the latest."""
        if self._called_at <= now:
            self._called_at = next(iter(self._places.values()))
            self._timers.schedule(self._called_at, TimerKind.OPENING, self)
