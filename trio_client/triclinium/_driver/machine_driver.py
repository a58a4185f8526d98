"""Driver of a machine: feeds it every event, and executes its actions.

The driver makes no decisions. Every event goes through ``feed``, which looks up each action's handler by its type.
A calling task waits until the machine ends what the task has submitted. One background task sleeps until the machine's
``wakeup`` (``alarm``), and each stream has its own background tasks (``streams``). These background tasks live in
a nursery that is shielded from the caller's cancel scopes, so that a cancelled block can still clean up through the
client. Leaving the block ends the background tasks.

Control-C must not interrupt the handling of an event. So every function that calls ``feed`` is protected from
KeyboardInterrupt, and trio raises it at the main task's next checkpoint.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from itertools import count
from threading import get_ident
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import trio

from triclinium._driver.alarm import Alarm
from triclinium._driver.consultations import Consultations
from triclinium._driver.pace import Pace
from triclinium._driver.streams import StreamEvent, Streams, new_nonce
from triclinium._driver.waiters import Waiter, Waiters
from triclinium._trio_run import TrioRun
from triclinium.abc import Connector
from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract.neutral import (
    AcquirePermit,
    CloseStream,
    ConsultStrategy,
    Machine,
    OpenStream,
    PauseReading,
    RecordSuccess,
    ReportConnection,
    ReportDecoderFault,
    ReportStrategyError,
    ResumeReading,
    SendBytes,
    StrategyDecided,
    StreamLost,
    TimePassed,
    Token,
)

E = TypeVar("E")
A = TypeVar("A")
Q = TypeVar("Q")
R = TypeVar("R")

NeutralEvent = StreamEvent | TimePassed | StrategyDecided
"""Events that the driver itself feeds to any machine."""


class NeutralLog(Protocol):
    """Log of the reports that any machine may return."""

    def connection(self, report: ReportConnection) -> None:
        """Write an event of a connection."""
        ...

    def decoder_fault(self, report: ReportDecoderFault) -> None:
        """Write a defect of a decoder, with its traceback."""
        ...

    def strategy_error(self, report: ReportStrategyError) -> None:
        """Write the exception of a strategy that could not record a success."""
        ...


class MachineDriver(ABC, Generic[E, A, Q, R]):
    """Driver of one machine.

    Each protocol has a subclass, whose methods submit the protocol's events, and which adds the handlers of the
    protocol's actions to ``_handlers``. ``E`` is the type of the protocol's events, ``A`` that of all
    actions of its machine, ``Q`` that of the objects that tasks submit, and ``R`` that of the results.

    Args:
        machine: makes all decisions.
        connector: opens streams.
        log: receives the reports.
        make_nonce: returns entropy for authentication, once for each stream.
    """

    _NAME: ClassVar[str] = "client"
    """Name of the driver in error messages."""
    _CRASH: ClassVar[type[Exception]] = RuntimeError
    """Exception that callers get after a defect; it is constructed with a message."""

    _nursery: trio.Nursery

    def __init__(
        self,
        machine: Machine[E | NeutralEvent, A],
        *,
        connector: Connector,
        log: NeutralLog,
        make_nonce: Callable[[], str] = new_nonce,
    ) -> None:
        self.started: trio.Event = trio.Event()
        """Event that is set when tasks may submit."""
        self.make_nonce: Callable[[], str] = make_nonce
        self._machine = machine
        self._waiters: Waiters[Q, R] = Waiters()
        self._pace = pace = Pace()
        self._alarm: Alarm[E, A, Q, R] = Alarm(machine, self.feed, self._waiters, pace)
        self._streams = Streams(connector=connector, feed=self._on_stream_event, make_nonce=make_nonce, pace=pace)
        self._alarm.streams = self._streams
        self._consultations: Consultations[Q, R] = Consultations(self.feed, self._waiters, log.strategy_error)
        self._tokens = map(Token, count(1))
        self._run: TrioRun | None = None
        self._thread = 0
        """Thread of the trio run. While this run lasts, the thread has no other run."""
        self._scope = trio.CancelScope(shield=True)
        self._recording = trio.CancelScope(shield=True)
        """Scope of the tasks that record successes. These tasks may continue after all other tasks have ended."""
        self._events: deque[E | NeutralEvent] = deque()
        self._is_feeding = False
        self._is_ended = False
        """Whether the driver is closed or broken: no more events are fed."""
        self._defect: BaseException | None = None
        streams, consultations = self._streams, self._consultations
        self._handlers: dict[type, Callable[[Any], None]] = {
            OpenStream: lambda action: streams.open(action, self._nursery),
            SendBytes: streams.send,
            CloseStream: streams.close,
            PauseReading: streams.pause_reading,
            ResumeReading: streams.resume_reading,
            ConsultStrategy: consultations.consult,
            AcquirePermit: consultations.acquire,
            RecordSuccess: consultations.record,
            ReportStrategyError: log.strategy_error,
            ReportConnection: log.connection,
            ReportDecoderFault: log.decoder_fault,
        }
        """Function that executes an action, by the type of the action."""

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Work until ``close``, and then until strategies have recorded their successes.

        The caller's cancel scopes have no effect before ``close``.

        Raises:
            BaseExceptionGroup: a background task crashed, which is a defect, or raised KeyboardInterrupt or SystemExit.
        """
        self._run, self._thread = TrioRun(), get_ident()
        try:
            with self._recording:
                async with trio.open_nursery() as self._consultations.recorders:
                    with self._scope:
                        async with trio.open_nursery() as self._nursery:
                            self._consultations.nursery = self._nursery
                            self._start()
        except BaseException as error:
            self._is_ended, self._defect = True, error
            raise
        finally:
            self.close()
            self._streams.clear()

    def _start(self) -> None:
        """Start the machine and the background tasks."""
        self.feed(TimePassed())
        self._nursery.start_soon(self._alarm.run)
        self.started.set()

    def check_caller(self) -> None:
        """Refuse callers from another trio run.

        Raises:
            RuntimeError: the caller is in another run or in none, or the driver does not run yet.
        """
        if self._run is None:
            raise RuntimeError("the client is not running; start its run() first")
        self._run.check_caller()

    @trio.lowlevel.enable_ki_protection
    def close(self) -> None:
        """End all streams and background tasks immediately; pending calls raise ``trio.ClosedResourceError``.

        After a crash, they raise ``_CRASH``. Only strategies that are recording a success continue, until the scopes
        around ``run`` are cancelled.
        """
        self._finish()
        self._is_ended = True
        self._scope.cancel()
        self._recording.shield = False
        self._settle_all()

    def _finish(self) -> None:
        """Abandon all open operations, so that strategies get their permits back."""
        for waiter in tuple(self._waiters.open.values()):
            self.feed(self._abandoned(waiter))

    # -- Waiting tasks.

    @trio.lowlevel.enable_ki_protection
    async def _perform(self, asked: Q, submission: Callable[[Token], E]) -> R:
        """Feed a submission with a new token, and return its result. A checkpoint, unless noted below.

        Raises:
            trio.ClosedResourceError: the driver is closed, or was closed meanwhile.
            RuntimeError: the caller is in another trio run; then the call is not a checkpoint.
            Exception: the error with which the machine ended the token.

        Cancellation: a pending cancellation prevents the submission. A later one abandons the submission.
        """
        self.check_caller()
        await trio.lowlevel.checkpoint_if_cancelled()
        waiter = Waiter(next(self._tokens), asked, trio.lowlevel.current_task(), self)
        if self._is_ended:
            await trio.lowlevel.cancel_shielded_checkpoint()
            raise self._ending(f"{asked} was not sent")
        self._waiters.open[waiter.token] = waiter
        self.feed(submission(waiter.token))
        return await self._outcome(waiter)

    async def _outcome(self, waiter: Waiter[Q, R]) -> R:
        """Return the result of a waiter whose submission was fed, or raise its error. Always a checkpoint.

        If the token ended during its submission, the call cannot be cancelled.
        """
        if waiter.token in self._waiters.open:
            waiter.is_parked = True
            result: R = await trio.lowlevel.wait_task_rescheduled(waiter.abort)
            return result
        await trio.lowlevel.cancel_shielded_checkpoint()
        return waiter.unwrap()

    def abandon(self, waiter: Waiter[Q, R]) -> trio.lowlevel.Abort:
        """Abandon the submission of a task that is being cancelled. Trio may call this, so it never raises."""
        del self._waiters.open[waiter.token]
        event = self._abandoned(waiter)
        self._consultations.call_off(waiter.token)
        self.feed(event)
        waiter.release()
        return trio.lowlevel.Abort.SUCCEEDED

    @abstractmethod
    def _abandoned(self, waiter: Waiter[Q, R]) -> E:
        """Return the event that abandons the submission of a cancelled task."""

    # -- Events in, actions out.

    def _on_stream_event(self, event: StreamEvent) -> None:
        """Feed an event of a stream. Notify the pace if the work of the machine has reached the limit of the pass."""
        if type(event) is StreamLost:
            self._streams.forget(event.stream)
        if self._waiters.newest_at_alarm is None:
            self.feed(event)
        else:
            self._alarm.on_event(event)
        if self._machine.work >= self._pace.limit:
            self._pace.note(self._machine.work)

    def feed(self, event: E | NeutralEvent) -> None:
        """Pass ``event`` to the machine, and execute the machine's actions. Never raise.

        Events that occur meanwhile are queued. For example, a retry strategy that cancels a scope makes trio
        abandon that scope's operations immediately, while the machine calls the strategy, and the machine is not
        re-entrant.
        """
        if self._is_feeding:
            self._events.append(event)
            return
        if self._is_ended:
            return
        self._is_feeding = True
        try:
            self._handle(event)
            while self._events:
                self._handle(self._events.popleft())
        except BaseException as error:
            self._break_down(error)
        finally:
            self._is_feeding = False
        if self._waiters.collected:
            self._waiters.deliver()

    def _handle(self, event: E | NeutralEvent) -> None:
        try:
            actions = self._machine.handle(event, trio.current_time())
        except ArgumentError as error:
            # An argument in the event is invalid. The state of the machine is unchanged.
            self._refused(event, error)
            return
        for action in actions:
            self._handlers[type(action)](action)
        wakeup = self._machine.wakeup
        if wakeup < self._alarm.time:
            self._alarm.set_earlier(wakeup)

    def _refused(self, event: E | NeutralEvent, error: ArgumentError) -> None:
        """Fail the submissions of a refused event. Raise the error if it is not a caller's mistake."""
        raise error

    # -- Outcomes, and the end of the driver.

    def _settle(self, token: Token, result: R | None, error: Exception | None) -> Waiter[Q, R] | None:
        """Give the task that waits for a token its outcome, and return its waiter; None if no task waits."""
        if self._consultations.open:
            self._consultations.call_off(token)
        return self._waiters.settle(token, result, error)

    def _break_down(self, error: BaseException) -> None:
        """Record a defect: fail all waiting tasks, and let the nursery raise it. Never raises."""
        self._is_ended, self._defect = True, error
        self._events.clear()
        self._settle_all()
        self._nursery.start_soon(_raise, error)

    def _settle_all(self) -> None:
        for token, waiter in list(self._waiters.open.items()):
            self._settle(token, None, self._ending(self._state_of(waiter)))
        self._waiters.deliver()

    def _state_of(self, waiter: Waiter[Q, R]) -> str:
        """Return the state of a task's submission at the end of the driver, in words."""
        return f"{waiter.asked} got no response"

    def _ending(self, state: str) -> Exception:
        """Return the error for a caller when the driver has ended.

        Args:
            state: state of the call, in words.
        """
        if not isinstance(self._defect, Exception):
            # The driver was closed, or the program ends, for example because a strategy raised SystemExit.
            return trio.ClosedResourceError(f"the {self._NAME} is closed, and {state}; use it inside its block only")
        error = self._CRASH(f"a background task crashed ({self._defect!r}); please report this")
        error.__cause__ = self._defect
        return error


async def _raise(error: BaseException) -> None:
    raise error
