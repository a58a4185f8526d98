"""Drivers that break one law each: the asyncio driver of the documentation, with a mistake that is easily made."""

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
    """Writes what one event ordered, beginning with the last."""

    def _carry_out(self, ordered: Sequence[couchbase.Action]) -> None:
        writes = [order for order in ordered if isinstance(order, neutral.SendBytes)]
        super()._carry_out([writes.pop() if isinstance(order, neutral.SendBytes) else order for order in ordered])


class KeepsItsAlarm(AsyncioClient):
    """Sets an alarm where there is none, and never moves it."""

    def _set_alarm(self) -> None:
        if self._alarm is None or self._alarm.when() <= self.loop.time():
            super()._set_alarm()


class WritesInTheCallersTask(AsyncioClient):
    """Ends a write halfway when whoever asked for it leaves, and then the stream is good for nothing."""

    def feed(self, event: couchbase.Event) -> None:
        super().feed(event)
        if isinstance(event, couchbase.OperationAbandoned):
            for stream in self._streams.values():
                if stream._transport is not None and stream._transport.get_write_buffer_size():
                    stream._transport.abort()


class Unfinished(Stream):
    """A stream that leaves the news of its end to the task that connects, which may never have begun."""

    def end(self, cause: neutral.LossCause, text: str) -> None:
        if cause is neutral.LossCause.CLOSED_BY_US and self._transport is None:
            self._connecting.cancel()
        else:
            super().end(cause, text)


class SilentlyCalledOff(AsyncioClient):
    """Says nothing of a connect that is called off."""

    def _open(self, order: neutral.OpenStream) -> None:
        self._streams[order.stream] = Unfinished(self, order)


class TellsTooLittle(AsyncioClient):
    """Takes what a peer left unanswered for what it never got."""

    def lost(self, stream: Stream, cause: neutral.LossCause, text: str, handed_over: int) -> None:
        super().lost(stream, cause, text, handed_over if cause is neutral.LossCause.CLOSED_BY_US else 0)


class Haunted(Stream):
    """A stream that reports the end of the stream as a read of nothing, after its loss."""

    def eof_received(self) -> None:
        super().eof_received()
        self._client.feed(neutral.BytesReceived(self.name, b""))


class ReadsOn(AsyncioClient):
    """Reads when there is nothing left to read from."""

    def _open(self, order: neutral.OpenStream) -> None:
        self._streams[order.stream] = Haunted(self, order)


class ForgetsItsCallers(AsyncioClient):
    """Leaves whoever waits when it is closed."""

    def _end(self, why: Exception) -> None:
        self._callers.clear()
        super()._end(why)


class CallsBack(AsyncioClient):
    """Tells the machine at once, whatever it is doing."""

    def feed(self, event: couchbase.Event) -> None:
        if not self._is_closed:
            self._handle(event)


class RingsUntilTimeGoesOn(AsyncioClient):
    """Lets nothing else happen while an alarm is due."""

    async def _pass_time(self) -> None:
        await super()._pass_time()
        while self._machine.wakeup <= self.loop.time():
            self.feed(neutral.TimePassed())


class LooksAtTheClockFirst(AsyncioClient):
    """Tells the time before anything else that happens after an alarm was due."""

    def feed(self, event: couchbase.Event) -> None:
        if isinstance(event, neutral.BytesReceived) and self._machine.wakeup <= self.loop.time():
            super().feed(neutral.TimePassed())
        super().feed(event)


class ReadsToTheEnd(AsyncioClient):
    """Reads as long as there is something to read, and looks at the clock then."""

    heard = 0

    async def _pass_time(self) -> None:
        heard = -1
        while heard != self.heard:
            heard = self.heard
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await super()._pass_time()

    def feed(self, event: couchbase.Event) -> None:
        self.heard += isinstance(event, neutral.BytesReceived)
        super().feed(event)


class TellsThatAllWasSent(AsyncioClient):
    """Knows nothing of what waits in its queues."""

    def feed(self, event: couchbase.Event) -> None:
        super().feed(neutral.TimePassed(unread=event.unread) if isinstance(event, neutral.TimePassed) else event)


