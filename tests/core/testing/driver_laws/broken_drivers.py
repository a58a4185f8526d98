"""Broken drivers, each of which is the documentation's asyncio driver with one common mistake."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial

from docs.howto.examples.asyncio_driver import AsyncioClient, Rows, Stream, Waiter
from triclinium_core.argument_error import ArgumentError
from triclinium_core.client.cluster_machine import ClusterMachine
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.operation.results import Cas, MutationResult
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.testing.driver_laws import LAWS, Law


class WritesTheLastFirst(AsyncioClient):
    """Driver that writes the data of one event in reverse order."""

    def execute(self, actions: Collection[couchbase.Action]) -> None:
        writes = [action for action in actions if isinstance(action, neutral.SendBytes)]
        super().execute([writes.pop() if isinstance(action, neutral.SendBytes) else action for action in actions])


class KeepsItsAlarm(AsyncioClient):
    """Driver that does not move an alarm that is set and not yet due."""

    def set_alarm(self, time: float) -> None:
        if self._alarm is None or self._alarm.when() <= self.loop.time():
            super().set_alarm(time)


class WritesInTheCallersTask(AsyncioClient):
    """Driver that aborts each stream with unwritten data when any caller is cancelled."""

    def feed(self, event: couchbase.Event) -> None:
        super().feed(event)
        if isinstance(event, couchbase.OperationAbandoned):
            for stream in self.streams.values():
                if stream._transport is not None and stream._transport.get_write_buffer_size():
                    stream._transport.abort()


class SilentlyCalledOff(AsyncioClient):
    """Driver that does not report the end of a stream whose connection attempt was cancelled."""

    def lose(self, number: neutral.StreamId, cause: neutral.LossCause, text: str = "") -> None:
        stream = self.streams.get(number)
        if cause is neutral.LossCause.CLOSED_BY_US and stream is not None and stream._transport is None:
            del self.streams[number]
            stream.abort()
        super().lose(number, cause, text)


class ReportsTooFewBytes(AsyncioClient):
    """Driver that reports zero bytes as handed over unless it closed the stream itself."""

    def lose(self, number: neutral.StreamId, cause: neutral.LossCause, text: str = "") -> None:
        if number in self.streams and cause is not neutral.LossCause.CLOSED_BY_US:
            self.streams[number].outbox.handed_over = 0
        super().lose(number, cause, text)


class Haunted(Stream):
    """Stream that reports its end as an empty read after its loss."""

    def eof_received(self) -> None:
        super().eof_received()
        self._client.feed(neutral.BytesReceived(self._order.stream, b""))


class ReadsOn(AsyncioClient):
    """Driver that reports a read after the loss of a stream."""

    def __init__(self, machine: ClusterMachine, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(machine, tls)
        self._open_stream = partial(Haunted, self)


class ForgetsItsCallers(AsyncioClient):
    """Driver that leaves its callers waiting when it is closed."""

    def _end(self, error: Exception) -> None:
        self.waiters.clear()
        super()._end(error)


class CallsBack(AsyncioClient):
    """Driver that calls the machine immediately, even from within a call."""

    def feed(self, event: couchbase.Event) -> None:
        if not self.is_ended:
            couchbase.ClientDriver.handle(self, event)


class RingsUntilTimeGoesOn(AsyncioClient):
    """Driver that handles alarms in a loop while any is due, so that no other task runs."""

    async def _ring(self) -> None:
        await super()._ring()
        while self._machine.wakeup <= self.loop.time():
            self.feed(neutral.TimePassed())


class LooksAtTheClockFirst(AsyncioClient):
    """Driver that reports a due alarm before the bytes that have arrived."""

    def feed(self, event: couchbase.Event) -> None:
        if isinstance(event, neutral.BytesReceived) and self._machine.wakeup <= self.loop.time():
            super().feed(neutral.TimePassed())
        super().feed(event)


class DropsLargeReads(AsyncioClient):
    """Driver that feeds nothing of a read after which there may be more."""

    def received(self, number: neutral.StreamId, data: bytes, *, may_have_more: bool) -> None:
        """Feed only small reads."""
        if not may_have_more:
            super().received(number, data, may_have_more=may_have_more)


class ReadsToTheEnd(AsyncioClient):
    """Driver that reads all available data before it reports that time has passed."""

    pieces = 0

    async def _ring(self) -> None:
        pieces = -1
        while pieces != self.pieces:
            pieces = self.pieces
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await super()._ring()

    def feed(self, event: couchbase.Event) -> None:
        self.pieces += isinstance(event, neutral.BytesReceived)
        super().feed(event)


class ReportsAllAsSent(AsyncioClient):
    """Driver that never reports unsent bytes."""

    def feed(self, event: couchbase.Event) -> None:
        super().feed(neutral.TimePassed(unread=event.unread) if isinstance(event, neutral.TimePassed) else event)


class NamesNoStreamThatHasMore(AsyncioClient):
    """Driver that stops reading at the bound, but does not list the streams with more data in ``unread``."""

    def feed(self, event: couchbase.Event) -> None:
        super().feed(neutral.TimePassed(event.unsent) if isinstance(event, neutral.TimePassed) else event)


class AsksNoStrategy(AsyncioClient):
    """Driver that ignores orders to consult an asynchronous strategy."""

    def _ask(self, token: neutral.Token, question: Callable[[], Awaitable[object]]) -> None:
        pass


class LooksUpNothing(AsyncioClient):
    """Driver that ignores lookups."""

    def execute(self, actions: Collection[couchbase.Action]) -> None:
        super().execute([action for action in actions if not isinstance(action, couchbase.LookUpService)])


class ForgetsItsReaders(AsyncioClient):
    """Driver that leaves a reader of rows waiting when the driver is closed."""

    async def outcome(self, token: neutral.Token, event: couchbase.Event) -> object:
        if self.is_ended and isinstance(event, couchbase.RowsWanted):
            await asyncio.Event().wait()
        return await super().outcome(token, event)


class GivesAnotherResult(AsyncioClient):
    """Driver that returns the same result for all mutations. It breaks most laws, because most check such results."""

    def wake(self, waiter: Waiter, outcome: object) -> None:
        super().wake(waiter, MutationResult(Cas(0)) if isinstance(outcome, MutationResult) else outcome)


class BlamesEverybody(AsyncioClient):
    """Driver that raises the error of one caller's mistake in all waiting callers."""

    def settle(self, token: neutral.Token, outcome: object, *, is_last: bool = True) -> None:
        super().settle(token, outcome, is_last=is_last)
        if isinstance(outcome, ArgumentError):
            for other in list(self.waiters):
                super().settle(other, outcome)


