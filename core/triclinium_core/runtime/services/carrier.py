"""Carrier of requests over HTTP: it sends their attempts to endpoints, and processes the responses.

The carrier dispatches a user's request to the endpoint with the lowest load whose circuit breaker permits requests,
and a retry preferably to another endpoint. It processes the response piece by piece, and delivers rows when the reader
wants them. The life cycle passes complete responses and lost streams to the retry machine of the request. An unreadable
response fails the request. A request whose rows were received is not retried: the rows would be received twice.

Source: SDK-RFC 0049 "Client Dispatch", "Response Received"; SDK-RFC 0059 "Configuration"; decisions C6, C22, C24, C25.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, cast

from triclinium_core import decoder_faults, errors
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import actions
from triclinium_core.contract.couchbase.events import AbandonReason, RequestSubmitted
from triclinium_core.contract.couchbase.timer_kinds import TimerKind
from triclinium_core.error_context import ErrorContext
from triclinium_core.options import Authenticator
from triclinium_core.retry.combined.permits import permit_of
from triclinium_core.retry.combined.strategies import Decider, PermitIssuer, decider_of
from triclinium_core.retry.couchbase import events
from triclinium_core.retry.couchbase.circuit_breaker import BreakerEvent
from triclinium_core.retry.couchbase.tables import service_responses
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.tables.service_responses import ServiceVerdict
from triclinium_core.runtime.kv.known_cluster import KnownCluster
from triclinium_core.runtime.lifecycle.carrier import Departure, OrderOfKeyValue, Undispatched
from triclinium_core.runtime.lifecycle.lifecycle import Lifecycle
from triclinium_core.runtime.lifecycle.link import Link
from triclinium_core.runtime.lifecycle.stages import Stage
from triclinium_core.runtime.services.connection import AnswerBegan, AnswerBroken, AnswerEnded, BodyReceived
from triclinium_core.runtime.services.dispatcher import HttpDispatcher
from triclinium_core.runtime.services.live_request import LiveRequest, waits_for
from triclinium_core.runtime.services.pool import Endpoint, LostConnection, Pool
from triclinium_core.runtime.services.prepared_statements import PreparedStatements
from triclinium_core.runtime.services.unreadable_answers import UnreadableAnswers
from triclinium_core.runtime.toolkit import Toolkit
from triclinium_core.services import service_request
from triclinium_core.services.answer.context_ids import ContextIds
from triclinium_core.services.answer.incoming_answer import ForeignAnswer, Outcome, UnreadableAnswer
from triclinium_core.services.answer.rows import MalformedRows
from triclinium_core.services.ping_request import NoRetry
from triclinium_core.services.query.query_request import PrepareRequest
from triclinium_core.services.statement.statement_request import StatementRequest
from triclinium_core.work import CHUNK_WORK, HTTP_BYTES_PER_UNIT, PARSED_BYTES_PER_UNIT, READ_AT_ONCE_MAX


class OwnAnswer(NamedTuple):
    """Outcome of a request of the client itself."""

    token: int
    outcome: Outcome
    link: Link | None
    """Stream of the newest attempt; None without an attempt."""
    seconds: float | None
    """Duration of the newest attempt in seconds; None without an attempt."""


class HttpCarrier:
    """Carrier of requests over HTTP."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        pool: Pool,
        cluster: KnownCluster,
        tools: Toolkit,
    ) -> None:
        self._lifecycle = lifecycle
        lifecycle.carriers[LiveRequest] = self
        self._strategy = decider_of(tools.options.retry_strategy)
        self._timeouts = {service: tools.options.timeouts.of_service(service) for service in Service}
        self._pool = pool
        self._statements = PreparedStatements(cluster.configs)
        self._dispatcher = HttpDispatcher(pool, self._statements, cluster, emit=tools.emit)
        self.dispatch: Callable[[LiveRequest, float], Undispatched | None] = self._dispatcher.dispatch
        self.give_up_waiting: Callable[[LiveRequest], Undispatched | None] = self._dispatcher.give_up_waiting
        self._timers = tools.timers
        self._context_ids = ContextIds(tools.rng)
        self._emit = tools.emit
        self._unreadable = UnreadableAnswers(lifecycle, pool, emit=tools.emit)
        self.rows_undecoded: Callable[[int, decoder_faults.DecoderFault], None] = self._unreadable.rows_undecoded
        self.unplaced: Mapping[int, LiveRequest] = self._dispatcher.unplaced
        """Requests that wait for the first cluster config."""
        self.own_answers: list[OwnAnswer] = []
        """Outcomes of requests of the client itself that ``take_own_answers`` has not returned yet."""
        self.work: int = 0
        """Units of work on received bytes so far."""

    # -- Submission.

    def submit(self, event: RequestSubmitted, now: float) -> None:
        """Record a request of a user with its deadline, and begin its first attempt."""
        strategy = event.retry_strategy
        live = self._open(
            event.token,
            event.request,
            now,
            # Compare with None: a strategy may define ``__len__`` and be empty, and then it is false.
            strategy=decider_of(strategy) if strategy is not None else self._strategy,
            timeout=self._timeouts[event.request.service],
            client_context=event.client_context or {},
        )
        live.traced_as, live.encoding = event.token if event.is_traced else None, event.encoding
        self._lifecycle.begin(live, now)

    def submit_own(
        self,
        token: neutral.Token,
        request: service_request.ServiceRequest,
        endpoint: Endpoint,
        *,
        timeout: float,
        traced_as: neutral.Token | None,
        now: float,
    ) -> None:
        """Submit a request of the client itself to one endpoint, even if the endpoint's breaker is open.

        The request is never retried. ``own_answers`` receives the outcome.

        Args:
            traced_as: token with which to report the attempts to a tracer; None to report none.
        """
        live = self._open(token, request, now, strategy=NoRetry(), timeout=timeout, client_context={})
        live.pinned, live.is_own, live.traced_as = endpoint, True, traced_as
        self._lifecycle.begin(live, now)

    def _open(
        self,
        token: neutral.Token,
        request: service_request.ServiceRequest,
        now: float,
        *,
        strategy: Decider,
        timeout: float,
        client_context: Mapping[str, object],
    ) -> LiveRequest:
        permit = permit_of(strategy) if isinstance(strategy, PermitIssuer) else None
        context_id = None
        if isinstance(request, service_request.IdentifiedRequest):
            context_id = request.client_context_id or self._context_ids.new()
        live = LiveRequest(
            token,
            request,
            strategy if permit is None else permit,
            client_context,
            now,
            now + timeout,
            permit=permit,
            message=request,
            timeout=timeout,
            context_id=context_id,
        )
        self._lifecycle.open[token] = live
        live.deadline_timer = self._timers.schedule(live.deadline, TimerKind.DEADLINE, live)
        return live

    # -- Dispatch: a request waits for the first config, then for a connection, and is then sent.

    def place(self, now: float) -> None:
        """Dispatch the requests that wait for the first cluster config, if the config has arrived."""
        if self.unplaced and self._pool.knows_topology:
            for live in self._dispatcher.take_unplaced():
                self._lifecycle.dispatch(live, now)

    def cluster_not_found(self, reason: RetryReason, detail: str, now: float) -> None:
        """Retry or fail the requests that wait for the first cluster config, after a key-value connection is lost."""
        if not self._pool.knows_topology:
            self._dispatcher.last_loss = detail
            for live in self._dispatcher.take_unplaced():
                self._lifecycle.not_dispatched(live, self._dispatcher.give_up(live, reason, detail), now)

    def stream_opened(self, event: neutral.StreamOpened, now: float) -> None:
        """Send queued requests on an opened stream. Ignore an unknown stream."""
        endpoint = self._pool.opened(event, now)
        if endpoint is not None:
            self._dispatcher.serve(endpoint, now)

    # -- Responses, in any number of pieces.

    def bytes_received(self, event: neutral.BytesReceived, now: float) -> None:
        """Process bytes from a node. Ignore bytes on an unknown or abandoned stream."""
        stream = event.stream
        connection = self._pool.connection(stream)
        if connection is None:
            return
        connection.last_received_at = now
        received = connection.receive(bytes(event.data))
        self.work += connection.chunk_count * CHUNK_WORK + len(event.data) // HTTP_BYTES_PER_UNIT
        for news in received:
            if stream not in self._pool.endpoint_of:
                # The client has closed the stream because of an earlier event in this list.
                return
            live = self._dispatcher.travelling.get(stream)
            if isinstance(news, AnswerBroken):
                self._break(stream, live, news.text, now, fault=connection.fault)
                continue
            assert live is not None, "without a request, only invalid responses are received"
            match news:
                case AnswerBegan(status):
                    live.answer.begin(status, rows_of=live.message.rows_of)
                case BodyReceived(piece):
                    self._take_body(live, stream, piece, now)
                case AnswerEnded(is_reusable):
                    self._end_answer(live, stream, is_reusable, now)

    def _take_body(self, live: LiveRequest, stream: neutral.StreamId, piece: bytes, now: float) -> None:
        try:
            live.answer.receive(piece)
            self._give(live, now)
            if live.answer.pauses():
                self._emit(neutral.PauseReading(stream))
        except ForeignAnswer as error:
            self._refuse_foreign(live, stream, str(error), now)
        except UnreadableAnswer as error:
            self._break(stream, live, str(error), now)
        except decoder_faults.DecoderFault as fault:
            self._break(stream, live, str(fault), now, fault=fault)
        finally:
            self.work += live.answer.work

    def rows_wanted(self, token: int, now: float) -> None:
        """Deliver rows, or else the outcome, as soon as they arrive. Ignore an unknown token, and a repeated call."""
        live = self._lifecycle.open.get(token)
        if not isinstance(live, LiveRequest) or not live.answer.want():
            return
        if not self._give(live, now):
            self._timers.cancel(live.deadline_timer)
            live.deadline_timer = self._timers.schedule(now + live.timeout, TimerKind.DEADLINE, live)
        if live.stream is not None and live.answer.resumes():
            self._emit(neutral.ResumeReading(live.stream))

    def _give(self, live: LiveRequest, now: float) -> bool:
        """Deliver the received rows, or else the outcome, if the reader waits. Return whether it received anything."""
        given, token = live.answer.take(), neutral.Token(live.token)
        if given is None:
            return False
        if isinstance(given, list):
            self._timers.cancel(live.deadline_timer)
            self._emit(actions.RowsReceived(token, given))
            return True
        self._lifecycle.record(live, now, given)
        self._lifecycle.forget(live)
        if live.is_own:
            seconds = live.past.last if live.past is not None else None
            self.own_answers.append(OwnAnswer(token, given, live.link, seconds))
        elif isinstance(given, errors.CouchbaseException):
            self._emit(actions.FailOperation(token, given))
        else:
            self._emit(actions.CompleteRequest(token, given))
        return True

    def _end_answer(self, live: LiveRequest, stream: neutral.StreamId, is_reusable: bool, now: float) -> None:
        """Process a complete response. Keep its connection for the next request, or close it."""
        if live.message.rows_of is None:
            try:
                live.answer.check_whole()
            except ForeignAnswer as error:
                self._refuse_foreign(live, stream, str(error), now)
                return
            except decoder_faults.DecoderFault as fault:
                self._break(stream, live, str(fault), now, fault=fault)
                return
        endpoint = self._pool.endpoint_of[stream]
        self._dispatcher.take_off(stream)
        self._end_attempt(live, now)
        endpoint.breaker.handle(BreakerEvent.OPERATION_ANSWERED, now)
        if live.answer.resumes(is_whole=True):
            self._emit(neutral.ResumeReading(stream))
        if is_reusable:
            self._pool.release(stream, now)
        else:
            self._pool.close(stream, "the node accepts no further requests on it")
        live.answered_on = stream
        self._judge(live, now)
        # Serve after ``_judge``: if a decoder fails, ``_judge`` closes the connection, which must not carry another
        # request.
        self._dispatcher.serve(endpoint, now)

    def _judge(self, live: LiveRequest, now: float) -> None:
        """Pass a complete response to the retry machine.

        After a successful preparation, execute the statement instead.
        """
        try:
            body = live.answer.whole()
            verdict = _classified(live, body)
        except MalformedRows as error:
            node = live.endpoint.node if live.endpoint is not None else "the node"
            self._unreadable.fail(live, f"the response of {node} cannot be decoded: {error}", now)
            return
        except decoder_faults.DecoderFault as fault:
            self._unreadable.fail_undecoded(live, fault, now)
            return
        self.work += len(body) // PARSED_BYTES_PER_UNIT
        response = events.ServiceResponse(
            live.request.service,
            live.answer.status,
            body,
            live.request.name,
            is_partial=live.answer.has_given_rows,
            verdict=verdict,
        )
        if isinstance(live.message, PrepareRequest) and verdict.reason is None and verdict.error is None:
            self._take_plan(live, service_request.HttpResponse(live.answer.status, body), now)
        else:
            self._lifecycle.feed(live, events.ResponseReceived(response), now)

    def _take_plan(self, live: LiveRequest, answer: service_request.HttpResponse, now: float) -> None:
        """Store the plan of a prepared statement, and execute it."""
        try:
            self._statements.learn(live.message, answer)
        except service_request.MalformedAnswer as error:
            self._unreadable.fail(live, f"the plan cannot be decoded: {error}", now)
        except decoder_faults.DecoderFault as fault:
            self._unreadable.fail_undecoded(live, fault, now)
        else:
            # The preparation and the execution of a statement are one attempt. Create the retry machine before the
            # second dispatch, so that the attempt begins with the preparation.
            self._lifecycle.machine_of(live)
            live.stage = Stage.WAITING
            self._lifecycle.dispatch(live, now)

    # -- Failures: protocol violations, lost streams, timers of streams.

    def _break(
        self,
        stream: neutral.StreamId,
        live: LiveRequest | None,
        text: str,
        now: float,
        *,
        fault: decoder_faults.DecoderFault | None = None,
    ) -> None:
        """Close a connection on which the node violated the protocol or a decoder failed.

        Fail its request without a retry.

        Args:
            fault: exception of the decoder, if a decoder failed on the node's bytes.
        """
        endpoint, connection = self._pool.endpoint_of[stream], self._pool.connection(stream)
        text = connection.secrets.conceal(text) if connection is not None else text
        if fault is not None:
            self._unreadable.report_fault(stream, endpoint, fault)
        self._emit(neutral.ReportConnection(stream, endpoint.node, text))
        self._dispatcher.close(stream, text)
        if live is not None:
            self._unreadable.fail(live, f"{endpoint.node} {text}", now)
        self._dispatcher.serve(endpoint, now)

    def _refuse_foreign(self, live: LiveRequest, stream: neutral.StreamId, text: str, now: float) -> None:
        """Close a connection on which the response to another request arrived.

        Retry or fail the connection's request as after the loss of a stream.
        """
        endpoint = self._pool.endpoint_of[stream]
        self._emit(neutral.ReportConnection(stream, endpoint.node, text, neutral.ReportLevel.WARNING))
        self._dispatcher.close(stream, text)
        self._end_attempt(live, now)
        self._lose(live, events.HandedOver.ALL, f"{endpoint.node} {text}", now)
        self._dispatcher.serve(endpoint, now)

    def stream_lost(self, event: neutral.StreamLost, now: float) -> None:
        """Complete, retry or fail the request in flight on a lost stream, or retry or fail those that waited for it."""
        lost = self._pool.lost(event)
        if lost is None:
            return
        live = self._dispatcher.take_off(event.stream)
        if live is not None:
            self._end_attempt(live, now)
            live.answered_on = event.stream
        if lost.connection is None:
            # Report at DEBUG, because each affected request is reported as well.
            self._emit(
                neutral.ReportConnection(event.stream, lost.endpoint.node, lost.detail, neutral.ReportLevel.DEBUG)
            )
            reason = RetryReason.TLS_ERROR if event.cause is neutral.LossCause.TLS else RetryReason.SOCKET_NOT_AVAILABLE
            self._fail_waiting(lost, reason, now)
        elif live is not None:
            if event.cause is neutral.LossCause.UNSOLICITED:
                self._emit(
                    neutral.ReportConnection(event.stream, lost.endpoint.node, lost.detail, neutral.ReportLevel.WARNING)
                )
            # The end of the stream may complete the response: a response without a length ends with its stream.
            if event.cause is neutral.LossCause.END_OF_STREAM and lost.connection.ends_with_stream():
                self._judge_last(live, lost, now)
            elif lost.connection.fault is not None:
                self._unreadable.fail_undecoded(live, lost.connection.fault, now)
            else:
                self._lose(live, lost.connection.handed_over(event.handed_over), lost.detail, now)
        self._dispatcher.serve(lost.endpoint, now)

    def _judge_last(self, live: LiveRequest, lost: LostConnection, now: float) -> None:
        """Process a response that the end of its stream has completed."""
        try:
            live.answer.check_whole()
        except ForeignAnswer as error:
            self._lose(live, events.HandedOver.ALL, f"{lost.endpoint.node} {error}", now)
        except decoder_faults.DecoderFault as fault:
            self._unreadable.fail_undecoded(live, fault, now)
        else:
            self._judge(live, now)

    def _fail_waiting(self, lost: LostConnection, reason: RetryReason, now: float) -> None:
        """Retry or fail requests that are queued for an unreachable endpoint. A retry prefers another endpoint."""
        while (live := self._dispatcher.next_refused(lost.endpoint)) is not None:
            self._lifecycle.not_dispatched(live, self._dispatcher.give_up(live, reason, lost.detail), now)

    def _lose(self, live: LiveRequest, handed_over: events.HandedOver, detail: str, now: float) -> None:
        """Retry or fail a request whose stream was lost before its response was complete."""
        live.leave_endpoint()
        closed = events.SocketClosed(handed_over, detail, is_partial=live.has_given_rows)
        self._lifecycle.feed(live, closed, now)

    def stream_timer_passed(self, stream: neutral.StreamId, now: float) -> None:
        """Close a stream that was idle, or that did not open in time.

        If it did not open in time, retry or fail the queued requests that need it.
        """
        lost = self._pool.timer_passed(stream)
        self._pool.prune()
        if lost is not None:
            self._fail_waiting(lost, RetryReason.SOCKET_NOT_AVAILABLE, now)

    # -- Completion.

    def succeeded(self, live: LiveRequest, response: events.Response, now: float) -> None:
        """Decode a successful response, and deliver the result."""
        assert isinstance(response, events.ServiceResponse), "only a service responds to a service request"
        body = response.body.encode() if isinstance(response.body, str) else response.body
        answer = service_request.HttpResponse(response.http_status, body)
        # The response arrived before the deadline, so the deadline does not apply to the decoding.
        self._timers.cancel(live.deadline_timer)
        live.decoding = live.message.decode_in_steps(answer), answer
        self.decode_on(live, now)

    def decode_on(self, live: LiveRequest, now: float) -> None:
        """Decode a part of a response, and schedule the next part. Complete the request after the last part."""
        assert live.decoding is not None, "a response is being decoded"
        steps, answer = live.decoding
        try:
            result, work = _decoded(steps)
            self.work += work
            if result is None:
                live.retry_timer = self._timers.schedule(now, TimerKind.DECODING, live)
                return
            self._statements.learn(live.message, answer)
        except service_request.MalformedAnswer as error:
            self._unreadable.fail(live, f"the response cannot be decoded: {error}", now)
            return
        except decoder_faults.DecoderFault as fault:
            self._unreadable.fail_undecoded(live, fault, now)
            return
        if isinstance(result, service_request.Listing) and result.unread:
            self._unreadable.report_incomplete(live, result.unread)
        self._lifecycle.end_permit(live, succeeded=True)
        if not live.is_own:
            self._lifecycle.measure(live, now)
        self._deliver(live, result, now)

    def fail(self, live: LiveRequest, error: errors.CouchbaseException, now: float) -> None:
        """Deliver an error after the received rows."""
        self._deliver(live, error, now)

    def _deliver(self, live: LiveRequest, outcome: Outcome, now: float) -> None:
        """Deliver the outcome of a request after the rows that the caller has yet to take."""
        if not live.is_own and live.traced_as is not None:
            self._emit(
                actions.ReportEnd(live.traced_as, outcome if isinstance(outcome, errors.CouchbaseException) else None)
            )
        live.stage = Stage.DELIVERING
        live.answer.outcome = outcome
        self._give(live, now)

    def _end_attempt(self, live: LiveRequest, now: float) -> None:
        """Record the duration of an attempt that has ended, and report its end to a tracer.

        Do nothing without an attempt.
        """
        if live.end_attempt(now) and live.traced_as is not None and live.link is not None:
            self._emit(actions.ReportAnswer(live.traced_as, {}, neutral.StreamId(live.link.stream)))

    # -- Methods that the life cycle calls.

    def out_of_time(self, live: LiveRequest) -> events.WakeupReached:
        """Return the facts for a timeout: the reason for a missing permit, if any, and whether rows were delivered."""
        return events.WakeupReached(obstacle=live.obstacle, is_partial=live.has_given_rows)

    def debtor(self, live: LiveRequest, event: neutral.TimePassed) -> Endpoint | None:
        """Return the endpoint that has not responded.

        Return None if no attempt was sent, if received bytes are unread, or for a request of the client itself.
        """
        stream = live.stream
        if stream is None or live.is_own or stream in event.unread:
            return None
        connection, unsent = self._pool.connection(stream), event.unsent.get(stream)
        was_sent = connection is None or connection.handed_over(unsent) is not events.HandedOver.NOTHING
        return live.endpoint if was_sent else None

    def blame(self, debtor: Endpoint, now: float) -> None:
        """Count a passed deadline as a failure in the circuit breaker of an endpoint."""
        self._pool.feed_breaker(debtor, BreakerEvent.OPERATION_TIMED_OUT, now)

    def attempt_failed(self, live: LiveRequest) -> None:
        """Forget the endpoint of the attempt, so that the retry prefers another endpoint."""
        live.leave_endpoint()

    def retry_decided(self, live: LiveRequest, reason: RetryReason) -> None:
        """Forget the plan of a statement if the reason for the failure shows that the plan is unusable."""
        self._statements.failed(live.request, reason)

    def carry_out(self, live: LiveRequest, order: OrderOfKeyValue, origin: object, now: float) -> None:
        """Raise AssertionError: no response over HTTP causes such an order."""
        raise AssertionError(f"{order} is an action of the key-value service")

    def leave(self, live: LiveRequest, departure: Departure, now: float) -> None:
        """Remove a request from its queue, or close the connection on which its response is incomplete."""
        if departure is Departure.FAILED:
            self._end_attempt(live, now)
        reason = "its request failed" if departure is Departure.FAILED else "its request was abandoned"
        self._dispatcher.leave(live, reason, now)

    def context(self, live: LiveRequest, context: ErrorContext) -> ErrorContext:
        """Return a context that includes the endpoint for which a request waits, and the reason for the wait."""
        if live.stage is Stage.WAITING and live.endpoint is not None:
            context = replace(context, last_dispatch_error=waits_for(live.endpoint))
        reason = self._dispatcher.reason_of_waiting(live)
        return context if reason is None else replace(context, retry_reasons=context.retry_reasons | {str(reason)})

    # -- The client's own requests, and new credentials.

    def withdraw(self, token: int, now: float) -> None:
        """Abandon a request of the client itself. Ignore an unknown token."""
        self._lifecycle.abandon(token, now, AbandonReason.CANCELLED)

    def take_own_answers(self) -> list[OwnAnswer]:
        """Return and clear the outcomes of requests of the client itself."""
        answers, self.own_answers = self.own_answers, []
        return answers

    def authenticator_changed(self, authenticator: Authenticator, now: float) -> None:
        """Use other credentials for all further requests."""
        self._pool.authenticator_changed(authenticator)
        for endpoint in self._pool.all_waited_for():
            self._dispatcher.serve(endpoint, now)