class NamesNoStreamThatHasMore(AsyncioClient):
    """Driver that stops reading at the bound and does not name the streams in ``unread``."""

    def feed(self, event: couchbase.Event) -> None:
        super().feed(neutral.TimePassed(event.unsent) if isinstance(event, neutral.TimePassed) else event)


class AsksNoStrategy(AsyncioClient):
    """Knows of no strategy that is asynchronous."""

    def _consult(self, order: neutral.ConsultStrategy) -> None:
        pass


class LooksUpNothing(AsyncioClient):
    """Driver that ignores look-ups."""

    def _look_up(self, order: couchbase.LookUpService) -> None:
        pass


class ForgetsItsReaders(AsyncioClient):
    """Driver that lets a reader of rows wait for more when it is closed."""

    async def wait(self, name: str, token: neutral.Token, event: couchbase.Event) -> Outcome:
        if self._is_closed and isinstance(event, couchbase.RowsWanted):
            await asyncio.Event().wait()
        return await super().wait(name, token, event)


class GivesAnotherResult(AsyncioClient):
    """Driver that resumes every task with the same result. It breaks most laws, because each needs results."""

    def _settle(self, token: neutral.Token, outcome: Outcome) -> None:
        super()._settle(token, MutationResult(Cas(0)) if isinstance(outcome, MutationResult) else outcome)


class BlamesEverybody(AsyncioClient):
    """Takes a caller's mistake for the end of the client."""

    def _settle(self, token: neutral.Token, outcome: Outcome) -> None:
        super()._settle(token, outcome)
        if isinstance(outcome, ArgumentError):
            for other in list(self._callers):
                super()._settle(other, outcome)


class ReadsAhead(AsyncioClient):
    """Wants more rows as soon as there are some, whether anybody takes them or not."""

    def _settle(self, token: neutral.Token, outcome: Outcome) -> None:
        super()._settle(token, outcome)
        if isinstance(outcome, couchbase.RowsReceived):
            self.feed(couchbase.RowsWanted(token))


class KeepsItsRequests(AsyncioClient):
    """Tells of a caller who leaves only where that one waits."""

    @asynccontextmanager
    async def ask(self, request: ServiceRequest, strategy: AnyRetryStrategy | None = None) -> AsyncIterator[Rows]:
        async with super().ask(request, strategy) as rows:
            try:
                yield rows
            finally:
                rows.is_over = True


class ReadsThroughPauses(AsyncioClient):
    """Goes on reading what nobody wants."""

    def _pause(self, order: neutral.PauseReading) -> None:
        pass


class NeverResumes(AsyncioClient):
    """Takes a pause for the end."""

    def _resume(self, order: neutral.ResumeReading) -> None:
        pass


class SendsWithoutLooking(AsyncioClient):
    """Driver that sends immediately, even if something waits to be read."""

    def _send(self, order: neutral.SendBytes) -> None:
        super()._send(neutral.SendBytes(order.stream, order.data))


_BREACHES: Mapping[type[AsyncioClient], str] = {
    WritesTheLastFirst: "actions_are_carried_out_in_order",
    KeepsItsAlarm: "an_earlier_alarm_rings",
    WritesInTheCallersTask: "a_caller_that_leaves_spares_the_stream",
    SilentlyCalledOff: "a_connect_that_fails_is_a_loss",
    TellsTooLittle: "bytes_handed_over_are_never_fewer",
    ReadsOn: "bytes_come_before_the_loss",
    ForgetsItsCallers: "tasks_that_wait_are_settled_at_the_close",
    CallsBack: "the_machine_is_not_called_back",
    RingsUntilTimeGoesOn: "time_may_stand_still",
    LooksAtTheClockFirst: "arrived_bytes_come_before_the_time",
    ReadsToTheEnd: "a_peer_cannot_stop_the_time",
    NamesNoStreamThatHasMore: "a_peer_cannot_stop_the_time",
    TellsThatAllWasSent: "unsent_bytes_are_named_with_the_time",
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
"""Name of the one law that each breaks."""

_LAW_OF = {law.__name__: law for law in LAWS}
BROKEN: Mapping[type[AsyncioClient], Law] = {driver: _LAW_OF[name] for driver, name in _BREACHES.items()}
"""The one law that each breaks."""
