"""Carrier of key-value operations: it sends their attempts to nodes, and processes the responses.

The carrier completes an operation whose attempt succeeds, and fails an operation whose response is unreadable. The life
cycle passes other failed attempts to the retry machine.

Source: SDK-RFC 0049 "Client Dispatch", "Response Received"; decisions C6, C25, C29, C33, C37, C38, D34.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple, cast

from triclinium_core import decoder_faults
from triclinium_core.contract import couchbase
from triclinium_core.contract.couchbase import CompleteOperation, FailOperation, ReportAnswer, TimerKind
from triclinium_core.contract.neutral import StreamId, TimePassed, Token
from triclinium_core.decoder_faults import Decoder, DecoderFault
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import CouchbaseException, DecodingFailureException
from triclinium_core.kv.operation.codec_parts import MalformedResponse
from triclinium_core.kv.operation.failure import read_failure
from triclinium_core.kv.operation.operation import timeout_of
from triclinium_core.kv.operation.operation_codec import decode_response
from triclinium_core.kv.operation.results import ScanPage
from triclinium_core.kv.operation.scan.scan_codec import encode_cancel
from triclinium_core.kv.operation.scan.scan_requests import SCAN_ID_SIZE, RangeScanCreate
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.framing_extras import server_duration
from triclinium_core.retry.combined.permits import permit_of
from triclinium_core.retry.combined.strategies import PermitIssuer, decider_of
from triclinium_core.retry.couchbase import (
    BreakerEvent,
    FailFastRetryStrategy,
    RetryReason,
    Service,
    Status,
    actions,
    events,
    loaded,
    status_name,
    subject,
)
from triclinium_core.retry.couchbase.tables import kv_responses
from triclinium_core.runtime.kv.config_follower import ConfigFollower
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.connection_events import Answered
from triclinium_core.runtime.kv.connection.in_flight import AbandonedScan, Purpose, is_last
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.dispatcher import KeyValueDispatcher, load_of
from triclinium_core.runtime.kv.live_operation import LiveOperation
from triclinium_core.runtime.kv.pool.connection_texts import status_text
from triclinium_core.runtime.kv.pool.connections import Connections
from triclinium_core.runtime.kv.pool.keepalive import KeepAlive
from triclinium_core.runtime.lifecycle.carrier import Departure, OrderOfKeyValue, Undispatched
from triclinium_core.runtime.lifecycle.lifecycle import Lifecycle
from triclinium_core.runtime.lifecycle.measured import Measured
from triclinium_core.runtime.lifecycle.stages import Stage
from triclinium_core.runtime.toolkit import Toolkit
from triclinium_core.telemetry.attributes import answer_attributes
from triclinium_core.telemetry.facts import MICROSECONDS
from triclinium_core.telemetry.span_names import SPAN_NAMES

_FAIL_FAST = FailFastRetryStrategy()
_KV, _SETTLED = Service.KV, Stage.SETTLED
_SUCCESS = int(Status.SUCCESS)
"""Plain number, because comparing plain numbers is faster; ``kv.wire.constants`` documents the cost of an enum."""


class _Origin(NamedTuple):
    """Connection of an unsuccessful response, and whether the response contained a usable config."""

    connection: Connection
    has_config: bool
    """Whether the response contained a usable cluster config, which the client has then processed already."""


class KeyValueCarrier:
    """Carrier of key-value operations."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        dispatcher: KeyValueDispatcher,
        connections: Connections,
        *,
        keep_alive: KeepAlive,
        follower: ConfigFollower,
        tools: Toolkit,
    ) -> None:
        strategy, gathering = tools.options.retry_strategy, tools.gathering
        self._lifecycle = lifecycle
        lifecycle.carriers[LiveOperation] = self
        self._open = cast("dict[int, LiveOperation]", lifecycle.open)
        """All open operations and requests by token. The queues of connections and collection ids have only tokens."""
        self._timeouts = tools.options.timeouts
        self._strategy = decider_of(strategy)
        self._issues_permits = isinstance(self._strategy, PermitIssuer)
        """Whether the client's default strategy is a token strategy, which issues permits."""
        self._dispatcher = dispatcher
        self._connections = connections
        self._keep_alive = keep_alive
        self._follower = follower
        self._timers = tools.timers
        self._emit = tools.emit
        self._recorder = tools.recorder
        self._gathering = gathering
        self._slow_after = gathering.thresholds[Service.KV] if gathering.thresholds is not None else math.inf
        """Seconds from which an operation counts as slow; ``inf`` if slow operations are not logged."""

    # -- Submission and dispatch.

    def submit(self, submissions: Iterable[couchbase.OperationSubmitted], now: float) -> None:
        """Submit operations.

        Set the deadline of each operation, and dispatch its first attempt or acquire a permit for it.
        """
        lifecycle, timeouts, dispatch = self._lifecycle, self._timeouts, self._dispatcher.dispatch
        usual_deadline = now + timeouts.kv
        for submission in submissions:
            token, request, given = submission.token, submission.operation, submission.retry_strategy
            if given is None:
                strategy, issues_permits = self._strategy, self._issues_permits
            else:
                strategy = decider_of(given)
                issues_permits = isinstance(strategy, PermitIssuer)
            deadline = now + timeout_of(request, timeouts)
            operation = LiveOperation(token, request, strategy, submission.client_context, now, deadline)
            if submission.is_traced:
                operation.is_traced = True
            if submission.is_part:
                operation.is_part = True
            self._open[token] = operation
            if deadline != usual_deadline:
                operation.deadline_timer = self._timers.schedule(deadline, TimerKind.DEADLINE, operation)
            elif deadline < lifecycle.next_deadline:
                lifecycle.next_deadline = deadline
            if issues_permits:
                if request.is_awaited:
                    operation.strategy = operation.permit = permit_of(cast(PermitIssuer, strategy))
                    lifecycle.begin(operation, now)
                    continue
                # The client abandons an operation without a waiter right after its submission. A strategy would
                # receive neither the operation's success nor the token of the attempt.
                operation.strategy = _FAIL_FAST
            undispatched = dispatch(operation, now)
            if undispatched is not None:
                lifecycle.not_dispatched(operation, undispatched, now)

    def dispatch(self, live: LiveOperation, now: float) -> Undispatched | None:
        """Send or queue an operation. Return None, or the reason why neither is possible."""
        return self._dispatcher.dispatch(live, now)

    def resume_waiting(self, connection: Connection, now: float) -> None:
        """Dispatch the operations queued for a connection, in order, as long as the connection takes operations."""
        while connection.waiting and connection.takes_operations:
            token = connection.waiting.take_first()
            self._dispatcher.released(token)
            operation = self._open[token]
            undispatched = self._dispatcher.dispatch(operation, now, turn_at=connection)
            if undispatched is not None:
                self._lifecycle.not_dispatched(operation, undispatched, now)

    def resume(self, tokens: Iterable[int], now: float) -> None:
        """Dispatch operations whose wait for a connection or a collection id is over."""
        for token in tokens:
            self._dispatcher.released(token)
            self._lifecycle.dispatch(self._open[token], now)

    # -- Responses and failures.

    def answered(
        self,
        operation: LiveOperation,
        connection: Connection,
        answered: Answered,
        now: float,
    ) -> None:
        """Process a response to an attempt: complete, fail or retry the operation, or wait for the rest of a scan page."""
        frame, request = answered.frame, operation.request
        if operation.opaque != answered.request.opaque:
            # The attempt has ended: an earlier response to this request was invalid.
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
        if self._recorder is not None:
            self._recorder.add(operation.recorded(now))
        took = now - operation.submitted_at + request.encode_seconds
        is_slow = took >= self._slow_after
        if is_slow or operation.is_traced:
            self._end_attempt(operation, now, server_duration(frame.framing_extras))
        operation.opaque, operation.stage = None, _SETTLED
        del self._open[operation.token]
        if operation.deadline_timer is not None or operation.retry_timer is not None:
            self._lifecycle.cancel_timers(operation)
        if operation.permit is not None:
            self._lifecycle.end_permit(operation, succeeded=True)
        durations = self._gathering.durations
        if durations is not None and not operation.is_part:
            name = SPAN_NAMES[request.name]
            histogram = durations.histograms.get(name)
            if histogram is None:
                histogram = durations.begin(_KV, name, now - took)
            histogram.add(int(took * MICROSECONDS))
        if is_slow:
            self._gathering.slow(operation.measured().facts(now), now)
        self._emit(CompleteOperation(operation.token, result))

    def _gather(self, operation: LiveOperation, frame: Frame, page: ScanPage, now: float) -> ScanPage | None:
        """Add the documents of a response to a scan page. Return the page once its last response has arrived.

        Return None if further responses follow, or if the operation has failed.
        """
        try:
            found = operation.gather(page)
        except MalformedResponse as error:
            self._fail_unread(operation, frame, str(error), now, is_success=True)
            return None
        return ScanPage(tuple(found), page.is_complete) if is_last(frame.opcode, frame.status) else None

    def _refused_by_node(self, operation: LiveOperation, connection: Connection, frame: Frame, now: float) -> None:
        """Retry or fail an operation after an unsuccessful response."""
        has_config = False
        if frame.status == Status.NOT_MY_VBUCKET:
            operation.wrong_node_count += 1
            # Decision C10: apply the config in the response before the retry, which then uses the new map.
            has_config = bool(frame.value) and self._follower.take(connection, frame.value, now) is None
        try:
            response = read_failure(operation.request, frame, connection.node)
        except MalformedResponse as error:
            self._fail_unread(operation, frame, str(error), now, is_success=False)
            return
        except Exception as error:
            fault = decoder_faults.unexpected(Decoder.KEY_VALUE_ERROR, error)
            self._fail_undecoded(operation, connection, frame, fault, now, is_success=False)
            return
        self._end_attempt(operation, now, response.server_duration)
        self._attempt_lost(operation, events.ResponseReceived(response), now, _Origin(connection, has_config))

    def end_scan(self, connection: Connection, scan: AbandonedScan, frame: Frame, now: float) -> None:
        """Process the response to an abandoned request to open a scan.

        Report the response if ``scan`` has measurements. Cancel the scan if the node has opened it and the
        connection is ready.
        """
        if scan.measured is not None:
            self.orphaned(scan.measured, frame, now)
        if (
            frame.status == Status.SUCCESS
            and len(frame.value) == SCAN_ID_SIZE
            and connection.state is ConnectionState.READY
        ):
            cancel = encode_cancel(scan.vbucket, frame.value, opaque=connection.in_flight.next_opaque)
            connection.in_flight.send(Purpose.SCAN_CANCEL, cancel)

    def orphaned(self, operation: Measured, frame: Frame, now: float) -> None:
        """Report a response that arrived after the end of its operation."""
        self._gathering.orphan(operation.facts(now, server_duration(frame.framing_extras)), now)

    def socket_closed(self, operation: LiveOperation, handed_over: events.HandedOver, detail: str, now: float) -> None:
        """Retry or fail an operation that was in flight on a lost stream."""
        if operation.opaque is None:
            # The attempt has ended: after the stream was closed, the caller abandoned the operation, or the deadline
            # passed.
            return
        reason = self._dispatcher.terminal_reason(operation) or RetryReason.SOCKET_NOT_AVAILABLE
        self._end_attempt(operation, now)
        self._attempt_lost(operation, events.SocketClosed(handed_over, detail, reason), now)

    def _attempt_lost(
        self,
        operation: LiveOperation,
        event: events.ResponseReceived | events.SocketClosed,
        now: float,
        origin: _Origin | None = None,
    ) -> None:
        """Retry or fail an operation whose attempt has failed."""
        # Create the retry machine before clearing the opaque, because the machine copies the opaque into its context.
        self._lifecycle.machine_of(operation)
        operation.opaque = None
        self._lifecycle.feed(operation, event, now, origin)

    def connection_lost(self, token: int, connection: Connection, detail: str, now: float) -> None:
        """Retry or fail an operation that waited for a lost connection.

        If an operation of another connection only waited for a collection id from this one, or if the node has left the
        map, dispatch the operation again.
        """
        if token not in self._open:
            return
        if self._dispatcher.waits_for(token) is connection and not connection.is_leaving:
            operation = self._open[token]
            self._lifecycle.not_dispatched(operation, self._dispatcher.lost(operation, connection, detail), now)
        else:
            self.resume([token], now)

    def collection_not_found(self, token: int, failed: events.DispatchFailed, now: float) -> None:
        """Retry or fail an operation after the request for its collection id failed."""
        self._dispatcher.released(token)
        self._lifecycle.feed(self._open[token], failed, now)

    def fail_waiting(self, token: int, error: type[CouchbaseException], text: str, now: float) -> None:
        """Fail an operation whose collection id cannot be obtained, without consulting the retry strategy."""
        self._lifecycle.fail_for_good(self._open[token], error, text, now)

    def _fail_unread(
        self, operation: LiveOperation, frame: Frame, problem: str, now: float, *, is_success: bool
    ) -> None:
        """Fail an operation whose response is unreadable, but no other request on the connection (decision D26)."""
        context = self._lifecycle.machine_of(operation).error_context(now)
        context = replace(context, status=frame.status, status_name=status_name(frame.status))
        self._end_attempt(operation, now, server_duration(frame.framing_extras))
        applied = "it was applied, but " if is_success and not operation.request.idempotent else ""
        text = f"{subject(context)}: {applied}the response of {context.last_dispatched_to} cannot be decoded: {problem}"
        self._lifecycle.fail(operation, DecodingFailureException(text, context), now)

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
        """Fail an operation after a decoder failed on its response, and close the connection."""
        self._fail_unread(operation, frame, str(fault), now, is_success=is_success)
        self._connections.close_after_fault(connection, fault, now)

    def _end_attempt(self, operation: LiveOperation, now: float, server_seconds: float | None = None) -> None:
        """Record the duration of an attempt that has ended, and report its end to a tracer.

        Do nothing without an attempt.
        """
        link = operation.link
        if operation.end_attempt(now, server_seconds) and operation.is_traced and link is not None:
            attributes = answer_attributes(server_seconds)
            self._emit(ReportAnswer(Token(operation.token), attributes, StreamId(link.stream)))

    # -- Methods that the life cycle calls.

    def give_up_waiting(self, live: LiveOperation) -> Undispatched | None:
        """End an operation's wait for a connection or a collection id, and return the reason for the wait.

        Return None if the operation does not wait.
        """
        connection = self._dispatcher.waits_for(live.token)
        if connection is None:
            return None
        text, load = _obstacle(live, connection), load_of(connection)
        self._dispatcher.stop_waiting(live)
        return self._dispatcher.lost(live, connection, text, load=load)

    def out_of_time(self, live: LiveOperation) -> events.WakeupReached:
        """Return the facts for a timeout: the load of the connection, and the reason for a missing permit, if any."""
        connection = self._connections.streams.connection(live.stream)
        return events.WakeupReached(load_of(connection) if connection is not None else None, live.obstacle)

    def debtor(self, live: LiveOperation, event: TimePassed) -> Connection | None:
        """Return the connection that has not responded to the attempt.

        Return None without an attempt in flight, if no byte of the attempt was sent, or if received bytes are unread.
        """
        if live.stream is None or live.opaque is None or live.stream in event.unread:
            return None
        stream = StreamId(live.stream)
        connection = self._connections.streams.connection(stream)
        request = connection.in_flight.get(live.opaque) if connection is not None else None
        if request is None:
            return None
        handed_over = request.handed_over(event.unsent.get(stream, sys.maxsize))
        return connection if handed_over is not events.HandedOver.NOTHING else None

    def blame(self, debtor: Connection, now: float) -> None:
        """Count a passed deadline as a failure in the circuit breaker of the connection."""
        self._keep_alive.feed_breaker(debtor, BreakerEvent.OPERATION_TIMED_OUT, now)

    def attempt_failed(self, live: LiveOperation) -> None:
        """Do nothing, because the dispatcher finds a route for every attempt."""

    def retry_decided(self, live: LiveOperation, reason: RetryReason) -> None:
        """Do nothing, because no state depends on the reason."""

    def carry_out(self, live: LiveOperation, order: OrderOfKeyValue, origin: object, now: float) -> None:
        """Fetch the newest config, forget a collection id, or close the connection on which the response arrived."""
        match order, origin:
            case actions.RefreshCollection(), _:
                self._dispatcher.collection_outdated(live.request.keyspace)
            case actions.RefreshTopology(), _Origin(connection, has_config=False):
                self._keep_alive.refresh_config(connection, now)
            case actions.CloseConnection(why), _Origin(connection):
                self._connections.close(connection, why, now)

    def succeeded(self, live: LiveOperation, response: events.Response, now: float) -> None:
        """Do nothing: ``answered`` completes a successful operation without its retry machine."""

    def leave(self, live: LiveOperation, departure: Departure, now: float) -> None:
        """End the wait of an operation, or choose the recipient of a late response to its request in flight.

        A late response is not an orphan if the call did not need the operation's result.
        """
        self._dispatcher.stop_waiting(live)
        connection = self._connections.streams.connection(live.stream)
        if connection is not None and live.opaque is not None:
            is_needed = departure is not Departure.NOT_NEEDED
            takes_orphan = is_needed and self._gathering.takes_orphans and live.request.is_awaited
            orphan = live.measured() if takes_orphan else None
            heir: AbandonedScan | Measured | Purpose | None = orphan if is_needed else Purpose.NOT_NEEDED
            if isinstance(live.request, RangeScanCreate):
                heir = AbandonedScan(live.vbucket, orphan, is_needed)
            connection.in_flight.abandon(live.opaque, heir)
        live.opaque = None

    def fail(self, live: LiveOperation, error: CouchbaseException, now: float) -> None:
        """Settle an operation, and report the error to its caller."""
        self._lifecycle.record(live, now, error)
        self._lifecycle.forget(live)
        self._emit(FailOperation(Token(live.token), error))

    def context(self, live: LiveOperation, context: ErrorContext) -> ErrorContext:
        """Return a context with the load of the connection and, if the operation waits, the reason."""
        connection = self._dispatcher.waits_for(live.token)
        if connection is not None:
            reasons = context.retry_reasons
            if not connection.history.last_end.is_unsupported:
                reasons |= {str(self._dispatcher.reason_of_waiting(live, connection))}
            context = replace(context, retry_reasons=reasons, last_dispatch_error=_obstacle(live, connection))
        else:
            connection = self._connections.streams.connection(live.stream)
        return loaded(context, load_of(connection)) if connection is not None else context


def _obstacle(operation: LiveOperation, connection: Connection) -> str:
    """Return, in words, the reason why an operation waits for a connection or for a collection id."""
    text = status_text(connection)
    if connection.state is ConnectionState.READY and operation.token not in connection.waiting:
        keyspace = operation.request.keyspace
        text += f"; it has not sent the id of collection {keyspace.scope}.{keyspace.collection}"
    return text