class ReadsAhead(AsyncioClient):
    """Driver that requests more rows as soon as some arrive, before the reader requests them."""

    def settle(self, token: neutral.Token, outcome: object, *, is_last: bool = True) -> None:
        super().settle(token, outcome, is_last=is_last)
        if isinstance(outcome, couchbase.RowsReceived):
            self.feed(couchbase.RowsWanted(token))


class KeepsItsRequests(AsyncioClient):
    """Driver that reports a cancelled reader only if the reader waits for rows."""

    @asynccontextmanager
    async def request(self, request: ServiceRequest, strategy: AnyRetryStrategy | None = None) -> AsyncIterator[Rows]:
        async with super().request(request, strategy) as rows:
            try:
                yield rows
            finally:
                self.waiters.pop(rows._token, None)


class ReadsThroughPauses(AsyncioClient):
    """Driver that ignores orders to pause reading."""

    def _pause(self, action: neutral.PauseReading) -> None:
        pass


class NeverResumes(AsyncioClient):
    """Driver that ignores orders to resume reading."""

    def _resume(self, action: neutral.ResumeReading) -> None:
        pass


class SendsWithoutLooking(AsyncioClient):
    """Driver that sends immediately, even if received bytes wait to be read."""

    def _send(self, action: neutral.SendBytes) -> None:
        super()._send(neutral.SendBytes(action.stream, action.data))


_BREACHES: Mapping[type[AsyncioClient], str] = {
    WritesTheLastFirst: "actions_are_carried_out_in_order",
    KeepsItsAlarm: "an_earlier_alarm_rings",
    WritesInTheCallersTask: "a_caller_that_leaves_spares_the_stream",
    SilentlyCalledOff: "a_connect_that_fails_is_a_loss",
    ReportsTooFewBytes: "bytes_handed_over_are_never_fewer",
    ReadsOn: "bytes_come_before_the_loss",
    ForgetsItsCallers: "tasks_that_wait_are_settled_at_the_close",
    CallsBack: "the_machine_is_not_called_back",
    RingsUntilTimeGoesOn: "time_may_stand_still",
    LooksAtTheClockFirst: "arrived_bytes_come_before_the_time",
    DropsLargeReads: "a_peer_cannot_stop_the_time",
    ReadsToTheEnd: "a_peer_cannot_stop_the_time",
    NamesNoStreamThatHasMore: "a_peer_cannot_stop_the_time",
    ReportsAllAsSent: "unsent_bytes_are_named_with_the_time",
    AsksNoStrategy: "strategies_are_asked_once",
    LooksUpNothing: "look_ups_are_answered_once",
    ForgetsItsReaders: "readers_are_settled_at_the_close",
    BlamesEverybody: "a_mistake_reaches_its_caller_alone",
    ReadsAhead: "rows_come_as_they_are_wanted",
    KeepsItsRequests: "a_reader_that_leaves_is_reported",
    ReadsThroughPauses: "a_pause_pauses",
    NeverResumes: "a_pause_loses_nothing",
    SendsWithoutLooking: "nothing_is_sent_while_something_waits",
}
"""Broken drivers, each with the name of the law that forbids its mistake."""

_LAW_OF = {law.__name__: law for law in LAWS}
BROKEN: Mapping[type[AsyncioClient], Law] = {driver: _LAW_OF[name] for driver, name in _BREACHES.items()}
"""Broken drivers, each with the law that forbids its mistake."""
