"""The half of a driver that needs no event loop: events in, actions out, waiting callers, open streams.

It keeps the rules that are the same for every event loop: one event at a time, actions in order, one loss for each
stream and one outcome for each caller, and reading before ``TimePassed``. It performs no I/O. A subclass connects,
reads, writes, sleeps until the alarm, wakes callers and runs coroutines; ``docs/howto/examples`` has two subclasses.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Set as AbstractSet
from itertools import count
from typing import Any, Generic, Protocol, Self, TypeVar

from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract.neutral.actions import (
    AcquirePermit,
    CloseStream,
    ConsultStrategy,
    NeutralAction,
    OpenStream,
    PauseReading,
    RecordSuccess,
    ReportConnection,
    ReportDecoderFault,
    ReportLevel,
    ReportStrategyError,
    ResumeReading,
    SendBytes,
)
from triclinium_core.contract.neutral.addresses import address_of
from triclinium_core.contract.neutral.events import (
    BytesReceived,
    LossCause,
    NeutralEvent,
    StrategyDecided,
    StreamId,
    StreamLost,
    StreamOpened,
    TimePassed,
    Token,
)
from triclinium_core.contract.neutral.losses import loss_of
from triclinium_core.contract.neutral.machine import Machine
from triclinium_core.contract.neutral.outbox import Outbox
from triclinium_core.work import PIECE_SIZE_BYTES_MAX, WORK_BEFORE_TIME_MAX


class ClosedError(Exception):
    """The driver was closed or failed before or during the call, or the call has ended."""


DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40
"""Levels of ``logging``, which this package does not import."""

LEVELS: Mapping[ReportLevel, int] = {
    ReportLevel.DEBUG: DEBUG,
    ReportLevel.INFO: INFO,
    ReportLevel.WARNING: WARNING,
}


FATAL = (GeneratorExit, KeyboardInterrupt, SystemExit)
"""Exceptions of a strategy that the driver raises again, and never treats as a failure of the strategy."""


class Log(Protocol):
    """Receiver of reports, such as a ``logging.Logger``."""

    def log(self, level: int, message: object, /, *arguments: object, exc_info: BaseException | None = None) -> None:
        """Write ``message % arguments``, with the traceback of ``exc_info``."""
        ...


class DrivenStream(Protocol):
    """One stream of a driver, from the order to open it until its loss."""

    outbox: Outbox
    """Bytes to write."""

    def start(self) -> None:
        """Connect and call ``Driver.opened``, now or later. To fail, raise OSError or ValueError, or call ``lose``."""
        ...

    def flush(self) -> None:
        """Write the bytes of ``outbox``, or begin to. If it ``is_checked`` and something is readable, do not write."""
        ...

    def set_paused(self, is_paused: bool, /) -> None:
        """Stop reading, or resume it."""
        ...

    def abort(self) -> None:
        """Close the connection or stop connecting, immediately. The driver reports the loss."""
        ...


E = TypeVar("E")
A = TypeVar("A")
W = TypeVar("W")
S = TypeVar("S", bound=DrivenStream)


class Driver(ABC, Generic[E, A, W, S]):
    """Driver of one machine. It makes no decisions.

    ``E`` and ``A`` are the protocol's events and actions, ``W`` is what wakes a waiting caller, and ``S`` a stream.

    Args:
        machine: makes all decisions. Only this object feeds events to it.
        now: returns the time in monotonic seconds.
        open_stream: returns a stream that has not started yet.
        make_nonce: returns fresh entropy, as ``StreamOpened`` needs it.
        log: receives the reports.
    """

    def __init__(
        self,
        machine: Machine[E | NeutralEvent, A | NeutralAction],
        *,
        now: Callable[[], float],
        open_stream: Callable[[OpenStream], S],
        make_nonce: Callable[[], str],
        log: Log,
    ) -> None:
        self.now: Callable[[], float] = now
        """Clock."""
        self.make_nonce: Callable[[], str] = make_nonce
        """Source of entropy."""
        self.streams: dict[StreamId, S] = {}
        """Streams that were not reported lost."""
        self.waiters: dict[Token, W] = {}
        """Submissions that have not ended, each with its caller."""
        self.unread: set[StreamId] = set()
        """Streams that may have more bytes to read."""
        self.is_ended: bool = False
        """Whether the driver was closed or has failed. ``feed`` then ignores events."""
        self.alarm_time: float = math.inf
        """Time of the alarm, which may be earlier than the machine's ``wakeup``."""
        self.tokens: Iterator[Token] = map(Token, count(1))
        """Tokens of later submissions."""
        self._machine = machine
        self._open_stream = open_stream
        self._events: deque[E | NeutralEvent] = deque()
        self._is_feeding = False
        self._is_passing_time = False
        self._handlers: dict[type, Callable[[Any], object]] = {
            OpenStream: self._open,
            SendBytes: self._send,
            CloseStream: lambda action: self.lose(action.stream, LossCause.CLOSED_BY_US, action.reason),
            PauseReading: self._pause,
            ResumeReading: self._resume,
            ConsultStrategy: lambda action: self._ask(
                action.token, lambda: action.strategy.retry_after(action.request, action.reason)
            ),
            AcquirePermit: lambda action: self._ask(action.token, action.permit.acquire),
            RecordSuccess: lambda action: self.run(self._record(action)),
            ReportConnection: lambda action: log.log(LEVELS[action.level], "%s: %s", action.node, action.text),
            ReportStrategyError: lambda action: log.log(
                ERROR, "a retry strategy failed to record a success", exc_info=action.error
            ),
            ReportDecoderFault: lambda action: log.log(
                ERROR, "%s: %s", action.node, action.fault, exc_info=action.fault
            ),
        }
        """Function that executes each type of action; a protocol adds its own."""

    # -- Alarm, waiting callers and strategy calls, for a subclass to implement.

    def set_alarm(self, time: float) -> None:
        """Exhaust ``pass_time`` at ``time``. By default, do nothing: a subclass may read ``alarm_time`` instead."""

    @abstractmethod
    def wake(self, waiter: W, outcome: object) -> None:
        """Resume a caller with a result, or with an exception to raise. Its task may just have been cancelled."""

    def run(self, work: Coroutine[object, None, None], waiter: W | None = None) -> object:
        """Run a call to a user's strategy.

        With a waiter, use the context of its caller, and cancel the call once the caller has an outcome. By default,
        the strategy must not wait for anything: its call fails if it does. A subclass with an event loop starts a task.
        """
        try:
            work.send(None)
            work.throw(RuntimeError("this program has no event loop in which a retry strategy can wait"))
        except StopIteration:
            pass
        return None

    # -- Events of the protocol, which a subclass defines.

    @abstractmethod
    def submitted(self, event: E | NeutralEvent) -> AbstractSet[Token]:
        """Return the tokens that an event submits; none for other events."""

    @abstractmethod
    def abandoned(self, token: Token) -> E:
        """Return the event that reports that a caller stopped waiting."""

    # -- Callers, and closing.

    def wait(self, waiters: Mapping[Token, W], event: E) -> None:
        """Feed an event of callers: a submission, or a request for more of its outcome. They then wait for ``wake``.

        Raises:
            ClosedError: the driver has ended; or the event requests more of a submission that has ended.
        """
        if self.is_ended:
            raise ClosedError("the client was closed or has failed; open a new one")
        submitted = self.submitted(event)
        if not all(token in submitted or token in self.waiters for token in waiters):
            raise ClosedError("the call has ended, so nothing more can be requested of it")
        self.waiters |= waiters
        self.feed(event)

    def settle(self, token: Token, outcome: object, *, is_last: bool = True) -> None:
        """Wake the caller of a token, if it still waits. The last outcome ends the submission."""
        waiter = self.waiters.pop(token, None) if is_last else self.waiters.get(token)
        if waiter is not None:
            self.wake(waiter, outcome)

    def leave(self, *tokens: Token, event: E | None = None) -> None:
        """Abandon submissions unless they have ended.

        Args:
            event: the abandonment of a single token; None for ``abandoned(token)``.
        """
        for token in tokens:
            if self.waiters.pop(token, None) is not None:
                self.feed(event if event is not None else self.abandoned(token))

    def close(self) -> None:
        """Close all streams immediately. Waiting callers get ``ClosedError``, and so do later ones."""
        if self.is_ended:
            return
        abandonments = [self.abandoned(token) for token in self.waiters]
        self._end(ClosedError("the client was closed meanwhile"))
        # The machine still handles the queued events, then the abandonments, which release the permits.
        self._events.extend(abandonments)
        self._handle_events()

    def __enter__(self) -> Self:
        """Return the driver, which ``__exit__`` closes."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the driver."""
        self.close()

    # -- Events in, actions out.

    def feed(self, event: E | NeutralEvent) -> None:
        """Feed an event to the machine, and execute its actions in order. Queue events that occur meanwhile.

        An ended driver ignores the event.

        Raises:
            BaseException: the machine or an action raised it. The driver has ended.
        """
        if self.is_ended:
            return
        self._events.append(event)
        self._handle_events()

    def _handle_events(self) -> None:
        if self._is_feeding:
            return
        self._is_feeding = True
        try:
            while self._events:
                self.handle(self._events.popleft())
        except BaseException as defect:
            self._events.clear()
            self._end(ClosedError(f"the client has a defect: {defect!r}"))
            raise
        finally:
            self._is_feeding = False

    def handle(self, event: E | NeutralEvent) -> None:
        """Handle one event. The driver alone calls this, in the order of the events."""
        try:
            actions = self._machine.handle(event, self.now())
        except ArgumentError as mistake:
            # The machine refuses an invalid argument of a caller, and its state does not change.
            refused = self.submitted(event)
            if not refused:
                raise
            for token in refused:
                self.settle(token, mistake)
            return
        self.execute(actions)
        if self._machine.wakeup < self.alarm_time and not self.is_ended:
            self.alarm_time = self._machine.wakeup
            self.set_alarm(self.alarm_time)

    def execute(self, actions: Collection[A | NeutralAction]) -> None:
        """Execute actions in order."""
        for action in actions:
            self._handlers[type(action)](action)

    def pass_time(self) -> Iterator[None]:
        """Have the caller read the streams, then feed ``TimePassed``. Do nothing if this is under way already.

        Exhaust the iterator when the alarm rings. At each yield, read once from every stream that has bytes.
        """
        if self._is_passing_time:
            return
        self._is_passing_time = True
        work_max = self._machine.work + WORK_BEFORE_TIME_MAX
        without_turn = {*self.streams}
        try:
            while without_turn:
                self.unread.clear()
                yield
                if self._machine.work >= work_max:
                    # A node that never stops sending must not delay deadlines.
                    self.unread |= without_turn
                    break
                without_turn = {*self.unread}
        finally:
            # Control-C may end this generator early. The alarm is then still due.
            self._is_passing_time = False
        unsent = {number: stream.outbox.handed_over for number, stream in self.streams.items() if stream.outbox}
        self.alarm_time = math.inf
        self.feed(TimePassed(unsent, frozenset(self.unread)))

    def _end(self, error: Exception) -> None:
        self.is_ended = True
        for token in tuple(self.waiters):
            self.settle(token, error)
        while self.streams:
            _, stream = self.streams.popitem()
            stream.outbox.clear()
            stream.abort()

    # -- Streams.

    def opened(self, number: StreamId, local: object, remote: object) -> None:
        """Report to the machine that a stream is open. Ignore a lost stream.

        Args:
            local: result of ``getsockname`` of the socket; ``remote`` is that of ``getpeername``.
        """
        if number in self.streams:
            self.feed(StreamOpened(number, self.make_nonce(), address_of(local), address_of(remote)))

    def received(self, number: StreamId, data: bytes, *, may_have_more: bool) -> None:
        """Feed what one read has returned, in pieces of limited size. Ignore a lost stream.

        Bytes that arrive before a checked request was written end the stream: they cannot belong to its response.

        Args:
            data: bytes; empty at the end of the stream.
            may_have_more: whether the next read may return more bytes that have arrived already.
        """
        if may_have_more:
            self.unread.add(number)
        if not data:
            self.lose(number, LossCause.END_OF_STREAM)
        for start in range(0, len(data), PIECE_SIZE_BYTES_MAX):
            stream = self.streams.get(number)
            if stream is not None and stream.outbox.is_checked:
                self.lose(number, LossCause.UNSOLICITED)
            elif stream is not None:
                self.feed(BytesReceived(number, data[start : start + PIECE_SIZE_BYTES_MAX]))

    def lose(self, number: StreamId, cause: LossCause, text: str = "") -> None:
        """Close a stream or stop connecting, and report the loss. Ignore a stream that is lost already."""
        stream = self.streams.pop(number, None)
        if stream is not None:
            stream.outbox.clear()
            stream.abort()
            self.feed(StreamLost(number, cause, text, stream.outbox.handed_over))

    def _open(self, action: OpenStream) -> None:
        if self.is_ended:
            # An earlier action of the same event has closed the driver, for example through a handler of its log.
            return
        stream = self.streams[action.stream] = self._open_stream(action)
        try:
            stream.start()
        except BaseException as error:
            # Control-C may also interrupt ``start``. A stream that has not started cannot be aborted.
            self.streams.pop(action.stream, None)
            if not isinstance(error, OSError | ValueError):
                raise
            self.feed(StreamLost(action.stream, *loss_of(error), handed_over=0))

    # A stream that is missing from ``streams`` was lost, and the event for the loss is queued, or the driver has ended.

    def _send(self, action: SendBytes) -> None:
        stream = self.streams.get(action.stream)
        if stream is not None:
            stream.outbox.put(action.data, unless_readable=action.unless_readable)
            stream.flush()

    def _pause(self, action: PauseReading) -> None:
        stream = self.streams.get(action.stream)
        if stream is not None:
            stream.set_paused(True)

    def _resume(self, action: ResumeReading) -> None:
        stream = self.streams.get(action.stream)
        if stream is not None:
            stream.set_paused(False)

    # -- Strategies.

    def _ask(self, token: Token, question: Callable[[], Awaitable[object]]) -> None:
        waiter = self.waiters.get(token)
        if waiter is not None:
            self.run(self._decide(token, question), waiter)

    async def _decide(self, token: Token, question: Callable[[], Awaitable[object]]) -> None:
        try:
            decided = StrategyDecided(token, await question())
        except BaseException as error:
            # The driver cancels the call of a caller that has an outcome. Any other cancellation is a failure.
            if isinstance(error, FATAL) or (token not in self.waiters and not isinstance(error, Exception)):
                raise
            decided = StrategyDecided(token, None, error)
        self.feed(decided)

    async def _record(self, action: RecordSuccess) -> None:
        try:
            await action.permit.record()
        except BaseException as error:
            # The driver cancels the call when it ends. Any other cancellation is a failure.
            if isinstance(error, FATAL) or (self.is_ended and not isinstance(error, Exception)):
                raise
            self._handlers[ReportStrategyError](ReportStrategyError(action.token, error))
