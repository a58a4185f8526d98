"""Timers of connections: at most one of each kind for each connection. The end of a stream cancels its timers."""

from __future__ import annotations

from collections.abc import Sequence

from triclinium_core.contract.couchbase import TIMERS_OF_A_STREAM, TimerKind
from triclinium_core.contract.neutral import TimerId, Timers
from triclinium_core.runtime.kv.connection.connection import Connection


class ConnectionTimers:
    """Timers by connection and kind."""

    def __init__(self, timers: Timers[TimerKind]) -> None:
        self._timers = timers
        self._ids: dict[tuple[Connection, TimerKind], TimerId] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def schedule(self, connection: Connection, kind: TimerKind, when: float) -> None:
        """Set a timer, and cancel an earlier one of the same kind."""
        self.cancel(connection, kind)
        self._ids[connection, kind] = self._timers.schedule(when, kind, connection)

    def cancel(self, connection: Connection, kind: TimerKind) -> None:
        """Cancel a timer, if there is one."""
        self._timers.cancel(self._ids.pop((connection, kind), None))

    def of_kind(self, kind: TimerKind) -> Sequence[Connection]:
        """Return the connections that have a timer of a kind."""
        return [connection for connection, found in self._ids if found is kind]

    def end_stream(self, connection: Connection) -> None:
        """Cancel the timers of a lost stream."""
        for kind in TIMERS_OF_A_STREAM:
            self.cancel(connection, kind)