def _classified(live: LiveRequest, body: bytes) -> ServiceVerdict:
    """Return the classification of a complete response.

    Raises:
        DecoderFault: the decoder failed.
    """
    try:
        verdict = service_responses.classify(
            live.request.service,
            live.answer.status,
            body,
            live.request.name,
            live.secrets,
            has_query_context=isinstance(live.request, StatementRequest) and live.request.query_context is not None,
        )
    except Exception as error:
        raise decoder_faults.unexpected(decoder_faults.Decoder.SERVICE_VERDICT, error) from None
    if live.is_own and verdict.reason is not None and verdict.reason.always_retry:
        # Remove the reason, so that the ping is not retried and reports the response. No strategy could refuse this
        # retry.
        return replace(verdict, reason=None)
    return verdict


def _decoded(
    steps: service_request.Steps[service_request.ServiceResult],
) -> tuple[service_request.ServiceResult | None, int]:
    """Return the result of a successful response, or None while steps remain, and the units of work.

    Raises:
        MalformedAnswer: the body is not a valid response of the service.
        DecoderFault: the decoder failed.
    """
    work = 0
    try:
        while work <= READ_AT_ONCE_MAX:
            work += next(steps)
    except StopIteration as end:
        return cast(service_request.ServiceResult, end.value), work
    except service_request.MalformedAnswer:
        raise
    except Exception as error:
        raise decoder_faults.unexpected(decoder_faults.Decoder.SERVICE_ANSWER, error) from None
    return None, work
