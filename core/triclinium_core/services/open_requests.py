"""The life of requests over HTTP: from submission through attempts and retries to settlement, each exactly once.

A request is dispatched as soon as its strategy lets it, to the endpoint with the least to do. Its answer is taken piece
by piece, and rows leave when somebody asks for them. A whole answer, and every failure, goes to the retry machine of the
request; this module carries out what that one orders. Once rows were handed out a request is not retried: whoever reads
them would get them twice.

The methods stand in the order in which a request meets them.

Source: SDK-RFC 0049 "Retry Orchestration"; SDK-RFC 0059 "HTTP"; decisions C6, C22, C24, C25.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, assert_never, cast

from triclinium_core import decoder_faults
from triclinium_core.client.actions import (
    Action,
    CompleteRequest,
    ConsultStrategy,
    FailOperation,
    PauseReading,
    ReportAnswer,
    ReportConnection,
    ReportEnd,
    ReportLevel,
    ReportRefusal,
    ReportRetry,
    ResumeReading,
    RowsReceived,
)
from triclinium_core.client.events import (
    AbandonReason,
    BytesReceived,
    LossCause,
    RequestSubmitted,
    StrategyDecided,
    StreamId,
    StreamLost,
    StreamOpened,
    TimePassed,
    Token,
)
from triclinium_core.client.fault_reports import FaultReports
from triclinium_core.client.lent_tokens import Begins, FirstAttempt, LentTokens, NotBegun
from triclinium_core.client.timers import TimerKind, Timers
from triclinium_core.decoder_faults import Decoder, DecoderFault
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import CouchbaseException, DecodingFailureException
from triclinium_core.kv.known_configs import KnownConfigs
from triclinium_core.kv.topology.own_addresses import OwnAddresses
from triclinium_core.options import Authenticator, ClientOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.combined.request_tokens import AsyncRequestTokens, says_well, tokens_of
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.retry.couchbase import actions as orders, events as facts, failures, strategy as couchbase
from triclinium_core.retry.couchbase.circuit_breaker import BreakerEvent
from triclinium_core.retry.couchbase.machine import RequestAnnotation, RetryMachine
from triclinium_core.retry.couchbase.tables import service_responses
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service_responses import ServiceVerdict
from triclinium_core.retry.couchbase.terminal_states import TerminalStates
from triclinium_core.retry.kinds import COUCHBASE
from triclinium_core.services.answer.context_ids import ContextIds
from triclinium_core.services.answer.incoming_answer import ForeignAnswer, Outcome, UnreadableAnswer
from triclinium_core.services.answer.rows import MalformedRows
from triclinium_core.services.connection.connection import AnswerBegan, AnswerBroken, AnswerEnded, BodyReceived
from triclinium_core.services.dispatcher import Dispatcher, Refused, Undispatched
from triclinium_core.services.live_request import LiveRequest
from triclinium_core.services.measured import MeasuredRequest, Sent
from triclinium_core.services.pool.endpoint import Endpoint
from triclinium_core.services.pool.pool import LostConnection, Pool
from triclinium_core.services.query.prepared_statements import PreparedStatements
from triclinium_core.services.query.request import PrepareRequest
from triclinium_core.services.request import (
    HttpAnswer,
    IdentifiedRequest,
    Listing,
    MalformedAnswer,
    ServiceRequest,
    ServiceResult,
    Steps,
)
from triclinium_core.telemetry.gathering import Gathering
from triclinium_core.telemetry.span_names import SPAN_NAMES
from triclinium_core.work import CHUNK_WORK, HTTP_BYTES_PER_UNIT, PARSED_BYTES_PER_UNIT, READ_AT_ONCE_MAX


class OwnAnswer(NamedTuple):
    """What became of a request of the client's own."""

    token: int
    outcome: Outcome
    sent: Sent | None
    """Its newest attempt; None where it was never sent."""


