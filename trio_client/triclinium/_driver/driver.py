"""The only caller of the machine: feeds it what happens, and carries out what it orders.

The driver decides nothing. Every event goes through ``_feed``, which looks up each action's handler by its type.
Operations park their task until the machine settles them; one task sleeps until the machine's ``wakeup``; each stream
has its own tasks (``stream``). All of these live in a nursery that is shielded from the caller's cancel scopes, so
that a body that is being cancelled can still clean up through the client; leaving the block ends them.

Control-C must not strike while an event is half handled. So whatever leads to ``_feed`` is protected from it, and it
strikes at the main task's next checkpoint.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextvars import copy_context
from itertools import count
from threading import get_ident
from typing import Any, ParamSpec, TypeVar, cast

import trio

from triclinium._context import block_strategy, block_values
from triclinium._deadlines import AbandonedOperation, Report, abandon_reason, leave_reason, reports_of
from triclinium._driver.connector import show_certificate
from triclinium._driver.log import Log
from triclinium._driver.open_rows import OpenRows
from triclinium._driver.pace import Pace
from triclinium._driver.resolver import DnsResolver, looked_up
from triclinium._driver.stream import Stream, new_nonce
from triclinium._driver.subscriptions import Subscriptions
from triclinium._driver.waiter import Waiter
from triclinium._driver.watched_operations import WatchedOperations
from triclinium._telemetry.calls import Calls
from triclinium._telemetry.telemetry import Telemetry
from triclinium._telemetry.wrapping import SharedCall
from triclinium._trio_run import TrioRun
from triclinium.abc import Connector, Resolver
from triclinium_core.client.health.statistics import ClientStatistics
from triclinium_core.client.machine import Machine
from triclinium_core.contract.couchbase import (
    AbandonReason,
    Action,
    AuthenticatorChanged,
    CallEnded,
    CompleteOperation,
    CompleteRequest,
    Event,
    FailOperation,
    InquirySubmitted,
    LookUpService,
    OperationAbandoned,
    OperationsSubmitted,
    OperationSubmitted,
    PublishTopology,
    ReportAnswer,
    ReportDispatch,
    ReportEnd,
    ReportRefusal,
    ReportRetry,
    ReportTelemetry,
    RequestSubmitted,
    RowsReceived,
    RowsWanted,
    SubscribersChanged,
)
from triclinium_core.contract.neutral import (
    AcquirePermit,
    BytesReceived,
    CloseStream,
    ConsultStrategy,
    LossCause,
    OpenStream,
    PauseReading,
    RecordSuccess,
    ReportConnection,
    ReportDecoderFault,
    ReportStrategyError,
    ResumeReading,
    SendBytes,
    StrategyDecided,
    StreamId,
    StreamLost,
    TimePassed,
    Token,
)
from triclinium_core.decoder_faults import DecoderFault
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import CouchbaseException, InternalError, TimeoutException
from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.kv.operation.reports import DiagnosticsResult
from triclinium_core.kv.operation.requests import Operation
from triclinium_core.kv.operation.results import Result
from triclinium_core.options import Authenticator
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.request import ServiceRequest, ServiceResult
from triclinium_core.telemetry.span_names import WrappingCall
from triclinium_core.telemetry.tracing import RequestSpan
from triclinium_core.work import WORK_BEFORE_TIME_MAX

Q = TypeVar("Q")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
P = ParamSpec("P")

_NO_TOKEN = Token(0)


class Driver:
    """One client at work.

    Args:
        machine: decides everything.
        connector: how to reach nodes.
        log: where the machine's reports go.
        telemetry: what a user's tracer and meter are told; None where there are none.
        measures_encoding: whether the machine wants to know how long payloads took to encode.
        resolver: how to look up the names of clusters; DNS unless given.
        make_nonce: entropy for SCRAM, one nonce a stream.
    """

    _nursery: trio.Nursery
    _recorders: trio.Nursery

    def __init__(
        self,
        machine: Machine,
        *,
        connector: Connector,
        log: Log,
        telemetry: Telemetry | None = None,
        measures_encoding: bool = False,
        resolver: Resolver | None = None,
        make_nonce: Callable[[], str] = new_nonce,
        call_timeout: float = math.inf,
    ) -> None:
        self.call_timeout: float = call_timeout
        """Seconds that a call of several operations or requests may take; for those who make such calls."""
        self.redacts: bool = log.redact
        """Whether the log marks user data."""
        self.started: trio.Event = trio.Event()
        """Set when operations may be performed."""
        self.subscriptions: Subscriptions = Subscriptions(
            lambda: machine.topologies, self.check_caller, self._subscribers_changed
        )
        self.vbucket_count: Callable[[str | None], int] = machine.vbucket_count
        self.replica_count: Callable[[str | None], int | None] = machine.replica_count
        self._machine = machine
        self._log = log
        self._connector = connector
        self._resolver: Resolver = resolver if resolver is not None else DnsResolver()
        self.telemetry: Telemetry | None = telemetry
        self.measures_encoding: bool = measures_encoding
        self.current_time: Callable[[], float] = trio.current_time
        """The clock of the run, asked without a detour once that is known."""
        self._traces = telemetry is not None and telemetry.traces
        self._calls = Calls(telemetry)
        self.make_nonce: Callable[[], str] = make_nonce
        self._run: TrioRun
        self._thread = 0
        """Of the run. There is no other run in it as long as this one lasts."""
        self._scope = trio.CancelScope(shield=True)
        self._recording = trio.CancelScope(shield=True)
        """Around what strategies record of successes, which may go on when all else has ended."""
        self._alarm = trio.CancelScope()
        self._alarm_time = -math.inf
        self._context = copy_context()
        self._waiters: dict[Token, Waiter] = {}
        self._give_up = self._abandon
        """Bound once, and not for every operation."""
        self._submissions: dict[Token, OperationSubmitted] = {}
        """What tasks have asked for since the machine heard of it last; the submitter feeds all of it at once."""
        self._submitter: trio.lowlevel.Task | None = None
        """None where it does not sleep."""
        self._streams: dict[StreamId, Stream] = {}
        self._sent_on: set[StreamId] = set()
        """Streams that were given bytes since the last alarm, or had not handed them over at that."""
        self._tokens = cast("Iterator[Token]", count(1))
        self._newest_at_alarm: Token | None = None
        """None where no alarm is being answered."""
        self._old_settled = 0
        """Operations that were settled since an alarm, and were submitted before it."""
        self._unread: set[StreamId] = set()
        """Streams that may have more of what came before the alarm."""
        self._pace = Pace()
        self._consultations: dict[Token, trio.CancelScope] = {}
        self._watched = WatchedOperations()
        self._postponed: deque[Event] = deque()
        self._is_feeding = False
        self._is_ended = False
        """Closed, or broken down: nothing more is submitted."""
        self._defect: BaseException | None = None
        self._execute: Mapping[type[Action], Callable[[Any], None]] = self._handlers()

    def _handlers(self) -> Mapping[type[Action], Callable[[Any], None]]:
        """Return what carries out each action; the most frequent one has none, see ``_handle``."""
        log, calls = self._log, self._calls
        return {
            LookUpService: self._look_up_service,
            OpenStream: self._open_stream,
            SendBytes: self._send_bytes,
            CloseStream: self._close_stream,
            PauseReading: self._pause_reading,
            ResumeReading: self._resume_reading,
            RowsReceived: self._rows_received,
            CompleteRequest: self._complete_request,
            FailOperation: self._fail_operation,
            ConsultStrategy: self._consult_strategy,
            AcquirePermit: self._acquire_permit,
            RecordSuccess: self._record_success,
            ReportStrategyError: self._report_strategy_error,
            ReportRetry: self._report_retry,
            ReportRefusal: self._report_refusal,
            ReportDispatch: calls.dispatched,
            ReportAnswer: calls.answered,
            ReportEnd: calls.ended,
            ReportConnection: log.connection,
            ReportDecoderFault: log.decoder_fault,
            ReportTelemetry: log.telemetry,
            PublishTopology: self.subscriptions.publish,
        }

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Work until ``close``, and then until strategies have recorded their successes.

        The caller's cancel scopes do not reach in here before ``close``.

        Raises:
            BaseExceptionGroup: a background task crashed, which is a defect.
        """
        self._run, self._thread = TrioRun(), get_ident()
        self.current_time = trio.lowlevel.current_clock().current_time
        try:
            with self._recording:
                async with trio.open_nursery() as self._recorders:
                    await self._work()
        except BaseException as error:
            self._is_ended, self._defect = True, error
            raise
        finally:
            self.close()

    async def _work(self) -> None:
        with self._scope:
            async with trio.open_nursery() as self._nursery:
                self._feed(TimePassed())
                self.started.set()
                self._nursery.start_soon(self._submit_together)
                await self._keep_time()

    def check_caller(self) -> None:
        """Refuse callers from another trio run.

        Raises:
            RuntimeError: it is another one, such as that of another thread.
        """
        self._run.check_caller()

    @trio.lowlevel.enable_ki_protection
    def close(self) -> None:
        """End all connections and background tasks at once; calls that still wait raise ``trio.ClosedResourceError``.

        Only strategies that are recording a success go on, until the scopes around ``run`` are cancelled.
        """
        # Token strategies get back their tokens. The collector does not look into requests in flight, which would keep
        # their strategies, and with these the client, alive.
        for token in tuple(self._waiters):
            self._feed(OperationAbandoned(token))
        for report in self._machine.last_reports(self.current_time()):
            self._log.telemetry(report)
        self._is_ended = True
        self._scope.cancel()
        self._recording.shield = False
        self._settle_all()
        # Of rows that are being read, and that nobody waits for just now.
        self._calls.end_all(self._ending("its rows were not read to the end"))
        self.subscriptions.close()

    @trio.lowlevel.enable_ki_protection
    async def perform(
        self,
        returns: type[R],
        make: Callable[P, Operation | Inquiry | ServiceRequest],
        strategy: AnyRetryStrategy | None,
        parent: RequestSpan | SharedCall | None,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Submit the operation, inquiry, or request without rows that ``make`` returns, and return its result.

        Where nobody else waits it is sent at once, otherwise with what others ask for in the same pass of trio's loop.
        Always a checkpoint; if ``make`` raises or the operation settles while it is submitted, it cannot be cancelled.

        Args:
            make: builds the operation out of ``args`` and ``kwargs``; a pending cancellation may be noticed only later.
            strategy: the call's own; None for that of the block, or the cluster. No matter for an inquiry.
            parent: the span that the call's is a part of, or its shared call; None for what the tracer takes for it.

        Raises:
            trio.ClosedResourceError: the cluster is closed, or was closed meanwhile.
            InternalError: a background task crashed.
            CouchbaseException: what the machine decided.
            RuntimeError: it is called in another trio run; that is no checkpoint.
            Exception: whatever ``make`` raised, or that ``parent`` is no span; nothing was sent.

        Cancellation: one that is pending sends nothing. Later, the operation is abandoned; a write may have been applied.
        """
        if get_ident() != self._thread:
            self._run.check_caller()
        is_alone = not self._waiters
        if is_alone:  # Beside others it is submitted when the task is parked, and so known not to be cancelled.
            await trio.lowlevel.checkpoint_if_cancelled()
        token = next(self._tokens)
        make = make if self.telemetry is None and parent is None else self._calls.told(token, parent, make)
        try:
            operation = make(*args, **kwargs)
            if self._is_ended:
                self._run.check_caller()
                raise self._ending(f"{operation.name} was not sent")
        except Exception as error:
            self._calls.end(token, error)
            await trio.lowlevel.cancel_shielded_checkpoint()
            raise
        del make, args, kwargs  # Ten thousand tasks that wait need not keep them.
        waiter = Waiter(token, operation, trio.lowlevel.current_task(), self._give_up)
        if not isinstance(operation, Operation):
            await self._submit_asked(waiter, operation, strategy)
        else:
            self._waiters[token] = waiter
            strategy = strategy if strategy is not None else block_strategy.get()
            is_part = parent is not None and isinstance(parent, SharedCall)
            submission = OperationSubmitted(token, operation, strategy, block_values.get(), self._traces, is_part)
            if is_alone:
                self._feed(submission)
            else:
                self._submissions[token] = submission
                if self._submitter is not None:
                    trio.lowlevel.reschedule(self._submitter)
                    self._submitter = None
            del submission  # While the task waits, only the machine needs it.
        del operation  # A traceback may keep this frame, and the collector skips operations.
        if token in self._waiters:
            waiter.is_parked = True
            result = await trio.lowlevel.wait_task_rescheduled(waiter.abort)
        else:
            await trio.lowlevel.cancel_shielded_checkpoint()
            result = waiter.unwrap()
        assert isinstance(result, returns), f"{waiter.operation.name} returned {result!r}"
        return result

    @trio.lowlevel.enable_ki_protection
    async def open_rows(
        self, request: ServiceRequest, strategy: AnyRetryStrategy | None, parent: RequestSpan | None
    ) -> OpenRows:
        """Submit a request with rows; return them when the first have come, or the end.

        Its span lasts until the answer is whole, or the rows are closed.

        Raises:
            trio.ClosedResourceError: the cluster is closed, or was closed meanwhile.
            InternalError: a background task crashed.
            CouchbaseException: what the machine decided.
            RuntimeError: it is called in another trio run; that is no checkpoint.

        Cancellation: the request is abandoned; one that is not read-only may have been applied.
        """
        rows = OpenRows(next(self._tokens), request)
        if self.telemetry is not None:
            self.check_caller()
            self._calls.told(rows.token, parent, lambda: request)()
        await self._take_rows(rows, self._submission(rows.token, request, strategy))
        return rows

    @trio.lowlevel.enable_ki_protection
    async def more_rows(self, rows: OpenRows) -> None:
        """Wait until ``rows`` have more, or their end.

        What it raises is that of ``open_rows``; after that, or after being cancelled, the request is over.
        """
        await self._take_rows(rows, RowsWanted(rows.token))

    @trio.lowlevel.enable_ki_protection
    def close_rows(self, rows: OpenRows, fault: DecoderFault | None = None) -> None:
        """Abandon a request whose rows are no longer needed. Harmless if it has ended.

        Args:
            fault: the defect if the decoder of the rows failed.
        """
        if not rows.is_over:
            rows.is_over = True
            self._abandon_rows(rows, leave_reason(), fault)

    async def _take_rows(self, rows: OpenRows, event: Event) -> None:
        self.check_caller()
        token, is_over, rows.is_over = rows.token, rows.is_over, True
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            if self._is_ended:
                raise self._ending(f"{rows.request.name} got no answer")
        except trio.Cancelled:
            reason = abandon_reason(trio.lowlevel.current_task())
            if is_over:
                self._calls.abandon(token, reason)
            else:
                self._abandon_rows(rows, reason)
            raise
        except BaseException as error:
            self._calls.end(token, error)
            if not is_over:
                self._feed(OperationAbandoned(token))
            raise
        waiter = self._waiters[token] = Waiter(token, rows.request, trio.lowlevel.current_task(), self._give_up)
        self._feed(event)
        if token in self._waiters:
            waiter.is_parked = True
            result = await trio.lowlevel.wait_task_rescheduled(waiter.abort)
        else:
            await trio.lowlevel.cancel_shielded_checkpoint()
            result = waiter.unwrap()
        if isinstance(result, RowsReceived):
            rows.rows, rows.is_over = result.rows, False
        else:
            rows.rows, rows.result = (), result

    def _abandon_rows(self, rows: OpenRows, reason: AbandonReason, fault: DecoderFault | None = None) -> None:
        """Abandon a request of which rows have arrived, and nothing waits for more."""
        if reason is AbandonReason.NOT_NEEDED:
            self._calls.end(rows.token, None)
        else:
            abandoned = self._last_words(rows.token, rows.request, None)
            self._note_abandoned(abandoned, reports_of(trio.lowlevel.current_task()))
            self._calls.abandon(rows.token, reason, is_ambiguous=abandoned.ambiguous)
        self._feed(OperationAbandoned(rows.token, fault, reason))

    @trio.lowlevel.enable_ki_protection
    def set_authenticator(self, authenticator: Authenticator) -> None:
        """Have connections speak for ``authenticator`` from now on.

        Raises:
            InvalidArgumentException: it cannot follow the present one, or its files cannot be read.
            trio.ClosedResourceError: the cluster is closed.
            InternalError: a background task crashed.
            RuntimeError: it is called in another trio run, or in none.
        """
        self.check_caller()
        if self._is_ended:
            raise self._ending("the authenticator was not set")
        self._machine.check_authenticator(authenticator)
        show_certificate(self._connector, authenticator)
        self._log.authenticator(authenticator)
        self._feed(AuthenticatorChanged(authenticator, self.make_nonce()))

    @trio.lowlevel.enable_ki_protection
    def send_off(self, operation: Operation) -> None:
        """Have an operation sent, if its connection is ready, whose result nothing waits for.

        For tasks of ours, which run where this works.
        """
        token = next(self._tokens)
        self._feed(OperationSubmitted(token, operation))
        self._feed(OperationAbandoned(token, reason=AbandonReason.NOT_NEEDED))

    @trio.lowlevel.enable_ki_protection
    def call_ended(self, name: WrappingCall, seconds: float) -> None:
        """Report that a call of several operations has ended. For tasks of ours, as ``send_off``."""
        self._feed(CallEnded(name, seconds))

    @trio.lowlevel.enable_ki_protection
    def _subscribers_changed(self, count: int) -> None:
        self._feed(SubscribersChanged(count))

    def statistics(self) -> ClientStatistics:
        """Return the machine's snapshot."""
        return self._machine.statistics()

    def diagnostics(self, report_id: str) -> DiagnosticsResult:
        """Return the machine's report.

        Raises:
            RuntimeError: it is called in another trio run, which has another clock, or in none.
        """
        self.check_caller()
        return self._machine.diagnostics(report_id, trio.current_time())

    @trio.lowlevel.enable_ki_protection
    async def _submit_together(self) -> None:
        """Submit what all tasks of one pass of trio's loop have asked for."""
        while True:
            if not self._submissions:
                self._submitter = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._stop_submitting)
            submitted = OperationsSubmitted(tuple(self._submissions.values()))
            self._submissions.clear()
            self._feed(submitted)
            # They may be large, and the next ones may be long in coming.
            del submitted

    def _stop_submitting(self, _: object) -> trio.lowlevel.Abort:
        self._submitter = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _abandon(self, waiter: Waiter) -> trio.lowlevel.Abort:
        """Give up an operation whose task is being cancelled. Trio calls this, so it must not raise."""
        token = waiter.token
        del self._waiters[token]
        # Given up before it was submitted, it was never sent.
        self._submissions.pop(token, None)
        reason, reports, is_ambiguous = abandon_reason(waiter.task), reports_of(waiter.task), False
        if reports and reason is not AbandonReason.NOT_NEEDED:
            abandoned = self._last_words(token, waiter.operation, waiter.key)
            is_ambiguous = abandoned.ambiguous
            self._note_abandoned(abandoned, reports)
        self._call_off_consultation(token)
        self._watched.forget(token)
        self._calls.abandon(token, reason, is_ambiguous=is_ambiguous)
        self._feed(OperationAbandoned(token, reason=reason))
        waiter.release()
        return trio.lowlevel.Abort.SUCCEEDED

    def _note_abandoned(self, abandoned: AbandonedOperation, reports: Iterable[Report]) -> None:
        """Add an abandoned operation to the reports of open blocks."""
        for report in reports:
            report.add(abandoned)
            report.redact |= self._log.redact

    def _last_words(
        self, token: Token, operation: Operation | Inquiry | ServiceRequest, key: str | None
    ) -> AbandonedOperation:
        """Return what the machine knows of an operation that is about to be abandoned. Never raises."""
        name = operation.name
        try:
            # While the machine is at work it may be about to send the operation, whatever it knows of it now.
            ambiguous = self._machine.is_ambiguous(token) or (self._is_feeding and not operation.idempotent)
            context = self._machine.error_context(token, trio.current_time())
        except BaseException as error:
            self._break_down(error)
            return AbandonedOperation(name, key, ambiguous=True)
        return AbandonedOperation(name, key, ambiguous, context or ErrorContext(operation=name, key=key))

    async def _submit_asked(
        self, waiter: Waiter, asked: Inquiry | ServiceRequest, strategy: AnyRetryStrategy | None
    ) -> None:
        """Submit an inquiry or a request, unless a cancellation is pending."""
        token = waiter.token
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
        except trio.Cancelled:
            self._calls.abandon(token, abandon_reason(trio.lowlevel.current_task()))
            raise
        self._waiters[token] = waiter
        self._feed(self._submission(token, asked, strategy))

    def _submission(
        self, token: Token, asked: Inquiry | ServiceRequest, strategy: AnyRetryStrategy | None
    ) -> InquirySubmitted | RequestSubmitted:
        if isinstance(asked, Inquiry):
            return InquirySubmitted(token, asked, self._traces)
        strategy = strategy if strategy is not None else block_strategy.get()
        encoding = self._calls.encoding(token) if self._traces or self.measures_encoding else None
        return RequestSubmitted(token, asked, strategy, block_values.get(), self.telemetry is not None, encoding)

    # -- Events in, actions out.

    def _feed(self, event: Event) -> None:
        """Let the machine handle ``event`` and carry out what it orders. Never raises."""
        if self._is_feeding:
            # A retry strategy that cancels a scope makes Trio abandon that scope's operations on the spot, while the
            # machine is asking the strategy; and the machine is not re-entrant.
            self._postponed.append(event)
            return
        if self._is_ended:
            return
        self._is_feeding = True
        try:
            self._handle(event)
            while self._postponed:
                self._handle(self._postponed.popleft())
        except BaseException as error:
            self._break_down(error)
        finally:
            self._is_feeding = False

    def _handle(self, event: Event) -> None:
        try:
            actions = self._machine.handle(event, self.current_time())
        except CouchbaseException as error:
            # The machine lets nothing but a caller's mistake out like this, and has changed nothing.
            if isinstance(event, OperationsSubmitted):
                # One mistake of many: each of them alone.
                for submission in event.submissions:
                    self._handle(submission)
            elif isinstance(event, OperationSubmitted | RequestSubmitted | InquirySubmitted):
                self._settle(event.token, None, error)
            else:
                raise
            return
        for action in actions:
            if type(action) is CompleteOperation:
                # By far the most frequent.
                self._settle(action.token, action.result, None)
            else:
                self._execute[type(action)](action)
        wakeup = self._machine.wakeup
        if wakeup < self._alarm_time:
            self._alarm_time = wakeup
            self._alarm.deadline = wakeup

    async def _keep_time(self) -> None:
        """Tell the machine the time whenever its ``wakeup`` has come; one that moved away makes a harmless extra call."""
        while True:
            self._alarm_time = self._machine.wakeup
            with trio.CancelScope(deadline=self._alarm_time) as self._alarm:
                await trio.sleep_forever()
            unread = await self._read_what_came()
            self._feed(TimePassed(self._unsent(), unread))

    async def _read_what_came(self) -> Collection[StreamId]:
        """Read what arrived before the alarm, and return the streams that may have more of it.

        The work on the bytes is bounded, because a node that never stops sending must not delay the time limits.
        """
        self._newest_at_alarm = next(reversed(self._waiters), _NO_TOKEN)
        work_max = self._machine.work + WORK_BEFORE_TIME_MAX
        before = {*self._streams}
        while True:
            self._unread.clear()
            # Trio runs the tasks of one pass in any order: in two passes, each reader had a turn between ours.
            await trio.lowlevel.checkpoint()
            if self._machine.work < work_max:
                await trio.lowlevel.checkpoint()
                before = set()
            unread = self._unread | self._pace.held
            if not unread or self._machine.work >= work_max:
                break
            before = unread
        self._newest_at_alarm = None
        return frozenset(unread | before)

    def _hear(self, event: Event) -> None:
        """Feed what a stream reports; of bytes, note whether more may follow that came before the alarm.

        It may after an answer to an operation that was submitted before, and after a piece that answered none, such as a
        part of an answer: records of TLS may be small. What answers younger operations alone came later: a client that is
        always busy would never see the end of that.
        """
        waiting, old = len(self._waiters), self._old_settled
        self._feed(event)
        if self._machine.work >= self._pace.limit:
            self._pace.note(self._machine.work)
        if self._newest_at_alarm is None or not isinstance(event, BytesReceived):
            return
        if old != self._old_settled or waiting == len(self._waiters):
            self._unread.add(event.stream)

    def _unsent(self) -> Mapping[StreamId, int]:
        """Return the streams with bytes that wait to be handed over, and how many were before them."""
        behind = ((stream, self._streams.get(stream)) for stream in self._sent_on)
        unsent = {stream: found.handed_over for stream, found in behind if found is not None and found.is_behind}
        self._sent_on = set(unsent)
        return unsent

    # -- What each action means.

    def _look_up_service(self, action: LookUpService) -> None:
        self._context.run(self._nursery.start_soon, self._look_up, action)

    @trio.lowlevel.enable_ki_protection
    async def _look_up(self, action: LookUpService) -> None:
        self._feed(await looked_up(action.service, self._resolver))

    def _open_stream(self, action: OpenStream) -> None:
        stream = Stream(action, connector=self._connector, feed=self._hear, make_nonce=self.make_nonce, pace=self._pace)
        self._streams[action.stream] = stream
        # Not in the context of the operation that happened to need it: the stream will serve others.
        self._context.run(self._nursery.start_soon, self._run_stream, action, stream)

    @trio.lowlevel.enable_ki_protection
    async def _run_stream(self, action: OpenStream, stream: Stream) -> None:
        try:
            await stream.run()
        finally:
            self._streams.pop(action.stream, None)

    def _send_bytes(self, action: SendBytes) -> None:
        stream = self._streams.get(action.stream)
        if stream is not None:
            stream.send(action.data, action.unless_readable)
            self._sent_on.add(action.stream)

    def _close_stream(self, action: CloseStream) -> None:
        stream = self._streams.pop(action.stream, None)
        # None: its task has crashed, which ends the client.
        if stream is not None:
            handed_over = stream.close()
            self._feed(StreamLost(action.stream, LossCause.CLOSED_BY_US, handed_over=handed_over))

    def _pause_reading(self, action: PauseReading) -> None:
        stream = self._streams.get(action.stream)
        if stream is not None:
            stream.pause_reading()

    def _resume_reading(self, action: ResumeReading) -> None:
        stream = self._streams.get(action.stream)
        if stream is not None:
            stream.resume_reading()

    def _rows_received(self, action: RowsReceived) -> None:
        self._settle(action.token, action, None)

    def _complete_request(self, action: CompleteRequest) -> None:
        self._settle(action.token, action.result, None)

    def _fail_operation(self, action: FailOperation) -> None:
        if isinstance(action.error, TimeoutException):
            self._log_of(action.token, self._log.timeout, action.error)
        self._settle(action.token, None, action.error)

    def _settle(
        self, token: Token, result: Result | ServiceResult | RowsReceived | None, error: Exception | None
    ) -> None:
        if self._consultations:
            self._call_off_consultation(token)
        if self._calls.open and type(result) is not RowsReceived:
            self._calls.end(token, error)
        waiter = self._waiters.pop(token, None)
        # None: the task was cancelled while this very event was handled, and the news of that is still postponed.
        if waiter is not None:
            if self._newest_at_alarm is not None:
                self._old_settled += token <= self._newest_at_alarm
            waiter.result, waiter.error = result, error
            if self._watched.open:
                self._watched.settled(waiter, error)
            if waiter.is_parked:
                trio.lowlevel.reschedule(waiter.task, waiter)  # type: ignore[arg-type]  # it has what trio asks for

    def _report_retry(self, action: ReportRetry) -> None:
        if self._log.writes(action):
            self._log_of(action.token, self._log.retry, action)
        self._calls.retried(action)
        self._watched.retried(action, self._waiters.get(action.token))

    def _report_refusal(self, action: ReportRefusal) -> None:
        if self._log.writes(action):
            self._log_of(action.token, self._log.refusal, action)
        self._calls.refused(action)
        self._watched.refused(action, self._waiters.get(action.token))

    def _report_strategy_error(self, action: ReportStrategyError) -> None:
        self._log_of(action.token, self._log.strategy_error, action)

    def _log_of(self, token: Token, write: Callable[[T], None], report: T) -> None:
        """Write a log record in the context of the task that waits for an operation, and in the span of its call."""
        waiter = self._waiters.get(token)
        # The copy can be entered even if another task of the same context runs now.
        context = waiter.task.context.copy() if waiter is not None and waiter.is_parked else copy_context()
        context.run(self._calls.in_span, token, write, report)

    def _consult_strategy(self, action: ConsultStrategy[Q, S]) -> None:
        self._ask(action.token, lambda: action.strategy.retry_after(action.request, action.reason))

    def _acquire_permit(self, action: AcquirePermit) -> None:
        self._ask(action.token, action.permit.acquire)

    def _ask(self, token: Token, strategy: Callable[[], Awaitable[object]]) -> None:
        waiter = self._waiters.get(token)
        if waiter is None:
            return
        scope = self._consultations[token] = trio.CancelScope()
        # In the context of the task that asked, so that the strategy sees that task's variables.
        context = waiter.task.context if waiter.is_parked else copy_context()
        context.run(self._nursery.start_soon, self._consult, token, strategy, scope)

    @trio.lowlevel.enable_ki_protection
    async def _consult(self, token: Token, strategy: Callable[[], Awaitable[object]], scope: trio.CancelScope) -> None:
        with scope:
            answer, raised = await _answer_of(strategy)
        if not scope.cancelled_caught:
            self._feed(StrategyDecided(token, answer, raised))

    def _record_success(self, action: RecordSuccess) -> None:
        waiter = self._waiters.get(action.token)
        context = waiter.task.context if waiter is not None and waiter.is_parked else copy_context()
        context.run(self._recorders.start_soon, self._record, action)

    @trio.lowlevel.enable_ki_protection
    async def _record(self, action: RecordSuccess) -> None:
        _, raised = await _answer_of(action.permit.record)
        if raised is not None:
            self._log.strategy_error(ReportStrategyError(action.token, raised))

    def _call_off_consultation(self, token: Token) -> None:
        scope = self._consultations.pop(token, None)
        if scope is not None:
            scope.cancel()

    # -- Endings.

    def _break_down(self, error: BaseException) -> None:
        """Note a defect: fail what waits, and let the nursery raise it. Never raises."""
        self._is_ended, self._defect = True, error
        self._settle_all()
        self._nursery.start_soon(_raise, error)

    def _settle_all(self) -> None:
        for token, waiter in list(self._waiters.items()):
            so = "was not sent" if token in self._submissions else "got no answer"
            self._settle(token, None, self._ending(f"{waiter.operation.name} {so}"))

    def _ending(self, so: str) -> InternalError | trio.ClosedResourceError:
        """Return what a caller gets when the client has ended; ``so`` says what became of the call."""
        if not isinstance(self._defect, Exception):
            # Closed, or on the way out with the whole program, as when a strategy raised SystemExit.
            return trio.ClosedResourceError(f"the cluster is closed, and {so}; use it inside its block only")
        error = InternalError(f"a background task crashed ({self._defect!r}); please report this")
        error.__cause__ = self._defect
        return error


async def _answer_of(strategy: Callable[[], Awaitable[R]]) -> tuple[R | None, Exception | None]:
    """Return what a strategy answered, or what it raised."""
    try:
        return await strategy(), None
    except Exception as error:
        return None, error
    except BaseExceptionGroup as group:
        # It was cancelled, and failed on top: nobody waits for its errors any more.
        _, rest = group.split(Exception)
        assert rest is not None, "a group of nothing but Exceptions is an Exception itself"
        raise rest from None


async def _raise(error: BaseException) -> None:
    raise error
