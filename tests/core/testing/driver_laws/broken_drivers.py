"""Broken drivers, each of which is the documentation's asyncio driver with one common mistake."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from docs.howto.examples.asyncio_driver import AsyncioClient, Outcome, Rows, Stream
from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.operation.results import Cas, MutationResult
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.testing.driver_laws import LAWS, Law


class WritesTheLastFirst(AsyncioClient):
    """Driver that writes the data of one event in reverse order."""

    def _carry_out(self, ordered: Sequence[couchbase.Action]) -> None:
        writes = [order for order in ordered if isinstance(order, neutral.SendBytes)]
        super()._carry_out([writes.pop() if isinstance(order, neutral.SendBytes) else order for order in ordered])


class KeepsItsAlarm(AsyncioClient):
    """Driver that does not move an alarm which is set and not yet due."""

    def _set_alarm(self) -> None:
        if self._alarm is None or self._alarm.when() <= self.loop.time():
            super()._set_alarm()


class WritesInTheCallersTask(AsyncioClient):
    """Driver that aborts each stream with unwritten data when any caller is cancelled."""

    def feed(self, event: couchbase.Event) -> None:
        super().feed(event)
        if isinstance(event, couchbase.OperationAbandoned):
            for stream in self._streams.values():
                if stream._transport is not None and stream._transport.get_write_buffer_size():
                    stream._transport.abort()


class Unfinished(Stream):
    """Stream whose connecting task reports the end of the stream, although the task may never have started."""

    def end(self, cause: neutral.LossCause, text: str) -> None:
        if cause is neutral.LossCause.CLOSED_BY_US and self._transport is None:
            self._connecting.cancel()
        else:
            super().end(cause, text)


class SilentlyCalledOff(AsyncioClient):
    """Driver that does not report the end of a stream whose connect was cancelled."""

    def _open(self, order: neutral.OpenStream) -> None:
        self._streams[order.stream] = Unfinished(self, order)


class ReportsTooFewBytes(AsyncioClient):
    """Driver that reports zero bytes as handed over unless it closed the stream itself."""

    def lost(self, stream: Stream, cause: neutral.LossCause, text: str, handed_over: int) -> None:
        super().lost(stream, cause, text, handed_over if cause is neutral.LossCause.CLOSED_BY_US else 0)


class Haunted(Stream):
    """Stream that reports its end as an empty read after its loss."""

    def eof_received(self) -> None:
        super().eof_received()
        self._client.feed(neutral.BytesReceived(self.name, b""))


class ReadsOn(AsyncioClient):
    """Driver that reports a read after the loss of a stream."""

    def _open(self, order: neutral.OpenStream) -> None:
        self._streams[order.stream] = Haunted(self, order)


class ForgetsItsCallers(AsyncioClient):
    """Driver that leaves its callers waiting when it is closed."""

    def _end(self, why: Exception) -> None:
        self._callers.clear()
        super()._end(why)


class CallsBack(AsyncioClient):
    """Driver that calls the machine immediately, even from within a call."""

    def feed(self, event: couchbase.Event) -> None:
        if not self._is_closed:
            self._handle(event)


class RingsUntilTimeGoesOn(AsyncioClient):
    """Driver that handles alarms in a loop while any is due, so that no other task runs."""

    async def _pass_time(self) -> None:
        await super()._pass_time()
        while self._machine.wakeup <= self.loop.time():
            self.feed(neutral.TimePassed())


class LooksAtTheClockFirst(AsyncioClient):
    """Driver that reports a due alarm before the bytes that have arrived."""

    def feed(self, event: couchbase.Event) -> None:
        if isinstance(event, neutral.BytesReceived) and self._machine.wakeup <= self.loop.time():
            super().feed(neutral.TimePassed())
        super().feed(event)


class ReadsToTheEnd(AsyncioClient):
    """Driver that reads all available data before it reports that time has passed."""

    received = 0

    async def _pass_time(self) -> None:
        received = -1
        while received != self.received:
            received = self.received
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await super()._pass_time()

    def feed(self, event: couchbase.Event) -> None:
        self.received += isinstance(event, neutral.BytesReceived)
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

    def _consult(self, order: neutral.ConsultStrategy) -> None:
        pass


class LooksUpNothing(AsyncioClient):
    """Driver that ignores look-ups."""

    def _look_up(self, order: couchbase.LookUpService) -> None:
        pass


class ForgetsItsReaders(AsyncioClient):
    """Driver that leaves a reader of rows waiting when the driver is closed."""

    async def wait(self, name: str, token: neutral.Token, event: couchbase.Event) -> Outcome:
        if self._is_closed and isinstance(event, couchbase.RowsWanted):
            await asyncio.Event().wait()
        return await super().wait(name, token, event)


class GivesAnotherResult(AsyncioClient):
    """Driver that returns the same result for all mutations. It breaks most laws, because most check such results."""

    def _settle(self, token: neutral.Token, outcome: Outcome) -> None:
        super()._settle(token, MutationResult(Cas(0)) if isinstance(outcome, MutationResult) else outcome)


class BlamesEverybody(AsyncioClient):
    """Driver that raises the error of one caller's mistake in all waiting callers."""

    def _settle(self, token: neutral.Token, outcome: Outcome) -> None:
        super()._settle(token, outcome)
        if isinstance(outcome, ArgumentError):
            for other in list(self._callers):
                super()._settle(other, outcome)


class ReadsAhead(AsyncioClient):
    """Driver that requests more rows as soon as some arrive, before the reader requests them."""

    def _settle(self, token: neutral.Token, outcome: Outcome) -> None:
        super()._settle(token, outcome)
        if isinstance(outcome, couchbase.RowsReceived):
            self.feed(couchbase.RowsWanted(token))


class KeepsItsRequests(AsyncioClient):
    """Driver that reports a cancelled reader only if the reader waits for rows."""

    @asynccontextmanager
    async def ask(self, request: ServiceRequest, strategy: AnyRetryStrategy | None = None) -> AsyncIterator[Rows]:
        async with super().ask(request, strategy) as rows:
            try:
                yield rows
            finally:
                rows.is_over = True


class ReadsThroughPauses(AsyncioClient):
    """Driver that ignores orders to pause reading."""

    def _pause(self, order: neutral.PauseReading) -> None:
        pass


class NeverResumes(AsyncioClient):
    """Driver that ignores orders to resume reading."""

    def _resume(self, order: neutral.ResumeReading) -> None:
        pass


class SendsWithoutLooking(AsyncioClient):
    """Driver that sends immediately, even if received bytes wait to be read."""

    def _send(self, order: neutral.SendBytes) -> None:
        super()._send(neutral.SendBytes(order.stream, order.data))


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
"""Name of the law that each broken driver breaks."""

_LAW_OF = {law.__name__: law for law in LAWS}
BROKEN: Mapping[type[AsyncioClient], Law] = {driver: _LAW_OF[name] for driver, name in _BREACHES.items()}
"""Law that each broken driver breaks."""
