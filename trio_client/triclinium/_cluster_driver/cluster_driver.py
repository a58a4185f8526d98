"""Driver of the client machine: passes each call of a user to the machine and returns its result.

A call waits until the machine completes or fails its operation, inquiry or request. The driver makes no decisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextvars import copy_context
from threading import get_ident
from typing import ClassVar, ParamSpec, TypeVar

import trio

from triclinium._cluster_driver.certificates import show_certificate
from triclinium._cluster_driver.log import Log
from triclinium._cluster_driver.open_rows import OpenRows
from triclinium._cluster_driver.resolver import DnsResolver, looked_up
from triclinium._cluster_driver.retry_reports import RetryReports
from triclinium._cluster_driver.subscriptions import Subscriptions
from triclinium._cluster_driver.watched_operations import WatchedOperations
from triclinium._context import block_strategy, block_values
from triclinium._deadlines import AbandonedOperation, Report, abandon_reason, leave_reason, reports_of
from triclinium._driver.machine_driver import MachineDriver
from triclinium._driver.streams import new_nonce
from triclinium._driver.waiters import CollectedWaiter, Collector, Waiter
from triclinium._tapes.tape import Recording
from triclinium._telemetry.calls import Calls
from triclinium._telemetry.telemetry import Telemetry
from triclinium._telemetry.wrapping import SharedCall
from triclinium.abc import Connector, Resolver
from triclinium_core.argument_error import ArgumentError
from triclinium_core.client.cluster_machine import ClusterMachine
from triclinium_core.client.health.statistics import ClientStatistics
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
from triclinium_core.contract.neutral import ReportStrategyError, Token
from triclinium_core.decoder_faults import DecoderFault
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import InternalError, InvalidArgumentException, TimeoutException
from triclinium_core.kv.operation.document_operations import DocumentOperation, Operation
from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.kv.operation.reports import DiagnosticsResult
from triclinium_core.kv.operation.results import Result
from triclinium_core.options import Authenticator
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.service_request import ServiceRequest, ServiceResult
from triclinium_core.telemetry.span_names import WrappingCall
from triclinium_core.telemetry.tracing import RequestSpan

R = TypeVar("R")
P = ParamSpec("P")

Asked = Operation | Inquiry | ServiceRequest
"""Everything that a user can submit to the machine."""
Outcome = Result | ServiceResult | RowsReceived
"""Every result with which the driver can resume a task, except errors."""


class ClusterDriver(MachineDriver[Event, Action, Asked, Outcome]):
    """Driver of one client.

    Args:
        machine: makes all decisions.
        connector: opens streams to nodes.
        log: receives the machine's reports.
        telemetry: the user's tracer and meter; None without them.
        measures_encoding: whether to measure the encoding times of payloads for the machine even without a tracer.
        resolver: looks up the names of clusters; DNS if None.
        make_nonce: returns a nonce, for example for SCRAM; called for each stream, new authenticator and scan.
        recording: recording of the client; None without a tape.
    """

    _NAME = "cluster"
    _CRASH: ClassVar[type[Exception]] = InternalError

    def __init__(
        self,
        machine: ClusterMachine,
        *,
        connector: Connector,
        log: Log,
        telemetry: Telemetry | None = None,
        measures_encoding: bool = False,
        resolver: Resolver | None = None,
        make_nonce: Callable[[], str] = new_nonce,
        call_timeout: float = math.inf,
        recording: Recording | None = None,
    ) -> None:
        self.call_timeout: float = call_timeout
        """Time limit in seconds of a call that makes several operations or requests. The call applies the limit."""
        self.redacts: bool = log.redact
        """Whether the log marks user data."""
        self.subscriptions: Subscriptions = Subscriptions(
            lambda: machine.topologies, self.check_caller, self._subscribers_changed
        )
        self.vbucket_count: Callable[[str | None], int] = machine.vbucket_count
        self.replica_count: Callable[[str | None], int | None] = machine.replica_count
        self.telemetry: Telemetry | None = telemetry
        self.measures_encoding: bool = measures_encoding
        self._tape_recording = recording
        self._cluster_machine = machine
        self._connector = connector
        self._log = log
        self._resolver: Resolver = resolver if resolver is not None else DnsResolver()
        self._traces = telemetry is not None and telemetry.traces
        self._context = copy_context()
        self._calls = calls = Calls(telemetry)
        self._watched = watched = WatchedOperations()
        self._submissions: dict[Token, OperationSubmitted] = {}
        """Operations that wait for the submitter, which feeds all of them together."""
        self._submitter: trio.lowlevel.Task | None = None
        """Task that feeds the submissions to the machine; None unless the task is asleep."""
        super().__init__(machine, connector=connector, log=log, make_nonce=make_nonce)
        reports = RetryReports(log, self._waiters, calls, watched)
        self._reports = reports
        self._handlers |= {
            LookUpService: self._look_up_service,
            RowsReceived: self._rows_received,
            CompleteOperation: self._complete,
            CompleteRequest: self._complete,
            FailOperation: self._fail,
            ReportStrategyError: reports.strategy_error,
            ReportRetry: reports.retry,
            ReportRefusal: reports.refusal,
            ReportDispatch: calls.dispatched,
            ReportAnswer: calls.answered,
            ReportEnd: calls.ended,
            ReportTelemetry: log.telemetry,
            PublishTopology: self.subscriptions.publish,
        }

    def _start(self) -> None:
        self._nursery.start_soon(self._submit_together)
        if self._tape_recording is not None:
            self._tape_recording.start(self._nursery)
        super()._start()

    @trio.lowlevel.enable_ki_protection
    def close(self) -> None:
        """End all connections and background tasks immediately; pending calls raise ``trio.ClosedResourceError``.

        After a crash, they raise ``InternalError``. Only two things continue: strategies that are recording a success,
        until the scopes around ``run`` are cancelled, and for a few seconds the writing of a decision tape.
        """
        super().close()
        # Also end the calls of requests whose readers are not waiting for rows at this moment.
        self._calls.end_all(self._ending("its rows were not read to the end"))
        self.subscriptions.close()
        if self._tape_recording is not None:
            self._tape_recording.close()

    def _finish(self) -> None:
        # Abandon all submissions: they keep strategies and the client alive, and the garbage collector skips them.
        for token in tuple(self._waiters.open):
            self.feed(OperationAbandoned(token))
        for report in self._cluster_machine.last_reports(trio.current_time()):
            self._log.telemetry(report)

    @trio.lowlevel.enable_ki_protection
    async def perform(
        self,
        returns: type[R],
        make: Callable[P, Asked],
        strategy: AnyRetryStrategy | None,
        parent: RequestSpan | SharedCall | None,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Submit the operation, inquiry, or request without rows that ``make`` returns, and return its result.

        If other tasks wait, the operations of one pass of trio's loop are submitted together; otherwise, immediately.
        A checkpoint, unless noted below. It is shielded if ``make`` raises or if nothing is left to wait for.

        Args:
            make: builds the operation. If other tasks wait, it is called even when a cancellation is pending.
            strategy: strategy of the call; None for that of the block or the cluster. Ignored for an inquiry.
            parent: parent span of the call, or its shared call; None for the tracer's choice.

        Raises:
            trio.ClosedResourceError: the cluster is closed, or was closed meanwhile.
            InternalError: a background task crashed.
            CouchbaseException: the operation failed; the machine chooses the exception.
            RuntimeError: the caller is in another trio run; then the call is not a checkpoint.
            Exception: ``make`` raised it, or ``parent`` is not a span; nothing was sent.

        Cancellation: a pending one prevents the submission. After a later one, the operation may have been applied.
        """
        if get_ident() != self._thread:
            self.check_caller()
        is_alone = not self._waiters.open
        if is_alone:  # Otherwise, a cancelled operation is removed from the queue, and _submit_asked has this check.
            await trio.lowlevel.checkpoint_if_cancelled()
        token = next(self._tokens)
        make = make if self.telemetry is None and parent is None else self._calls.observed(token, parent, make)
        try:
            operation = make(*args, **kwargs)
            if self._is_ended:
                self.check_caller()
                raise self._ending(f"{operation.name} was not sent")
        except Exception as error:
            self._calls.end(token, error)
            await trio.lowlevel.cancel_shielded_checkpoint()
            raise
        del make, args, kwargs  # Otherwise each of many waiting tasks would keep these objects alive.
        waiter = Waiter(token, operation, trio.lowlevel.current_task(), self)
        if not isinstance(operation, Operation):
            await self._submit_asked(waiter, operation, strategy)
        else:
            self._waiters.open[token] = waiter
            strategy = strategy if strategy is not None else block_strategy.get()
            is_part = parent is not None and isinstance(parent, SharedCall)
            submission = OperationSubmitted(token, operation, strategy, block_values.get(), self._traces, is_part)
            if is_alone:
                self.feed(submission)
            else:
                self._submissions[token] = submission
                if self._submitter is not None:
                    trio.lowlevel.reschedule(self._submitter)
                    self._submitter = None
            del submission  # The waiting frame would keep the submission alive, even after the machine has dropped it.
        del operation  # A traceback may keep this frame alive, and the garbage collector skips operations.
        if token in self._waiters.open:
            waiter.is_parked = True
            result = await trio.lowlevel.wait_task_rescheduled(waiter.abort)
        else:
            await trio.lowlevel.cancel_shielded_checkpoint()
            result = waiter.unwrap()
        assert isinstance(result, returns), f"{waiter.asked.name} returned {result!r}"
        return result

    @trio.lowlevel.enable_ki_protection
    def submit(
        self,
        make: Callable[..., DocumentOperation],
        items: Iterable[tuple[object, ...]],
        collector: Collector[DocumentOperation, Outcome],
        *,
        strategy: AnyRetryStrategy | None,
        parent: RequestSpan | None,
        task: trio.lowlevel.Task,
    ) -> None:
        """Submit the operations that ``make`` returns for ``items``, all together.

        Args:
            make: builds an operation from the values of an item. The collector gets each ``Exception`` that it raises.
            collector: gets the outcome of each operation, unless it is abandoned with ``abandon_collected``.
            strategy: strategy of the operations; None for the cluster's.
            parent: parent span of each operation; None for the tracer's choice.
            task: task whose blocks report an operation that is abandoned.

        Raises:
            BaseException: the iterator raised it, or ``make`` raised it and it is not an ``Exception``. The operations
                of earlier items are submitted.
        """
        is_observed = self.telemetry is not None or parent is not None
        build = make if not self._is_ended else self._not_sent(make)
        values, traces, waiters, in_flight = block_values.get(), self._traces, self._waiters.open, collector.open
        submissions: list[OperationSubmitted] = []
        try:
            for item, token in zip(items, self._tokens, strict=False):
                try:
                    operation = (self._calls.observed(token, parent, build) if is_observed else build)(*item)
                except Exception as error:
                    self._calls.end(token, error)
                    # The traceback refers to this frame, and this frame to the collector: they would form a cycle.
                    collector.refuse(item, error.with_traceback(None))
                    continue
                waiter = CollectedWaiter(token, operation, task, self, False, None, None, collector)  # type: ignore[misc]  # generic
                waiters[token] = in_flight[operation.key] = waiter
                submissions.append(OperationSubmitted(token, operation, strategy, values, traces))
        finally:  # Also after an exception: the earlier items wait for their outcomes.
            if submissions:
                self.feed(OperationsSubmitted(tuple(submissions)))

    def _not_sent(self, make: Callable[..., DocumentOperation]) -> Callable[..., DocumentOperation]:
        """Return a function that raises the error of an ended client, or that of ``make``."""

        def refuse(*item: object) -> DocumentOperation:
            raise self._ending(f"{make(*item).name} was not sent")

        return refuse

    @trio.lowlevel.enable_ki_protection
    def abandon_collected(self, waiter: CollectedWaiter[DocumentOperation, Outcome]) -> bool:
        """Abandon an open operation of ``submit``. Return whether it may have been or may still be applied."""
        is_ambiguous = self._may_apply(waiter.token, waiter.asked)
        self.abandon(waiter)  # type: ignore[arg-type]  # it reads what any submission has
        return is_ambiguous

    @trio.lowlevel.enable_ki_protection
    async def open_rows(
        self, request: ServiceRequest, strategy: AnyRetryStrategy | None, parent: RequestSpan | None
    ) -> OpenRows:
        """Submit a request with rows. Return its ``OpenRows`` when the first rows or the end have arrived.

        The span of the request lasts until the request ends, or the rows are closed.

        Raises:
            trio.ClosedResourceError: the cluster is closed, or was closed meanwhile.
            InternalError: a background task crashed.
            CouchbaseException: the request failed; the machine chooses the exception.
            RuntimeError: the caller is in another trio run; then the call is not a checkpoint.

        Cancellation: a pending one prevents the submission. A later one abandons the request, which may have been
        applied unless it is read-only.
        """
        rows = OpenRows(next(self._tokens), request)
        if self.telemetry is not None:
            self.check_caller()
            self._calls.observed(rows.token, parent, lambda: request)()
        await self._take_rows(rows, self._submission(rows.token, request, strategy))
        return rows

    @trio.lowlevel.enable_ki_protection
    async def more_rows(self, rows: OpenRows) -> None:
        """Wait for more of ``rows``, or for their end.

        The exceptions are those of ``open_rows``. After any but RuntimeError, and after a cancellation, the request has
        ended.
        """
        await self._take_rows(rows, RowsWanted(rows.token))

    @trio.lowlevel.enable_ki_protection
    def close_rows(self, rows: OpenRows, fault: DecoderFault | None = None) -> None:
        """Abandon a request whose rows are no longer needed. Has no effect if ``rows.is_over``.

        Args:
            fault: the defect if the decoder of the rows failed.
        """
        if not rows.is_over:
            rows.is_over = True
            self._abandon_rows(rows, leave_reason(), fault)

    async def _take_rows(self, rows: OpenRows, event: Event) -> None:
        if get_ident() != self._thread:
            self.check_caller()
        token, is_over, rows.is_over = rows.token, rows.is_over, True
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            if self._is_ended:
                self.check_caller()
                raise self._ending(f"{rows.request.name} did not complete")
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
                self.feed(OperationAbandoned(token))
            raise
        waiter = self._waiters.open[token] = Waiter(token, rows.request, trio.lowlevel.current_task(), self)
        self.feed(event)
        result = await self._outcome(waiter)
        if isinstance(result, RowsReceived):
            rows.rows, rows.is_over = result.rows, False
        else:
            rows.rows, rows.result = (), result

    def _abandon_rows(self, rows: OpenRows, reason: AbandonReason, fault: DecoderFault | None = None) -> None:
        """Abandon a request whose rows have begun to arrive, and for which no task waits."""
        if reason is AbandonReason.NOT_NEEDED:
            self._calls.end(rows.token, None)
        else:
            abandoned = self._last_words(rows.token, rows.request)
            self._note(abandoned, reports_of(trio.lowlevel.current_task()))
            self._calls.abandon(rows.token, reason, is_ambiguous=abandoned.ambiguous)
        self.feed(OperationAbandoned(rows.token, fault, reason))

    @trio.lowlevel.enable_ki_protection
    def set_authenticator(self, authenticator: Authenticator) -> None:
        """Replace the authenticator of all connections.

        Raises:
            InvalidArgumentException: ``authenticator`` cannot replace the current one, or its files cannot be read.
            trio.ClosedResourceError: the cluster is closed.
            InternalError: a background task crashed.
            RuntimeError: the caller is in another trio run, or in none.
        """
        self.check_caller()
        if self._is_ended:
            raise self._ending("the authenticator was not set")
        self._cluster_machine.check_authenticator(authenticator)
        show_certificate(self._connector, authenticator)
        self._log.authenticator(authenticator)
        self.feed(AuthenticatorChanged(authenticator, self.make_nonce()))

    @trio.lowlevel.enable_ki_protection
    def send_off(self, operation: Operation) -> None:
        """Send an operation if its connection is ready, without waiting for its result.

        Only the client's own tasks, which always run in the client's trio run, may call this method.
        """
        token = next(self._tokens)
        self.feed(OperationSubmitted(token, operation))
        self.feed(OperationAbandoned(token, reason=AbandonReason.NOT_NEEDED))

    @trio.lowlevel.enable_ki_protection
    def call_ended(self, name: WrappingCall, seconds: float) -> None:
        """Report that a call that makes several operations has ended. Only the client's own tasks may call this."""
        self.feed(CallEnded(name, seconds))

    @trio.lowlevel.enable_ki_protection
    def _subscribers_changed(self, count: int) -> None:
        self.feed(SubscribersChanged(count))

    def statistics(self) -> ClientStatistics:
        """Return the machine's snapshot of connections and counters."""
        return self._cluster_machine.statistics()

    def recording(self) -> Recording:
        """Return the recording of the client.

        Raises:
            InvalidArgumentException: the cluster was opened without a tape.
        """
        if self._tape_recording is None:
            raise InvalidArgumentException(
                "the cluster was opened without a tape; pass one to open_cluster, such as tape=DecisionTape.ring(), with "
                "pseudonyms=True for pseudonyms",
                parameter="tape",
            )
        return self._tape_recording

    def diagnostics(self, report_id: str) -> DiagnosticsResult:
        """Return the machine's report on the states of the connections.

        Raises:
            RuntimeError: the caller is outside of the cluster's trio run, whose clock the report needs.
        """
        self.check_caller()
        return self._cluster_machine.diagnostics(report_id, trio.current_time())

    @trio.lowlevel.enable_ki_protection
    async def _submit_together(self) -> None:
        """Submit together the operations that all tasks have queued in one pass of trio's loop."""
        while True:
            if not self._submissions:
                self._submitter = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._stop_submitting)
            submitted = OperationsSubmitted(tuple(self._submissions.values()))
            self._submissions.clear()
            self.feed(submitted)
            # Submissions may be large, and this frame would keep them alive until the next ones arrive.
            del submitted

    def _stop_submitting(self, _: object) -> trio.lowlevel.Abort:
        self._submitter = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _abandoned(self, waiter: Waiter[Asked, Outcome]) -> OperationAbandoned:
        token = waiter.token
        # An operation that is abandoned before its submission was never sent.
        self._submissions.pop(token, None)
        reason, reports, is_ambiguous = abandon_reason(waiter.task), reports_of(waiter.task), False
        if reports and reason is not AbandonReason.NOT_NEEDED:
            abandoned = self._last_words(token, waiter.asked)
            is_ambiguous = abandoned.ambiguous
            self._note(abandoned, reports)
        self._watched.forget(token)
        self._calls.abandon(token, reason, is_ambiguous=is_ambiguous)
        return OperationAbandoned(token, reason=reason)

    def _note(self, abandoned: AbandonedOperation, reports: Iterable[Report]) -> None:
        """Add an abandoned operation, and whether the log marks user data, to reports of open blocks."""
        for report in reports:
            report.add(abandoned)
            report.redact |= self._log.redact

    def _last_words(self, token: Token, asked: Asked) -> AbandonedOperation:
        """Return the ambiguity and the error context of an operation that is about to be abandoned. Never raise."""
        name, key = asked.name, asked.key if isinstance(asked, DocumentOperation) else None
        try:
            ambiguous = self._may_apply(token, asked)
            context = self._cluster_machine.error_context(token, trio.current_time())
        except BaseException as error:
            self._break_down(error)
            return AbandonedOperation(name, key, ambiguous=True)
        return AbandonedOperation(name, key, ambiguous, context or ErrorContext(operation=name, key=key))

    def _may_apply(self, token: Token, asked: Asked) -> bool:
        """Return whether an operation that is abandoned now may have been or may still be applied."""
        # While the machine handles an event, it may be about to send the operation, even if its state does not show it.
        return self._cluster_machine.is_ambiguous(token) or (self._is_feeding and not asked.idempotent)

    async def _submit_asked(
        self, waiter: Waiter[Asked, Outcome], asked: Inquiry | ServiceRequest, strategy: AnyRetryStrategy | None
    ) -> None:
        """Submit an inquiry or a request, unless a cancellation is pending."""
        token = waiter.token
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
        except trio.Cancelled:
            self._calls.abandon(token, abandon_reason(trio.lowlevel.current_task()))
            raise
        self._waiters.open[token] = waiter
        self.feed(self._submission(token, asked, strategy))

    def _submission(
        self, token: Token, asked: Inquiry | ServiceRequest, strategy: AnyRetryStrategy | None
    ) -> InquirySubmitted | RequestSubmitted:
        if isinstance(asked, Inquiry):
            return InquirySubmitted(token, asked, self._traces)
        strategy = strategy if strategy is not None else block_strategy.get()
        encoding = self._calls.encoding(token) if self._traces or self.measures_encoding else None
        return RequestSubmitted(token, asked, strategy, block_values.get(), self.telemetry is not None, encoding)

    def _refused(self, event: Event, error: ArgumentError) -> None:
        if isinstance(event, OperationsSubmitted):
            # The machine refused one of the submissions: feed each of them alone, before any later event.
            self._events.extendleft(reversed(event.submissions))
        elif isinstance(event, OperationSubmitted | RequestSubmitted | InquirySubmitted):
            self._settle(event.token, None, error)
        else:
            raise error

    # -- Actions.

    def _look_up_service(self, action: LookUpService) -> None:
        self._context.run(self._nursery.start_soon, self._look_up, action)

    @trio.lowlevel.enable_ki_protection
    async def _look_up(self, action: LookUpService) -> None:
        self.feed(await looked_up(action.service, self._resolver))

    def _complete(self, action: CompleteOperation | CompleteRequest) -> None:
        if self._calls.open or self._watched.open or self._consultations.open:
            self._settle(action.token, action.result, None)
        else:
            # ``_settle`` would cost a get two more function calls (``python -m tests.bench --only calls``).
            self._waiters.settle(action.token, action.result, None)

    def _rows_received(self, action: RowsReceived) -> None:
        self._settle(action.token, action, None)

    def _fail(self, action: FailOperation) -> None:
        if isinstance(action.error, TimeoutException):
            self._reports.timeout(action.token, action.error)
        if self._tape_recording is not None:
            self._tape_recording.failed(action.error)
        self._settle(action.token, None, action.error)

    def _settle(self, token: Token, result: Outcome | None, error: Exception | None) -> Waiter[Asked, Outcome] | None:
        if self._calls.open and type(result) is not RowsReceived:
            self._calls.end(token, error)
        waiter = super()._settle(token, result, error)
        # A hook may cancel the task, but the outcome of the task is already set.
        if waiter is not None and self._watched.open:
            self._watched.settled(waiter, error)
        return waiter

    # -- Endings.

    def _state_of(self, waiter: Waiter[Asked, Outcome]) -> str:
        state = "was not sent" if waiter.token in self._submissions else "got no response"
        return f"{waiter.asked.name} {state}"