class OpenRequests:
    """All open requests of a client, by token."""

    def __init__(
        self,
        options: ClientOptions,
        pool: Pool,
        *,
        configs: KnownConfigs,
        own_addresses: OwnAddresses,
        terminal_states: TerminalStates,
        timers: Timers,
        rng: Random,
        gathering: Gathering,
        emit: Callable[[Action], None],
    ) -> None:
        self._options = options
        self._pool = pool
        self._statements = PreparedStatements(configs)
        self._dispatcher = Dispatcher(
            pool,
            self._statements,
            configs=configs,
            own_addresses=own_addresses,
            terminal_states=terminal_states,
            emit=emit,
        )
        self._lent = LentTokens(emit=emit)
        self._timers = timers
        self._rng = rng
        self._context_ids = ContextIds(rng)
        self._gathering = gathering
        self._emit = emit
        self._faults = FaultReports(emit=emit)
        self.open: dict[int, LiveRequest] = {}
        self.own_answers: list[OwnAnswer] = []
        """What became of the client's own requests, and nobody has taken yet."""
        self.retries_by_reason: Counter[RetryReason] = Counter()
        """Retries whose delay is over, including those of completed requests."""
        self.work: int = 0
        """Units of work on received bytes so far."""

    @property
    def count(self) -> int:
        """How many requests of users are open."""
        return sum(not live.is_own for live in self.open.values())

    def use(self, bucket: str) -> bool:
        """Return whether an open request goes to the nodes of a bucket."""
        return any(live.request.bucket == bucket for live in self.open.values())

    # -- A request begins: its deadline, its token, its first dispatch.

    def submit(self, event: RequestSubmitted, now: float) -> None:
        """Begin a request of a user."""
        strategy = event.retry_strategy
        live = self._open(
            event.token,
            event.request,
            now,
            # A strategy may have a length, and be empty.
            strategy=strategy if strategy is not None else self._options.retry_strategy,
            timeout=self._options.timeouts.of_service(event.request.service),
            client_context=event.client_context or {},
        )
        live.traced_as, live.encoding = event.token if event.is_traced else None, event.encoding
        if live.tokens is None:
            self._dispatch(live, now)
        else:
            self._begin(live, self._lent.acquire(event.token, live.tokens, live.deadline - now), now)

    def ask(
        self,
        token: Token,
        request: ServiceRequest,
        endpoint: Endpoint,
        *,
        strategy: couchbase.RetryStrategy,
        timeout: float,
        traced_as: Token | None,
        now: float,
    ) -> None:
        """Begin a request of the client's own to one endpoint, past its breaker; ``own_answers`` has what becomes of it.

        Args:
            traced_as: whose attempts these are to a tracer; None where nobody is told.
        """
        live = self._open(token, request, now, strategy=strategy, timeout=timeout, client_context={})
        live.pinned, live.traced_as = endpoint, traced_as
        self._dispatch(live, now)

    def _open(
        self,
        token: int,
        request: ServiceRequest,
        now: float,
        *,
        strategy: AnyRetryStrategy,
        timeout: float,
        client_context: Mapping[str, object],
    ) -> LiveRequest:
        # Decision T8: a strategy that has both shapes counts as Couchbase's.
        tokens = None if hasattr(strategy, COUCHBASE) else tokens_of(strategy)
        context_id, error_context = None, request.error_context()
        if isinstance(request, IdentifiedRequest):
            context_id = request.client_context_id or self._context_ids.new()
            error_context = replace(error_context, client_context_id=context_id)
        annotation = RequestAnnotation(
            operation=request.name,
            idempotent=request.idempotent,
            strategy=cast(couchbase.AnyRetryStrategy, strategy if tokens is None else tokens),
            submitted_at=now,
            deadline=now + timeout,
            service=request.service,
            client_context=client_context,
            error_context=error_context,
        )
        live = self.open[token] = LiveRequest(
            token,
            request,
            RetryMachine(annotation, rng=self._rng),
            timeout,
            message=request,
            measured=MeasuredRequest(request, now, timeout, context_id),
            context_id=context_id,
            tokens=tokens,
        )
        live.deadline_timer = self._timers.schedule(live.deadline, TimerKind.REQUEST_DEADLINE, live)
        return live

    def _begin(self, live: LiveRequest, first: FirstAttempt, now: float) -> None:
        """Dispatch a request for the first time when its token strategy lets it."""
        match first:
            case Begins(0.0):
                self._dispatch(live, now)
            case Begins(delay):
                live.retry_timer = self._timers.schedule(now + delay, TimerKind.REQUEST_RETRY, live)
            case NotBegun(cause):
                self._fail(live, failures.not_begun(live.retry.error_context(now), cause), now)
            case None:
                # The strategy will be heard, or the deadline is what is waited for.
                pass

    def strategy_decided(self, event: StrategyDecided, now: float) -> None:
        """Carry out what an asynchronous strategy said. Unknown tokens are ignored."""
        live = self.open.get(event.token)
        if live is None:
            return
        if isinstance(live.tokens, AsyncRequestTokens) and live.tokens.is_acquiring:
            self._begin(live, self._lent.decided(live.tokens, event, live.deadline - now), now)
        else:
            self._feed(live, facts.StrategyDecided(event.answer, event.raised), now)

    def backoff_over(self, live: LiveRequest, now: float) -> None:
        """Send a request, or fail it where its delay was cut."""
        if live.tokens is not None and live.tokens.hold_is_over():
            self._dispatch(live, now)
        else:
            self._feed(live, facts.TimePassed(), now)

    # -- It is dispatched: waits for the first config, waits for a connection, is sent.

    def _dispatch(self, live: LiveRequest, now: float) -> None:
        undispatched = self._dispatcher.dispatch(live, now)
        if undispatched is not None:
            self._not_sent(live, undispatched, now)

    def _not_sent(self, live: LiveRequest, undispatched: Undispatched, now: float) -> None:
        """Retry or fail a request of which nothing has left the client."""
        if isinstance(undispatched, Refused):
            self._fail_for_good(live, undispatched.error, undispatched.text, now)
        else:
            self._feed(live, undispatched, now)

    def place(self, now: float) -> None:
        """Dispatch what waits for the first cluster config, if it has come."""
        if self._dispatcher.has_unplaced and self._pool.knows_topology:
            for live in self._dispatcher.take_unplaced():
                self._dispatch(live, now)

    def cluster_not_found(self, reason: RetryReason, detail: str, now: float) -> None:
        """Retry or fail what waits for the first cluster config, because a connection that was to bring it is lost."""
        if not self._pool.knows_topology:
            self._dispatcher.last_loss = detail
            for live in self._dispatcher.take_unplaced():
                self._not_sent(live, self._dispatcher.give_up(live, reason, detail), now)

    def stream_opened(self, event: StreamOpened, now: float) -> None:
        """Use a stream that is open. Unknown ones are ignored."""
        endpoint = self._pool.opened(event, now)
        if endpoint is not None:
            self._dispatcher.serve(endpoint, now)

    # -- Its answer comes, in any number of pieces.

    def bytes_received(self, event: BytesReceived, now: float) -> None:
        """Draw the conclusions from what a node sends. Unknown streams, those that were given up, are ignored."""
        stream = event.stream
        connection = self._pool.connection(stream)
        if connection is None:
            return
        connection.last_heard = now
        received = connection.receive(bytes(event.data))
        self.work += connection.chunk_count * CHUNK_WORK + len(event.data) // HTTP_BYTES_PER_UNIT
        for news in received:
            if self._pool.of_stream(stream) is None:
                # What came before has cost the stream.
                return
            live = self._dispatcher.on_stream(stream)
            if isinstance(news, AnswerBroken):
                self._break(stream, live, news.text, now, fault=connection.fault)
                continue
            assert live is not None, "nothing but nonsense comes where nobody has asked"
            match news:
                case AnswerBegan(status):
                    live.answer.begin(status, rows_of=live.message.rows_of)
                case BodyReceived(piece):
                    self._take_body(live, stream, piece, now)
                case AnswerEnded(is_reusable):
                    self._end_answer(live, stream, is_reusable, now)

    def _take_body(self, live: LiveRequest, stream: StreamId, piece: bytes, now: float) -> None:
        try:
            live.answer.receive(piece)
            self._give(live)
            if live.answer.pauses():
                self._emit(PauseReading(stream))
        except ForeignAnswer as error:
            self._refuse_foreign(live, stream, str(error), now)
        except UnreadableAnswer as error:
            self._break(stream, live, str(error), now)
        except DecoderFault as fault:
            self._break(stream, live, str(fault), now, fault=fault)
        finally:
            self.work += live.answer.work

    def rows_wanted(self, token: int, now: float) -> None:
        """Hand out rows, or the end, as soon as there are any. Unknown tokens are ignored."""
        live = self.open.get(token)
        if live is None or not live.answer.want():
            return
        if not self._give(live):
            self._timers.cancel(live.deadline_timer)
            live.deadline_timer = self._timers.schedule(now + live.timeout, TimerKind.REQUEST_DEADLINE, live)
        if live.stream is not None and live.answer.resumes():
            self._emit(ResumeReading(live.stream))

    def _give(self, live: LiveRequest) -> bool:
        """Hand out the rows that have come, or else the end, to whoever waits for them; return whether anything was."""
        given, token = live.answer.take(), Token(live.token)
        if given is None:
            return False
        if isinstance(given, list):
            self._timers.cancel(live.deadline_timer)
            self._emit(RowsReceived(token, given))
            return True
        self._forget(live)
        if live.is_own:
            self.own_answers.append(OwnAnswer(token, given, live.measured.sent))
        elif isinstance(given, CouchbaseException):
            self._emit(FailOperation(token, given))
        else:
            self._emit(CompleteRequest(token, given))
        return True

    def _end_answer(self, live: LiveRequest, stream: StreamId, is_reusable: bool, now: float) -> None:
        """Judge an answer that is whole, and have its connection carry the next request."""
        if live.message.rows_of is None:
            try:
                live.answer.check_whole()
            except ForeignAnswer as error:
                self._refuse_foreign(live, stream, str(error), now)
                return
            except DecoderFault as fault:
                self._break(stream, live, str(fault), now, fault=fault)
                return
        endpoint = cast(Endpoint, self._pool.of_stream(stream))
        self._dispatcher.take_off(stream)
        self._end_attempt(live, now)
        endpoint.breaker.handle(BreakerEvent.OPERATION_ANSWERED, now)
        if live.answer.resumes(is_whole=True):
            self._emit(ResumeReading(stream))
        if is_reusable:
            self._pool.release(stream, now)
        else:
            self._pool.close(stream, "the node takes no further request on it")
        live.answered_on = stream
        self._judge(live, now)
        # After the decoders: a connection whose answer a decoder failed on carries no further request.
        self._dispatcher.serve(endpoint, now)

    def _judge(self, live: LiveRequest, now: float) -> None:
        """Have the retry machine judge an answer that is whole, unless it is the plan that had to come first."""
        try:
            body = live.answer.whole()
            verdict = _classified(live, body)
        except MalformedRows as error:
            node = live.endpoint.node if live.endpoint is not None else "the node"
            self._fail_unread(live, f"the answer of {node} cannot be read: {error}", now)
            return
        except DecoderFault as fault:
            self._fail_undecoded(live, fault, now)
            return
        self.work += len(body) // PARSED_BYTES_PER_UNIT
        response = facts.ServiceResponse(
            live.request.service,
            live.answer.status,
            body,
            live.request.name,
            is_partial=live.answer.has_given_rows,
            verdict=verdict,
        )
        if isinstance(live.message, PrepareRequest) and verdict.reason is None and verdict.error is None:
            self._take_plan(live, HttpAnswer(live.answer.status, body), now)
        else:
            self._feed(live, facts.ResponseReceived(response), now)

    def _take_plan(self, live: LiveRequest, answer: HttpAnswer, now: float) -> None:
        """Remember the plan that a statement was prepared for, and execute it."""
        try:
            self._statements.learn(live.message, answer)
        except MalformedAnswer as error:
            text = live.secrets.conceal(f"the plan cannot be read: {error}")
            self._fail_for_good(live, DecodingFailureException, text, now)
        except DecoderFault as fault:
            self._fail_undecoded(live, fault, now)
        else:
            self._dispatch(live, now)

    # -- Or none comes: the peer breaks the rules, the stream is lost, the time is up.

    def _break(
        self, stream: StreamId, live: LiveRequest | None, text: str, now: float, *, fault: DecoderFault | None = None
    ) -> None:
        """Close a connection whose peer does not keep to the rules; whose answer it was fails for good.

        Args:
            fault: the defect that caused it, if a decoder failed on bytes of the node.
        """
        endpoint, connection = cast(Endpoint, self._pool.of_stream(stream)), self._pool.connection(stream)
        text = connection.secrets.conceal(text) if connection is not None else text
        if fault is not None:
            self._report_fault(stream, endpoint, fault)
        self._emit(ReportConnection(stream, endpoint.node, text))
        self._dispatcher.close(stream, text)
        if live is not None:
            self._fail_unread(live, f"{endpoint.node} {text}", now)
        self._dispatcher.serve(endpoint, now)

    def _refuse_foreign(self, live: LiveRequest, stream: StreamId, text: str, now: float) -> None:
        """Close a connection that sent the answer to another request, and retry or fail the request as in flight."""
        endpoint = cast(Endpoint, self._pool.of_stream(stream))
        self._emit(ReportConnection(stream, endpoint.node, text, ReportLevel.WARNING))
        self._dispatcher.close(stream, text)
        self._end_attempt(live, now)
        self._lose(live, facts.HandedOver.ALL, f"{endpoint.node} {text}", now)
        self._dispatcher.serve(endpoint, now)

    def stream_lost(self, event: StreamLost, now: float) -> None:
        """Retry or fail what travelled on a stream that is gone, or waited for it."""
        lost = self._pool.lost(event)
        if lost is None:
            return
        live = self._dispatcher.take_off(event.stream)
        if live is not None:
            self._end_attempt(live, now)
            live.answered_on = event.stream
        if lost.connection is None:
            # What comes of it is told of each request.
            self._emit(ReportConnection(event.stream, lost.endpoint.node, lost.detail, ReportLevel.DEBUG))
            reason = RetryReason.TLS_ERROR if event.cause is LossCause.TLS else RetryReason.SOCKET_NOT_AVAILABLE
            self._fail_waiting(lost, reason, now)
        elif live is not None:
            if event.cause is LossCause.UNSOLICITED:
                self._emit(ReportConnection(event.stream, lost.endpoint.node, lost.detail, ReportLevel.WARNING))
            # An answer without a length ends with the stream.
            if event.cause is LossCause.END_OF_STREAM and lost.connection.ends_with_stream():
                self._judge_last(live, lost, now)
            elif lost.connection.fault is not None:
                self._fail_undecoded(live, lost.connection.fault, now)
            else:
                self._lose(live, lost.connection.handed_over(event.handed_over), lost.detail, now)
        self._dispatcher.serve(lost.endpoint, now)

    def _judge_last(self, live: LiveRequest, lost: LostConnection, now: float) -> None:
        """Judge an answer that has ended with its stream."""
        try:
            live.answer.check_whole()
        except ForeignAnswer as error:
            self._lose(live, facts.HandedOver.ALL, f"{lost.endpoint.node} {error}", now)
        except DecoderFault as fault:
            self._fail_undecoded(live, fault, now)
        else:
            self._judge(live, now)

    def _fail_waiting(self, lost: LostConnection, reason: RetryReason, now: float) -> None:
        """Retry or fail, elsewhere if possible, what waits for an endpoint to which a stream could not be opened."""
        while (live := self._dispatcher.next_refused(lost.endpoint)) is not None:
            self._not_sent(live, self._dispatcher.give_up(live, reason, lost.detail), now)

    def _lose(self, live: LiveRequest, handed_over: facts.HandedOver, detail: str, now: float) -> None:
        """Retry or fail a request whose stream is gone before its answer was whole."""
        live.leave_endpoint()
        self._feed(live, facts.SocketClosed(handed_over, detail, is_partial=live.answer.has_given_rows), now)

    def stream_timer_passed(self, stream: StreamId, now: float) -> None:
        """Close a stream that was idle, or did not open in time; what waits for the latter is retried, or fails."""
        lost = self._pool.timer_passed(stream)
        self._pool.prune()
        if lost is not None:
            self._fail_waiting(lost, RetryReason.SOCKET_NOT_AVAILABLE, now)

    def deadline_passed(self, live: LiveRequest, event: TimePassed, now: float) -> None:
        """Fail a request that has run out of time; one that the node has is a failure to the breaker of its endpoint."""
        debtor = live.endpoint if self._is_owed(live, event) else None
        if live.answer.has_given_rows:
            context = live.retry.error_context(now)
            self._fail(live, failures.timeout(context, ambiguous=live.retry.is_ambiguous, last_reason=None), now)
        else:
            undispatched = self._dispatcher.give_up_waiting(live)
            obstacle = live.tokens.obstacle if live.tokens is not None else None
            self._feed(live, undispatched or facts.TimePassed(obstacle=obstacle), now)
        if debtor is not None:
            self._pool.feed_breaker(debtor, BreakerEvent.OPERATION_TIMED_OUT, now)

    def _is_owed(self, live: LiveRequest, event: TimePassed) -> bool:
        """Return whether the node owes the answer (decision C33): the request is sent, and received bytes are read."""
        stream = live.stream
        if stream is None or live.is_own or stream in event.unread:
            return False
        connection = self._pool.connection(stream)
        unsent = event.unsent.get(stream)
        return connection is None or connection.handed_over(unsent) is not facts.HandedOver.NOTHING

    # -- What the retry machine orders.

    def _feed(self, live: LiveRequest, event: facts.RequestEvent, now: float) -> None:
        """Feed the request's retry machine, and carry out what it orders."""
        for action in live.retry.handle(event, now):
            match action:
                case orders.Dispatch():
                    if not live.is_own:
                        self.retries_by_reason[cast(RetryReason, live.retry.last_reason)] += 1
                    self._dispatch(live, now)
                case orders.RetryAfter(delay, dispatches):
                    if live.tokens is not None and not dispatches:
                        live.tokens.give_back()
                    live.leave_endpoint()
                    live.retry_timer = self._timers.schedule(now + delay, TimerKind.REQUEST_RETRY, live)
                case orders.Fail(error):
                    self._fail(live, error, now)
                case orders.Complete(response):
                    assert isinstance(response, facts.ServiceResponse)
                    self._complete(live, response, now)
                case orders.ConsultStrategy(strategy, request, reason):
                    live.leave_endpoint()
                    self._emit(ConsultStrategy(Token(live.token), strategy, request, reason))
                case orders.ReportRetry() | orders.ReportRefusal():
                    self._statements.failed(live.request, action.reason)
                    if not live.is_own:
                        self._report(Token(live.token), action)
                case orders.Ignore():
                    pass
                case orders.RefreshTopology() | orders.RefreshCollection() | orders.CloseConnection():
                    raise AssertionError(f"{action} is for the key-value service")
                case _:
                    assert_never(action)

    def _report(self, token: Token, report: orders.ReportRetry | orders.ReportRefusal) -> None:
        match report:
            case orders.ReportRetry(request, reason, delay, dispatches, node):
                self._emit(ReportRetry(token, request, reason, delay, dispatches, node))
            case orders.ReportRefusal(request, reason, error_name, node):
                self._emit(ReportRefusal(token, request, reason, error_name, node))

    # -- It ends.

    def _complete(self, live: LiveRequest, response: facts.ServiceResponse, now: float) -> None:
        body = response.body.encode() if isinstance(response.body, str) else response.body
        answer = HttpAnswer(response.http_status, body)
        # The answer is here in time, however long its list takes to read.
        self._timers.cancel(live.deadline_timer)
        live.decoding = live.message.decode_in_steps(answer), answer
        self.decode_on(live, now)

    def decode_on(self, live: LiveRequest, now: float) -> None:
        """Decode an answer as far as one event permits, and go on in the next; complete the request at the end."""
        assert live.decoding is not None, "an answer is being decoded"
        steps, answer = live.decoding
        try:
            result, work = _decoded(steps)
            self.work += work
            if result is None:
                live.retry_timer = self._timers.schedule(now, TimerKind.REQUEST_DECODING, live)
                return
            self._statements.learn(live.message, answer)
        except MalformedAnswer as error:
            self._fail_unread(live, f"the answer cannot be read: {error}", now)
            return
        except DecoderFault as fault:
            self._fail_undecoded(live, fault, now)
            return
        if isinstance(result, Listing) and result.unread:
            self._report_unread(live, result.unread)
        self._end_tokens(live, succeeded=True)
        self._settle(live, result, now)

    def _fail_undecoded(self, live: LiveRequest, fault: DecoderFault, now: float) -> None:
        """Fail a request whose answer a decoder failed on, and close the connection that sent the answer."""
        stream = live.answered_on
        if stream is not None and live.endpoint is not None:
            self._report_fault(stream, live.endpoint, fault)
            # A connection that carries another request by now is that request's.
            if stream in live.endpoint.idle:
                self._pool.close(stream, str(fault))
        self._fail_unread(live, f"the answer cannot be read: {fault}", now)

    def _report_fault(self, stream: StreamId, endpoint: Endpoint, fault: DecoderFault) -> None:
        endpoint.last_error = f"{endpoint.node}: {fault}"
        self._faults.report(stream, endpoint.node, fault)

    def _report_unread(self, live: LiveRequest, count: int) -> None:
        """Report that a list is incomplete."""
        node = live.endpoint.node if live.endpoint is not None else "a node"
        text = f"{live.request.name}: unreadable rows left out of the list: {count}"
        self._emit(ReportConnection(StreamId(0), node, text, ReportLevel.WARNING))

    def _fail_unread(self, live: LiveRequest, text: str, now: float) -> None:
        """Fail a request whose answer makes no sense, and say what that leaves open."""
        applied = "" if live.request.idempotent else "; it may have been applied"
        self._fail_for_good(live, DecodingFailureException, f"{live.secrets.conceal(text)}{applied}", now)

    def _fail_for_good(self, live: LiveRequest, error: type[CouchbaseException], text: str, now: float) -> None:
        """Fail a request that cannot succeed, without asking its strategy."""
        context = live.retry.error_context(now)
        self._fail(live, error(f"{failures.subject(context)}: {text}", context), now)

    def _fail(self, live: LiveRequest, error: CouchbaseException, now: float) -> None:
        """Fail a request, after the rows that have come, if any were handed out before."""
        self._end_attempt(live, now)
        self._end_tokens(live, succeeded=live.retry.is_answered and says_well(error))
        self._leave(live, "its request has failed", now)
        self._settle(live, error, now)

    def abandon(
        self,
        token: int,
        now: float,
        reason: AbandonReason = AbandonReason.CANCELLED,
        *,
        fault: DecoderFault | None = None,
    ) -> None:
        """Measure and forget a request whose caller has left. Close its connection if the answer is incomplete.

        A complete answer is measured already, so the time during which its rows wait for their reader does not count.

        Args:
            reason: what telemetry records; a caller that needs no further rows leaves no failure.
            fault: the defect if the decoder of its rows failed. Then an idle connection is closed, too.
        """
        live = self.open.get(token)
        if live is not None:
            stream = live.stream if live.stream is not None else live.answered_on
            if fault is not None and stream is not None and live.endpoint is not None:
                self._report_fault(stream, live.endpoint, fault)
                if stream in live.endpoint.idle:
                    self._pool.close(stream, str(fault))
            if live.answer.outcome is None and not live.is_own:
                live.measured.end_attempt(now)
                self._measure(live, now, abandoned=None if reason is AbandonReason.NOT_NEEDED else reason)
            # Who leaves with rows in hand has got an answer.
            self._end_tokens(live, succeeded=live.answer.has_given_rows)
            self._leave(live, "the caller has left", now)
            self._forget(live)

    def _leave(self, live: LiveRequest, reason: str, now: float) -> None:
        """Take a request from wherever it stands, and wait for nothing more."""
        self._dispatcher.leave(live, reason, now)
        self._timers.cancel(live.deadline_timer)
        self._timers.cancel(live.retry_timer)

    def _settle(self, live: LiveRequest, outcome: Outcome, now: float) -> None:
        """Decide what a request comes to; it is handed out behind the rows that somebody has yet to take."""
        if not live.is_own:
            self._measure(live, now)
            if live.traced_as is not None:
                error = outcome if isinstance(outcome, CouchbaseException) else None
                self._emit(ReportEnd(live.traced_as, error))
        live.answer.outcome = outcome
        self._give(live)

    def _end_tokens(self, live: LiveRequest, *, succeeded: bool) -> None:
        if live.tokens is not None:
            self._lent.end(Token(live.token), live.tokens, succeeded=succeeded)

    def _end_attempt(self, live: LiveRequest, now: float) -> None:
        """Measure the attempt that is over, if there is one, and tell of it where that is asked for."""
        over = live.measured.end_attempt(now)
        if over is not None and live.traced_as is not None:
            self._emit(ReportAnswer(live.traced_as, {}, over.stream))

    def _measure(self, live: LiveRequest, now: float, *, abandoned: AbandonReason | None = None) -> None:
        """Gather how long a request took whose answer is whole, or will not come."""
        service, took = live.request.service, now - live.measured.submitted_at
        thresholds, durations = self._gathering.thresholds, self._gathering.durations
        if durations is not None:
            durations.count(service, SPAN_NAMES[live.request.name], took, now)
        if thresholds is not None and took >= thresholds[service]:
            self._gathering.slow(live.measured.facts(now, abandoned=abandoned), now)

    def _forget(self, live: LiveRequest) -> None:
        """Forget a request that neither waits nor travels any more."""
        del self.open[live.token]
        self._timers.cancel(live.deadline_timer)
        self._timers.cancel(live.retry_timer)

    # -- What is asked from outside.

    def take_own_answers(self) -> list[OwnAnswer]:
        """Return what became of the client's own requests, each once."""
        answers, self.own_answers = self.own_answers, []
        return answers

    def authenticator_changed(self, authenticator: Authenticator, now: float) -> None:
        """Have requests that are sent from now on speak for somebody else."""
        self._pool.authenticator_changed(authenticator)
        for endpoint in self._pool.all_waited_for():
            self._dispatcher.serve(endpoint, now)

    def is_ambiguous(self, token: int) -> bool:
        """Tell whether a request, given up now, may still be applied or have been. False for unknown tokens."""
        live = self.open.get(token)
        if live is None:
            return False
        # An answer whose rows are still being read has done what it was asked for, whatever comes behind them.
        return live.retry.is_ambiguous or (live.answer.has_given_rows and not live.request.idempotent)

    def error_context(self, token: int, now: float) -> ErrorContext | None:
        """Return what is known of a request that is given up now; None for unknown tokens."""
        live = self.open.get(token)
        if live is None:
            return None
        context, reason = live.abandoned_context(now), self._dispatcher.reason_of_waiting(live)
        return context if reason is None else replace(context, retry_reasons=context.retry_reasons | {str(reason)})


def _classified(live: LiveRequest, body: bytes) -> ServiceVerdict:
    """Return the classification of a complete answer.

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
            has_query_context=live.retry.annotation.error_context.scope is not None,
        )
    except Exception as error:
        raise decoder_faults.unexpected(Decoder.SERVICE_VERDICT, error) from None
    if live.is_own and verdict.reason is not None and verdict.reason.always_retry:
        # A ping reports the answer of its endpoint, and its strategy cannot refuse this reason.
        return replace(verdict, reason=None)
    return verdict


def _decoded(steps: Steps[ServiceResult]) -> tuple[ServiceResult | None, int]:
    """Return the result in a successful answer, or None if this event has done enough; and the work that was done.

    Raises:
        MalformedAnswer: the body is not a valid answer of the service.
        DecoderFault: the decoder failed.
    """
    work = 0
    try:
        while work <= READ_AT_ONCE_MAX:
            work += next(steps)
    except StopIteration as end:
        return cast(ServiceResult, end.value), work
    except MalformedAnswer:
        raise
    except Exception as error:
        raise decoder_faults.unexpected(Decoder.SERVICE_ANSWER, error) from None
    return None, work
