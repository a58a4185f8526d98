"""The life of operations: from submission through attempts and retries to settlement, each exactly once.

Every failure goes to the operation's retry machine; this module carries out what that one orders.

Source: SDK-RFC 0049 "Retry Orchestration"; decisions C6, C25, C29, C33, C37, C38, D34.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import assert_never, cast

from triclinium_core import decoder_faults
from triclinium_core.client.actions import (
    Action,
    CompleteOperation,
    ConsultStrategy,
    FailOperation,
    ReportAnswer,
    ReportRefusal,
    ReportRetry,
)
from triclinium_core.client.events import (
    AbandonReason,
    OperationSubmitted,
    StrategyDecided,
    StreamId,
    TimePassed,
    Token,
)
from triclinium_core.client.lent_tokens import Begins, FirstAttempt, LentTokens, NotBegun
from triclinium_core.client.timers import TimerKind, Timers
from triclinium_core.decoder_faults import Decoder, DecoderFault
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import CouchbaseException, DecodingFailureException
from triclinium_core.kv.connection.connection import Connection
from triclinium_core.kv.connection.connection_events import Answered
from triclinium_core.kv.connection.in_flight import AbandonedScan, Purpose, is_last
from triclinium_core.kv.connection.states import ConnectionState
from triclinium_core.kv.destinations import Destinations
from triclinium_core.kv.dispatcher import Dispatcher, Refused, Undispatched, load_of
from triclinium_core.kv.keyspaces import Keyspaces
from triclinium_core.kv.operation.codec import decode_response
from triclinium_core.kv.operation.codec_parts import MalformedResponse
from triclinium_core.kv.operation.failure import read_failure
from triclinium_core.kv.operation.measured import MeasuredOperation
from triclinium_core.kv.operation.operation import LiveOperation, timeout_of
from triclinium_core.kv.operation.results import ScanPage
from triclinium_core.kv.operation.scan.codec import encode_cancel
from triclinium_core.kv.operation.scan.requests import SCAN_ID_SIZE, RangeScanCreate
from triclinium_core.kv.pool.connection_texts import status_text
from triclinium_core.kv.pool.connections import Connections
from triclinium_core.kv.pool.keepalive import KeepAlive
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.framing_extras import server_duration
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.combined.request_tokens import AsyncRequestTokens, says_well, tokens_of
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.retry.couchbase import actions as orders, events as facts
from triclinium_core.retry.couchbase.circuit_breaker import BreakerEvent
from triclinium_core.retry.couchbase.failures import loaded, not_begun, subject
from triclinium_core.retry.couchbase.strategy import FailFastRetryStrategy
from triclinium_core.retry.couchbase.tables import kv_responses
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapStore
from triclinium_core.retry.couchbase.tables.kv_status import Status, status_name
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.terminal_states import TerminalStates
from triclinium_core.retry.kinds import COUCHBASE
from triclinium_core.telemetry.attributes import answer_attributes
from triclinium_core.telemetry.facts import MICROSECONDS
from triclinium_core.telemetry.gathering import Gathering
from triclinium_core.telemetry.span_names import SPAN_NAMES

_FAIL_FAST = FailFastRetryStrategy()
_KV = Service.KV
_SUCCESS = int(Status.SUCCESS)
"""A plain number: comparing a member of an enumeration takes far longer."""


class Operations:
    """All open operations of a client, by token."""

    def __init__(
        self,
        *,
        timeouts: TimeoutOptions,
        strategy: AnyRetryStrategy,
        connections: Connections,
        keyspaces: Keyspaces,
        keep_alive: KeepAlive,
        terminal_states: TerminalStates,
        error_maps: ErrorMapStore,
        destinations: Destinations,
        timers: Timers,
        rng: Random,
        gathering: Gathering,
        emit: Callable[[Action], None],
    ) -> None:
        self._timeouts = timeouts
        self._strategy = strategy
        self._lends_tokens = not hasattr(strategy, COUCHBASE)
        """Whether the client's own strategy hands out tokens."""
        self._connections = connections
        self._keyspaces = keyspaces
        self._keep_alive = keep_alive
        self._error_maps = error_maps
        self._timers = timers
        self._rng = rng
        self._emit = emit
        self._gathering = gathering
        self._slow_after = gathering.thresholds[Service.KV] if gathering.thresholds is not None else math.inf
        """Seconds from which on an operation is slow."""
        self._lent = LentTokens(emit=emit)
        self._dispatcher = Dispatcher(connections, keyspaces, keep_alive, terminal_states, destinations, emit=emit)
        self.open: dict[int, LiveOperation] = {}
        """In the order in which they were submitted, and so in that of their deadlines where these have no timers."""
        self.next_deadline: float = math.inf
        """No operation without a timer has an earlier deadline; it may be that of one that is settled."""
        self.retries_by_reason: Counter[RetryReason] = Counter()
        """Retries whose delay is over, including those of completed operations."""

    def is_ambiguous(self, token: int) -> bool:
        """Tell whether an operation, given up now, may still be applied or have been. False for unknown tokens."""
        operation = self.open.get(token)
        return operation is not None and operation.is_ambiguous

    def error_context(self, token: int, now: float) -> ErrorContext | None:
        """Return what is known of an operation that is given up now; None for unknown tokens."""
        operation = self.open.get(token)
        if operation is None:
            return None
        context = operation.abandoned_context(now)
        connection = self._dispatcher.waits_for(token)
        if connection is not None:
            reasons = context.retry_reasons
            if not connection.is_unsupported:
                reasons |= {str(self._dispatcher.reason_of_waiting(operation, connection))}
            obstacle = _obstacle(operation, connection)
            context = replace(context, retry_reasons=reasons, last_dispatch_error=obstacle)
        else:
            connection = self._connections.streams.connection(operation.stream)
        return loaded(context, load_of(connection)) if connection is not None else context

    def submit(self, submissions: Iterable[OperationSubmitted], now: float) -> None:
        """Begin operations: the first dispatch of each, and its deadline."""
        timeouts, usual_deadline, dispatch = self._timeouts, now + self._timeouts.kv, self._dispatcher.dispatch
        for submission in submissions:
            token, request, strategy = submission.token, submission.operation, submission.retry_strategy
            # Decision T8: a strategy that has both shapes counts as Couchbase's.
            lends_tokens = self._lends_tokens if strategy is None else not hasattr(strategy, COUCHBASE)
            if strategy is None:
                strategy = self._strategy
            deadline = now + timeout_of(request, timeouts)
            operation = LiveOperation(
                token, request, strategy, submission.client_context, submission.is_traced, now, deadline
            )
            if submission.is_part:
                operation.is_part = True
            self.open[token] = operation
            if deadline != usual_deadline:
                kind = TimerKind.OPERATION_DEADLINE
                operation.deadline_timer = self._timers.schedule(deadline, kind, operation)
            elif deadline < self.next_deadline:
                self.next_deadline = deadline
            if lends_tokens:
                if request.is_awaited:
                    self._acquire_token(operation, strategy, now)
                    continue
                # No token is lent for what is sent at once and abandoned at once: nobody could bring it back.
                operation.strategy = _FAIL_FAST
            undispatched = dispatch(operation, now)
            if undispatched is not None:
                self._fail_dispatch(operation, undispatched, now)

    def _acquire_token(self, operation: LiveOperation, strategy: AnyRetryStrategy, now: float) -> None:
        """Ask a token strategy for the first attempt of an operation."""
        tokens = operation.strategy = operation.tokens = tokens_of(strategy)
        first = self._lent.acquire(Token(operation.token), tokens, operation.deadline - now)
        self._begin(operation, first, now)

    def _begin(self, operation: LiveOperation, first: FirstAttempt, now: float) -> None:
        """Dispatch an operation for the first time when its token strategy lets it."""
        match first:
            case Begins(0.0):
                self._dispatch(operation, now)
            case Begins(delay):
                operation.retry_timer = self._timers.schedule(now + delay, TimerKind.RETRY, operation)
            case NotBegun(cause):
                self._fail(operation, not_begun(operation.error_context(), cause), now)
            case None:
                # The strategy will be heard, or the deadline is what is waited for.
                pass

    def _dispatch(self, operation: LiveOperation, now: float, *, turn_at: Connection | None = None) -> None:
        undispatched = self._dispatcher.dispatch(operation, now, turn_at=turn_at)
        if undispatched is not None:
            self._fail_dispatch(operation, undispatched, now)
        elif operation.tokens is not None and operation.opaque is not None:
            operation.tokens.begin()

    def _fail_dispatch(self, operation: LiveOperation, undispatched: Undispatched, now: float) -> None:
        """Retry or fail an operation that could not be dispatched."""
        if isinstance(undispatched, Refused):
            self._fail_for_good(operation, undispatched.error, undispatched.text, now)
        else:
            self._feed(operation, undispatched, now)

    def use(self, bucket: str) -> bool:
        """Return whether an open operation concerns a bucket."""
        return any(operation.request.keyspace.bucket == bucket for operation in self.open.values())

    def abandon(self, token: int, now: float, reason: AbandonReason) -> None:
        """Measure and forget an operation whose caller has left. Ignore an unknown token.

        An operation whose result is not needed is no call that ended, so it is not measured.
        """
        operation = self.open.get(token)
        if operation is not None:
            if operation.request.is_awaited and reason is not AbandonReason.NOT_NEEDED:
                self._measure(operation, now, abandoned=reason)
            self._settle(operation, is_needed=reason is not AbandonReason.NOT_NEEDED)

    def strategy_decided(self, event: StrategyDecided, now: float) -> None:
        """Carry out what an asynchronous strategy said. Unknown tokens are ignored."""
        operation = self.open.get(event.token)
        if operation is None:
            return
        tokens = operation.tokens
        if isinstance(tokens, AsyncRequestTokens) and tokens.is_acquiring:
            self._begin(operation, self._lent.decided(tokens, event, operation.deadline - now), now)
        else:
            self._feed(operation, facts.StrategyDecided(event.answer, event.raised), now)

    def deadlines_passed(self, event: TimePassed, now: float) -> None:
        """Fail the operations without a timer whose deadlines have passed."""
        self.next_deadline = math.inf
        due = list[LiveOperation]()
        for operation in self.open.values():
            if operation.deadline_timer is not None:
                continue
            if operation.deadline > now:
                self.next_deadline = operation.deadline
                break
            due.append(operation)
        for operation in due:
            if operation.token in self.open:
                self.deadline_passed(operation, event, now)

    def deadline_passed(self, operation: LiveOperation, event: TimePassed, now: float) -> None:
        """Fail an operation with a timeout; one whose answer the node owes is a failure to its circuit breaker."""
        connection = self._dispatcher.waits_for(operation.token)
        if connection is not None:
            # It never left the client: the error tells what it was waiting for.
            text, load = _obstacle(operation, connection), load_of(connection)
            self._dispatcher.stop_waiting(operation)
            self._fail_dispatch(operation, self._dispatcher.lost(operation, connection, text, load=load), now)
            return
        connection, debtor = self._connections.streams.connection(operation.stream), self._debtor(operation, event)
        debt = load_of(connection) if connection is not None else None
        self._feed(operation, facts.TimePassed(debt, operation.obstacle), now)
        if debtor is not None:
            self._keep_alive.feed_breaker(debtor, BreakerEvent.OPERATION_TIMED_OUT, now)

    def backoff_over(self, operation: LiveOperation, now: float) -> None:
        """Send an operation, or fail it where its delay was cut."""
        if (operation.tokens is not None and operation.tokens.hold_is_over()) or self._feed(
            operation, facts.TimePassed(), now
        ):
            self._dispatch(operation, now)

    def resume_waiting(self, connection: Connection, now: float) -> None:
        """Dispatch what waits for a connection, in order, as far as that takes it."""
        while connection.waiting and connection.takes_operations:
            token = connection.waiting.take_first()
            self._dispatcher.released(token)
            self._dispatch(self.open[token], now, turn_at=connection)

    def resume(self, tokens: Iterable[int], now: float) -> None:
        """Dispatch operations that waited for a connection or a collection id."""
        for token in tokens:
            self._dispatcher.released(token)
            self._dispatch(self.open[token], now)

    def answered(
        self,
        operation: LiveOperation,
        connection: Connection,
        answered: Answered,
        now: float,
    ) -> None:
        """Complete, fail or retry the operation that is ``answered``."""
        frame, request = answered.frame, operation.request
        if operation.opaque != answered.request.opaque:
            # Of several answers to one request, on a stream that is closed by now, an earlier one was nonsense.
            return
        if frame.status != _SUCCESS and not kv_responses.is_success(request.name, frame.status):
            self._refused_by_node(operation, connection, frame, now)
            return
        try:
            if answered.problem is not None:
                raise MalformedResponse(answered.problem)
            result = decode_response(request, frame, vbucket=operation.vbucket)
        except MalformedResponse as error:
            self._fail_unread(operation, frame, str(error), now, is_success=True)
            return
        except Exception as error:
            fault = decoder_faults.unexpected(Decoder.KEY_VALUE_RESULT, error)
            self._fail_undecoded(operation, connection, frame, fault, now, is_success=True)
            return
        if type(result) is ScanPage:
            page = self._gather(operation, frame, result, now)
            if page is None:
                return
            result = page
        took = now - operation.submitted_at + request.encode_seconds
        is_slow = took >= self._slow_after
        if is_slow or operation.is_traced:
            self._end_attempt(operation, now, server_duration(frame.framing_extras))
        operation.opaque = None
        del self.open[operation.token]
        if operation.deadline_timer is not None or operation.retry_timer is not None:
            self._cancel_timers(operation)
        if operation.tokens is not None:
            self._lent.end(Token(operation.token), operation.tokens, succeeded=True)
        durations = self._gathering.durations
        if durations is not None and not operation.is_part:
            name = SPAN_NAMES[request.name]
            histogram = durations.histograms.get(name)
            if histogram is None:
                histogram = durations.begin(_KV, name, now - took)
            histogram.add(int(took * MICROSECONDS))
        if is_slow:
            self._gathering.slow(operation.measured().facts(now), now)
        # Token() would cost a Python call.
        self._emit(CompleteOperation(operation.token, result))  # type: ignore[arg-type]

    def _gather(self, operation: LiveOperation, frame: Frame, page: ScanPage, now: float) -> ScanPage | None:
        """Return all pages of a scan if this one is the last. None if more follow, or if the operation has failed."""
        try:
            found = operation.gather(page)
        except MalformedResponse as error:
            self._fail_unread(operation, frame, str(error), now, is_success=True)
            return None
        return ScanPage(tuple(found), page.is_complete) if is_last(frame.opcode, frame.status) else None

    def _refused_by_node(self, operation: LiveOperation, connection: Connection, frame: Frame, now: float) -> None:
        """Retry or fail an operation whose answer is no success."""
        carried_config = False
        if frame.status == Status.NOT_MY_VBUCKET:
            operation.wrong_node_count += 1
            # Decision C10: an embedded config is applied before the retry.
            carried_config = bool(frame.value) and self._keyspaces.take_config(connection, frame.value, now) is None
        try:
            response = read_failure(operation.request, frame, connection.node)
        except MalformedResponse as error:
            self._fail_unread(operation, frame, str(error), now, is_success=False)
            return
        except Exception as error:
            fault = decoder_faults.unexpected(Decoder.KEY_VALUE_ERROR, error)
            self._fail_undecoded(operation, connection, frame, fault, now, is_success=False)
            return
        self._feed(
            operation, facts.ResponseReceived(response), now, connection=connection, carried_config=carried_config
        )

    def end_scan(self, connection: Connection, scan: AbandonedScan, frame: Frame, now: float) -> None:
        """End a scan that was opened for somebody who has left, and have the answer reported."""
        if scan.measured is not None:
            self.orphaned(scan.measured, frame, now)
        if (
            frame.status == Status.SUCCESS
            and len(frame.value) == SCAN_ID_SIZE
            and connection.state is ConnectionState.READY
        ):
            cancel = encode_cancel(scan.vbucket, frame.value, opaque=connection.in_flight.next_opaque)
            self._connections.send(connection, Purpose.SCAN_CANCEL, cancel)

    def orphaned(self, operation: MeasuredOperation, frame: Frame, now: float) -> None:
        """Have an answer reported that nobody waits for any more."""
        self._gathering.orphan(operation.facts(now, server_duration(frame.framing_extras)), now)

    def socket_closed(self, operation: LiveOperation, handed_over: facts.HandedOver, detail: str, now: float) -> None:
        """Retry or fail an operation that was in flight on a stream that is gone."""
        if operation.opaque is None:
            # Its caller has left since the stream was closed, or its deadline has passed.
            return
        reason = self._dispatcher.terminal_reason(operation) or RetryReason.SOCKET_NOT_AVAILABLE
        self._feed(operation, facts.SocketClosed(handed_over, detail, reason), now)

    def connection_lost(self, token: int, connection: Connection, detail: str, now: float) -> None:
        """Retry or fail an operation that waited for a connection that was lost.

        One that goes to another node is dispatched again: it only waited for a collection's id from there, or the node
        has left the map.
        """
        if token not in self.open:
            return
        if self._dispatcher.waits_for(token) is connection and not connection.is_leaving:
            operation = self.open[token]
            self._fail_dispatch(operation, self._dispatcher.lost(operation, connection, detail), now)
        else:
            self.resume([token], now)

    def collection_not_found(self, token: int, failed: facts.DispatchFailed, now: float) -> None:
        """Retry or fail an operation whose collection id could not be had."""
        self._dispatcher.released(token)
        self._feed(self.open[token], failed, now)

    def fail_waiting(self, token: int, error: type[CouchbaseException], text: str, now: float) -> None:
        """Fail an operation whose collection id cannot be had."""
        self._fail_for_good(self.open[token], error, text, now)

    def _fail_for_good(self, operation: LiveOperation, error: type[CouchbaseException], text: str, now: float) -> None:
        """Fail an operation that cannot succeed, without asking its strategy."""
        context = operation.error_context() if operation.retry is None else operation.retry.error_context(now)
        self._fail(operation, error(f"{subject(context)}: {text}", context), now)

    def _fail_unread(
        self, operation: LiveOperation, frame: Frame, problem: str, now: float, *, is_success: bool
    ) -> None:
        """Fail an operation whose answer cannot be read; whatever else travels on the connection goes on (decision D26)."""
        context = operation.error_context() if operation.retry is None else operation.retry.error_context(now)
        context = replace(context, status=frame.status, status_name=status_name(frame.status))
        self._end_attempt(operation, now, server_duration(frame.framing_extras))
        applied = "it was applied, but " if is_success and not operation.idempotent else ""
        text = f"{subject(context)}: {applied}the answer of {context.last_dispatched_to} cannot be read: {problem}"
        self._fail(operation, DecodingFailureException(text, context), now)

    def _fail_undecoded(
        self,
        operation: LiveOperation,
        connection: Connection,
        frame: Frame,
        fault: DecoderFault,
        now: float,
        *,
        is_success: bool,
    ) -> None:
        """Fail an operation whose answer a decoder failed on, and close the connection that sent it."""
        self._fail_unread(operation, frame, str(fault), now, is_success=is_success)
        self._connections.close_after_fault(connection, fault, now)

    def _fail(self, operation: LiveOperation, error: CouchbaseException, now: float) -> None:
        self._measure(operation, now)
        if operation.tokens is not None:
            is_answered = operation.retry is not None and operation.retry.is_answered
            succeeded = is_answered and says_well(error)
            self._lent.end(Token(operation.token), operation.tokens, succeeded=succeeded)
        self._settle(operation)
        self._emit(FailOperation(Token(operation.token), error))

    def _measure(self, operation: LiveOperation, now: float, *, abandoned: AbandonReason | None = None) -> None:
        """Record how long an operation took that ends without a result."""
        durations, took = self._gathering.durations, now - operation.submitted_at + operation.request.encode_seconds
        if durations is not None and not operation.is_part:
            durations.count(_KV, SPAN_NAMES[operation.request.name], took, now)
        if took >= self._slow_after:
            self._gathering.slow(operation.measured().facts(now, abandoned=abandoned), now)

    def _feed(
        self,
        operation: LiveOperation,
        event: facts.RequestEvent,
        now: float,
        *,
        connection: Connection | None = None,
        carried_config: bool = False,
    ) -> bool:
        """Feed the operation's retry machine and carry out what it orders; return whether to dispatch it again now.

        Args:
            connection: where the response came from.
            carried_config: whether the response carried a cluster config, which was taken already.
        """
        is_to_be_dispatched = False
        match event:
            case facts.ResponseReceived(facts.KvResponse() as response):
                self._end_attempt(operation, now, response.server_duration)
            case facts.SocketClosed():
                self._end_attempt(operation, now)
        machine = operation.retry_machine(rng=self._rng, error_maps=self._error_maps)
        ordered = machine.handle(event, now)
        if isinstance(event, facts.ResponseReceived | facts.SocketClosed):
            operation.opaque = None
        for action in ordered:
            match action:
                case orders.RetryAfter(delay, dispatches):
                    if operation.tokens is not None and not dispatches:
                        operation.tokens.give_back()
                    operation.retry_timer = self._timers.schedule(now + delay, TimerKind.RETRY, operation)
                case orders.Dispatch():
                    is_to_be_dispatched = True
                    self.retries_by_reason[cast(RetryReason, machine.last_reason)] += 1
                case orders.Fail(error):
                    self._fail(operation, error, now)
                case orders.RefreshTopology():
                    if connection is not None and not carried_config:
                        self._keep_alive.refresh_config(connection, now)
                case orders.RefreshCollection():
                    self._keyspaces.outdated(operation.request.keyspace)
                case orders.CloseConnection(why):
                    if connection is not None:
                        self._connections.close(connection, why, now)
                case orders.Complete() | orders.Ignore():
                    pass
                case orders.ConsultStrategy() | orders.ReportRetry() | orders.ReportRefusal():
                    self._pass_on(Token(operation.token), action)
                case _:
                    assert_never(action)
        return is_to_be_dispatched

    def _end_attempt(self, operation: LiveOperation, now: float, server_seconds: float | None = None) -> None:
        """Measure the attempt that is over, if there is one, and tell of it where that is asked for."""
        link = operation.link
        if operation.end_attempt(now, server_seconds) and operation.is_traced and link is not None:
            attributes = answer_attributes(server_seconds)
            self._emit(ReportAnswer(Token(operation.token), attributes, StreamId(link.stream)))

    def _pass_on(
        self, token: Token, action: orders.ConsultStrategy | orders.ReportRetry | orders.ReportRefusal
    ) -> None:
        match action:
            case orders.ConsultStrategy(strategy, request, reason):
                self._emit(ConsultStrategy(token, strategy, request, reason))
            case orders.ReportRetry(request, reason, delay, dispatches, node):
                self._emit(ReportRetry(token, request, reason, delay, dispatches, node))
            case orders.ReportRefusal(request, reason, error, node):
                self._emit(ReportRefusal(token, request, reason, error, node))

    def _debtor(self, operation: LiveOperation, event: TimePassed) -> Connection | None:
        """Return the connection that owes an operation its answer; None where the client has not sent it, or not read."""
        if operation.stream is None or operation.opaque is None or operation.stream in event.unread:
            return None
        stream = StreamId(operation.stream)
        connection = self._connections.streams.connection(stream)
        request = connection.in_flight.get(operation.opaque) if connection is not None else None
        if request is None:
            return None
        handed_over = request.handed_over(event.unsent.get(stream, sys.maxsize))
        return connection if handed_over is not facts.HandedOver.NOTHING else None

    def _settle(self, operation: LiveOperation, *, is_needed: bool = True) -> None:
        """Forget an operation, wherever it stands; a reply that still comes is an orphan if ``is_needed``."""
        del self.open[operation.token]
        self._cancel_timers(operation)
        if operation.tokens is not None:
            self._lent.end(Token(operation.token), operation.tokens, succeeded=False)
        self._dispatcher.stop_waiting(operation)
        connection = self._connections.streams.connection(operation.stream)
        if connection is not None and operation.opaque is not None:
            takes_orphan = is_needed and self._gathering.takes_orphans and operation.request.is_awaited
            orphan = operation.measured() if takes_orphan else None
            heir: AbandonedScan | MeasuredOperation | Purpose | None = orphan if is_needed else Purpose.NOT_NEEDED
            if isinstance(operation.request, RangeScanCreate):
                heir = AbandonedScan(operation.vbucket, orphan, is_needed)
            connection.in_flight.abandon(operation.opaque, heir)
        operation.opaque = None

    def _cancel_timers(self, operation: LiveOperation) -> None:
        if operation.deadline_timer is not None:
            self._timers.cancel(operation.deadline_timer)
        if operation.retry_timer is not None:
            self._timers.cancel(operation.retry_timer)


def _obstacle(operation: LiveOperation, connection: Connection) -> str:
    """Return what an operation waits for that waits for a connection, or for a collection's id."""
    text = status_text(connection)
    if connection.state is ConnectionState.READY and operation.token not in connection.waiting:
        keyspace = operation.request.keyspace
        text += f"; it has not told the id of collection {keyspace.scope}.{keyspace.collection}"
    return text
