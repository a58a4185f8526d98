"""Dispatch of due timers to the handler of their kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from triclinium_core.client.unused_buckets import UnusedBuckets
from triclinium_core.client.wiring import Parts
from triclinium_core.contract import couchbase
from triclinium_core.contract.neutral import TimePassed
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.services.pool import Endpoint
from triclinium_core.runtime.toolkit import Toolkit


class DueTimers:
    """Dispatcher of due timers to the parts that set them."""

    def __init__(self, parts: Parts, unused_buckets: UnusedBuckets, tools: Toolkit) -> None:
        self._parts = parts
        self._unused_buckets = unused_buckets
        self._gathering = tools.gathering
        self._timers = tools.timers

    def fire(self, event: TimePassed, now: float) -> None:
        """Handle all timers that are due, except those that the handlers add."""
        # A timer that a handler sets in this loop waits for the next ``TimePassed``, so that the loop ends.
        newest = self._timers.newest
        while (due := self._timers.pop_due(now, newest)) is not None:
            kind, subject = due
            _ON_TIMER[kind](self, kind, subject, event, now)

    def _on_deadline(self, kind: couchbase.TimerKind, live: Any, event: TimePassed, now: float) -> None:
        self._parts.lifecycle.deadline_passed(live, event, now)

    def _on_retry(self, kind: couchbase.TimerKind, live: Any, event: TimePassed, now: float) -> None:
        self._parts.lifecycle.backoff_over(live, now)

    def _on_decoding(self, kind: couchbase.TimerKind, live: Any, event: TimePassed, now: float) -> None:
        self._parts.requests.decode_on(live, now)

    def _on_collection_question(self, kind: couchbase.TimerKind, subject: Any, event: TimePassed, now: float) -> None:
        connection, question = subject
        self._parts.collections.question_overdue(connection, question, now)

    def _on_service_lookup(self, kind: couchbase.TimerKind, seeds: object, event: TimePassed, now: float) -> None:
        self._parts.connections.look_up_no_longer(now)

    def _on_opening(self, kind: couchbase.TimerKind, openings: object, event: TimePassed, now: float) -> None:
        self._parts.connections.open_next(now)

    def _on_telemetry(self, kind: couchbase.TimerKind, gathered: Any, event: TimePassed, now: float) -> None:
        self._gathering.interval_over(gathered, now)

    def _on_http_breaker(self, kind: couchbase.TimerKind, endpoint: Endpoint, event: TimePassed, now: float) -> None:
        self._parts.service_pings.breaker_woken(endpoint, now)

    def _on_unused_bucket(
        self, kind: couchbase.TimerKind, connection: Connection, event: TimePassed, now: float
    ) -> None:
        self._unused_buckets.timer_passed(connection, now)

    def _on_http_stream(self, kind: couchbase.TimerKind, stream: Any, event: TimePassed, now: float) -> None:
        self._parts.requests.stream_timer_passed(stream, now)

    def _on_inquiry(self, kind: couchbase.TimerKind, subject: object, event: TimePassed, now: float) -> None:
        self._parts.inquiries.on_timer(kind, subject, now)

    def _on_connection(self, kind: couchbase.TimerKind, connection: Connection, event: TimePassed, now: float) -> None:
        self._parts.connections.on_timer(kind, connection, now)

    def _on_keep_alive(self, kind: couchbase.TimerKind, connection: Connection, event: TimePassed, now: float) -> None:
        self._parts.keep_alive.on_timer(kind, connection, now)


_ON_TIMER: Mapping[couchbase.TimerKind, Callable[[DueTimers, couchbase.TimerKind, Any, TimePassed, float], None]] = {
    couchbase.TimerKind.DEADLINE: DueTimers._on_deadline,
    couchbase.TimerKind.RETRY: DueTimers._on_retry,
    couchbase.TimerKind.DECODING: DueTimers._on_decoding,
    couchbase.TimerKind.COLLECTION_QUESTION: DueTimers._on_collection_question,
    couchbase.TimerKind.SERVICE_LOOKUP: DueTimers._on_service_lookup,
    couchbase.TimerKind.OPENING: DueTimers._on_opening,
    couchbase.TimerKind.TELEMETRY: DueTimers._on_telemetry,
    couchbase.TimerKind.HTTP_BREAKER: DueTimers._on_http_breaker,
    couchbase.TimerKind.UNUSED_BUCKET: DueTimers._on_unused_bucket,
    **dict.fromkeys(couchbase.TIMERS_OF_HTTP_STREAMS, DueTimers._on_http_stream),
    **dict.fromkeys(couchbase.TIMERS_OF_INQUIRIES, DueTimers._on_inquiry),
    **dict.fromkeys(couchbase.TIMERS_OF_CONNECTIONS, DueTimers._on_connection),
    **dict.fromkeys(couchbase.TIMERS_OF_KEEP_ALIVE, DueTimers._on_keep_alive),
}
"""Handler of each kind of timer. Its arguments are the kind and the subject of the timer, the event, and the time."""
