"""The life of requests over HTTP: from submission through attempts and retries to settlement, each exactly once.

A request goes to the endpoint with the least to do, on a connection that is free, or as soon as one is. Every failure
goes to its retry machine; this module carries out what that one orders. Rows leave when somebody asks for them. What
has come and is not wanted yet is held, and beyond a bound nothing more is read.

Once rows were handed out a request is not retried: whoever reads them would get them twice.

Source: SDK-RFC 0049 "Retry Orchestration"; SDK-RFC 0059 "HTTP"; decisions C6, C22, C24, C25.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, assert_never, cast

from triclinium_core.client.actions import (
    AcquireToken,
    Action,
    CompleteRequest,
    ConsultStrategy,
    FailOperation,
    PauseReading,
    RecordSuccess,
    ReportAnswer,
    ReportConnection,
    ReportDispatch,
    ReportEnd,
    ReportLevel,
    ReportRefusal,
    ReportRetry,
    ReportStrategyError,
    ResumeReading,
    RowsReceived,
    SendBytes,
)
from triclinium_core.client.events import (
    BytesReceived,
    LossCause,
    RequestSubmitted,
    StrategyDecided,
    StreamId,
    StreamLost,
    StreamOpened,
    Token,
)
from triclinium_core.client.timers import TimerKind, Timers
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import (
    CouchbaseException,
    DecodingFailureException,
    FeatureNotAvailableException,
    RequestCanceledException,
)
from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.capabilities import ClusterCapability
from triclinium_core.kv.topology.topology import Topology
from triclinium_core.options import Authenticator, ClientOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.combined.request_tokens import AsyncRequestTokens, says_well, tokens_of
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.retry.couchbase import actions as orders, events as facts, failures, strategy as couchbase
from triclinium_core.retry.couchbase.circuit_breaker import BreakerEvent
from triclinium_core.retry.couchbase.machine import RequestAnnotation, RetryMachine
from triclinium_core.retry.couchbase.states import RequestState
from triclinium_core.retry.couchbase.tables import service_responses
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.terminal_states import TerminalStates
from triclinium_core.retry.kinds import COUCHBASE
from triclinium_core.services.connection import AnswerBegan, AnswerBroken, AnswerEnded, BodyReceived, HttpConnection
from triclinium_core.services.endpoint import WAITING_MAX, Endpoint, choose
from triclinium_core.services.live_request import (
    BODY_SIZE_BYTES_MAX,
    HELD_SIZE_BYTES,
    HELD_SIZE_BYTES_MAX,
    LiveRequest,
    SentPing,
    waits_for,
)
from triclinium_core.services.ping import PINGS, NoRetry
from triclinium_core.services.pool import LostConnection, Pool
from triclinium_core.services.query.plans import PreparedPlan, PreparedPlans
from triclinium_core.services.query.request import PrepareRequest, QueryRequest
from triclinium_core.services.request import HttpAnswer, MalformedAnswer, ServiceRequest
from triclinium_core.services.rows import MalformedRows
from triclinium_core.telemetry.attributes import dispatch_attributes
from triclinium_core.telemetry.gathering import Gathering
from triclinium_core.telemetry.span_names import SPAN_NAMES

SECONDS_LEFT_MIN = 0.001
"""What a service is given at least: to some of them 0 is no limit."""
HTTP_OK = 200
"""Rows of any other answer belong to an error."""


class PingOutcome(NamedTuple):
    """What became of a ping of one endpoint."""

    owner: object
    endpoint: Endpoint
    error: CouchbaseException | None
    """Why the service did not answer well; None where it did."""
    sent: SentPing | None
    """None where it was never sent."""


REASONS_TO_PREPARE_AGAIN = frozenset({RetryReason.QUERY_PREPARED_STATEMENT_FAILURE, RetryReason.QUERY_INDEX_NOT_FOUND})
"""The plan is stale, or reads an index that is gone: executed again, it would fail again."""


class OpenRequests:
    """All open requests of a client, by token."""

    def __init__(
        self,
        options: ClientOptions,
        *,
        tls: bool,
        stream_ids: Callable[[], StreamId],
        topologies: Callable[[], tuple[Topology, ...]],
        capabilities: Callable[[Service], frozenset[ClusterCapability]],
        terminal_states: TerminalStates,
        timers: Timers,
        rng: Random,
        gathering: Gathering,
        own_address: Callable[[Address], Address],
        emit: Callable[[Action], None],
    ) -> None:
        self._options = options
        self._topologies = topologies
        self._capabilities = capabilities
        self._terminal_states = terminal_states
        self._timers = timers
        self._rng = rng
        self._gathering = gathering
        self._own_address = own_address
        """What a node is called in its own network."""
        self._emit = emit
        self._pool = Pool(options, tls=tls, stream_ids=stream_ids, timers=timers, emit=emit)
        self._travelling: dict[StreamId, LiveRequest] = {}
        """The request that waits for its answer on each stream."""
        self._unplaced: dict[int, LiveRequest] = {}
        """Requests that wait for the first cluster config."""
        self._sending: list[SendBytes] = []
        self._plans = PreparedPlans()
        self._last_ping = 0
        self.ping_outcomes: list[PingOutcome] = []
        """What became of pings, and nobody has taken yet."""
        self.retries_by_reason: Counter[RetryReason] = Counter()
        """Retries ordered so far, of requests that are settled too."""
        self.open: dict[int, LiveRequest] = {}

    # -- What users do.

    def submit(self, event: RequestSubmitted, now: float) -> None:
        """Begin a request: its first dispatch, and its deadline."""
        strategy = event.retry_strategy
        live = self._begin(
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
            self._acquire_token(live, now)

    def _acquire_token(self, live: LiveRequest, now: float) -> None:
        """Ask a token strategy for the first attempt of a request."""
        tokens = live.tokens
        if isinstance(tokens, AsyncRequestTokens):
            self._emit(AcquireToken(Token(live.token), tokens))
        elif tokens is not None:
            try:
                delay = tokens.acquire()
            except Exception as error:
                self._fail(live, failures.not_begun(live.retry.error_context(now), error), now)
            else:
                self._hold_back(live, delay, now)

    def _hold_back(self, live: LiveRequest, delay: float, now: float) -> None:
        """Dispatch a request for the first time in ``delay`` seconds; one that has no time for that waits for its deadline."""
        tokens = live.tokens
        assert tokens is not None
        wait = tokens.postpone(delay, live.deadline - now)
        if wait == 0.0:
            self._dispatch(live, now)
        elif wait is not None:
            live.retry_timer = self._timers.schedule(now + wait, TimerKind.REQUEST_RETRY, live)

    def ping(
        self, owner: object, endpoint: Endpoint, seconds: float, now: float, *, traced_as: Token | None = None
    ) -> None:
        """Ask an endpoint whether it answers, and have ``ping_outcomes`` tell, after so many seconds at the latest.

        Args:
            traced_as: whose attempt it is to a tracer; None where nobody is told.
        """
        self._last_ping += 1
        live = self._begin(
            -self._last_ping,
            PINGS[endpoint.service](),
            now,
            strategy=NoRetry(),
            timeout=seconds,
            client_context={},
        )
        live.owner, live.pinned, live.traced_as = owner, endpoint, traced_as
        self._dispatch(live, now)

    def stop_pings(self, owner: object, now: float) -> None:
        """Forget the pings of one owner, and close the streams that were to be opened for them alone."""
        for live in [live for live in self.open.values() if live.owner is owner]:
            self.abandon(live.token, now)
            if live.pinned is not None:
                self._pool.close_needless(live.pinned)

    def endpoints_of(self, service: Service, bucket: str | None = None) -> list[Endpoint]:
        """Return the endpoints that have a service by the newest topology."""
        return self._pool.endpoints_of(service, self._topologies(), bucket)

    @property
    def count(self) -> int:
        """How many requests of users are open."""
        return sum(live.owner is None for live in self.open.values())

    @property
    def knows_topology(self) -> bool:
        """Whether a cluster config has come, which tells where the services are."""
        return bool(self._topologies())

    @property
    def endpoints(self) -> Collection[Endpoint]:
        """All endpoints that anything was ever sent to, or looked for."""
        return self._pool.endpoints

    def _begin(
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
        annotation = RequestAnnotation(
            operation=request.name,
            idempotent=request.idempotent,
            strategy=cast(couchbase.AnyRetryStrategy, strategy if tokens is None else tokens),
            submitted_at=now,
            deadline=now + timeout,
            service=request.service,
            client_context=client_context,
            error_context=request.error_context(),
        )
        live = LiveRequest(token, request, RetryMachine(annotation, rng=self._rng), timeout, request, tokens=tokens)
        self.open[token] = live
        live.deadline_timer = self._timers.schedule(live.deadline, TimerKind.REQUEST_DEADLINE, live)
        return live

    def rows_wanted(self, token: int, now: float) -> None:
        """Hand out rows, or the end, as soon as there are any. Unknown tokens are ignored."""
        live = self.open.get(token)
        if live is None or live.wants_rows:
            return
        live.wants_rows = True
        self._give(live, now)
        if token in self.open and live.wants_rows:
            self._timers.cancel(live.deadline_timer)
            live.deadline_timer = self._timers.schedule(now + live.timeout, TimerKind.REQUEST_DEADLINE, live)
        if live.is_paused and live.stream is not None and live.rows_size < HELD_SIZE_BYTES:
            live.is_paused = False
            self._emit(ResumeReading(live.stream))

    def abandon(self, token: int, now: float) -> None:
        """Forget a request whose caller has left; its connection is closed where the answer is not whole."""
        live = self.open.get(token)
        if live is not None:
            # Who leaves with rows in hand has got an answer.
            self._end_tokens(live, succeeded=live.has_given_rows)
            self._leave(live, "the caller has left", now)
            self._forget(live)

    def strategy_decided(self, event: StrategyDecided, now: float) -> None:
        """Carry out what an asynchronous strategy said. Unknown tokens are ignored."""
        live = self.open.get(event.token)
        if live is None:
            return
        tokens = live.tokens
        if not isinstance(tokens, AsyncRequestTokens) or not tokens.is_acquiring:
            self._feed(live, facts.StrategyDecided(event.answer, event.raised), now)
            return
        tokens.is_acquiring = False
        if event.answer is None or event.answer.delay is None:
            self._fail(live, failures.not_begun(live.retry.error_context(now), event.raised), now)
        else:
            self._hold_back(live, event.answer.delay, now)

    def authenticator_changed(self, authenticator: Authenticator, now: float) -> None:
        """Have requests that are sent from now on speak for somebody else."""
        self._pool.authenticator_changed(authenticator)
        for endpoint in self._pool.all_waited_for():
            self._serve(endpoint, now)

    def is_ambiguous(self, token: int) -> bool:
        """Tell whether a request, given up now, may still be applied or have been. False for unknown tokens."""
        live = self.open.get(token)
        if live is None:
            return False
        # An answer whose rows are still being read has done what it was asked for, whatever comes behind them.
        return live.retry.is_ambiguous or (live.has_given_rows and not live.request.idempotent)

    def error_context(self, token: int, now: float) -> ErrorContext | None:
        """Return what is known of a request that is given up now; None for unknown tokens."""
        live = self.open.get(token)
        return live.abandoned_context(now) if live is not None else None

    # -- Where requests go.

    def place(self, now: float) -> None:
        """Dispatch what waits for the first cluster config, if it has come."""
        if not self._unplaced or not self._topologies():
            return
        unplaced, self._unplaced = self._unplaced, {}
        for live in unplaced.values():
            self._dispatch(live, now)

    def cluster_not_found(self, detail: str, now: float) -> None:
        """Retry or fail what waits for the first cluster config, because a connection that was to bring it is lost."""
        if self._topologies():
            return
        unplaced, self._unplaced = self._unplaced, {}
        for live in unplaced.values():
            self._fail_dispatch(live, RetryReason.NODE_NOT_AVAILABLE, detail, now)

    def take_sending(self) -> list[SendBytes]:
        """Return what was ordered to be sent, once; it goes last."""
        sending, self._sending = self._sending, []
        return sending

    def _dispatch(self, live: LiveRequest, now: float) -> None:
        topologies = self._topologies()
        if not topologies:
            self._unplaced[live.token] = live
            return
        service, bucket = live.request.service, live.request.bucket
        endpoints = self.endpoints_of(service, bucket)
        endpoint = live.pinned or choose(endpoints, avoided=live.failed_at)
        missing = live.request.required_capabilities - self._capabilities(service)
        if missing:
            text = f"the cluster cannot do it: it lacks {', '.join(sorted(missing))}"
            self._fail_for_good(live, FeatureNotAvailableException, text, now)
        elif not endpoints and endpoint is None:
            detail = f"no node{f' of bucket {bucket}' if bucket is not None else ''} has the {service} service"
            self._fail_dispatch(live, RetryReason.SERVICE_NOT_AVAILABLE, detail, now)
        elif endpoint is None:
            detail = f"the circuit breakers of {', '.join(each.node for each in endpoints[:8])} are open"
            self._fail_dispatch(live, RetryReason.CIRCUIT_BREAKER_OPEN, detail, now)
        elif len(endpoint.waiting) >= WAITING_MAX:
            detail = f"{WAITING_MAX} requests wait for a connection to {endpoint.node} already"
            self._fail_dispatch(live, RetryReason.SOCKET_NOT_AVAILABLE, detail, now)
        else:
            live.endpoint = endpoint
            endpoint.waiting[live.token] = None
            self._serve(endpoint, now)

    def _serve(self, endpoint: Endpoint, now: float) -> None:
        """Send what waits for an endpoint on connections that are free."""
        for token, stream in self._pool.pairs(endpoint, now):
            self._send(self.open[token], endpoint, stream, now)

    def _send(self, live: LiveRequest, endpoint: Endpoint, stream: StreamId, now: float) -> None:
        connection = endpoint.connections[stream]
        live.message = self._message(live.request)
        remaining = max(live.deadline - now, SECONDS_LEFT_MIN)
        if live.encoding is None or not live.message.has_body:
            data = connection.send(live.message.encode(remaining))
        else:
            encoded, seconds = live.encoding(lambda: live.message.encode(remaining))
            live.encode_seconds = (live.encode_seconds or 0.0) + seconds
            data = connection.send(encoded)
        live.stream = stream
        live.is_paused = False
        live.dispatched_at, live.dispatched_on = now, stream
        live.sockets = (connection.local_address, connection.remote_address or endpoint.node)
        if live.owner is not None:
            live.sent = SentPing(stream, connection.local_address, now)
        if live.traced_as is not None:
            own = self._own_address(endpoint.address)
            attributes = dispatch_attributes(
                (own.host, own.port), peer=connection.remote_address, operation_id=live.operation_id
            )
            self._emit(ReportDispatch(live.traced_as, attributes, stream))
        self._travelling[stream] = live
        self._sending.append(SendBytes(stream, data))
        if live.tokens is not None:
            live.tokens.begin()
        if live.retry.state is RequestState.PENDING:
            live.retry.handle(facts.Dispatched(endpoint.node, sender=connection.local_address), now)

    def _message(self, request: ServiceRequest) -> ServiceRequest:
        """Return what to send for a request: itself, the plan of its statement, or what asks for that."""
        if not isinstance(request, QueryRequest) or request.adhoc:
            return request
        plan = self._plans.recall(request.plan_key)
        if plan is not None:
            return request.with_plan(plan)
        enhanced = ClusterCapability.ENHANCED_PREPARED_STATEMENTS in self._capabilities(Service.QUERY)
        return request.preparation(enhanced=enhanced)

    def _fail_dispatch(self, live: LiveRequest, reason: RetryReason, detail: str, now: float) -> None:
        """Retry or fail a request of which nothing has left the client."""
        endpoint, live.endpoint = live.endpoint, None
        if endpoint is not None:
            endpoint.waiting.pop(live.token, None)
            live.failed_at = endpoint.address
        node = endpoint.node if endpoint is not None else None
        reason = self._terminal_states.reason_for(live.request.service) or reason
        if live.retry.state is RequestState.IN_FLIGHT:
            # What had to go before it was answered, and the request itself cannot be sent.
            self._feed(live, facts.SocketClosed(facts.HandedOver.NOTHING, detail, reason), now)
        else:
            self._feed(live, facts.DispatchFailed(reason, detail, node=node), now)

    # -- What streams tell.

    def stream_opened(self, event: StreamOpened, now: float) -> None:
        """Use a stream that is open. Unknown ones are ignored."""
        endpoint = self._pool.opened(event, now)
        if endpoint is not None:
            self._serve(endpoint, now)

    def bytes_received(self, event: BytesReceived, now: float) -> None:
        """Draw the conclusions from what a node sends. Unknown streams, those that were given up, are ignored."""
        connection = self._pool.connection(event.stream)
        if connection is not None:
            connection.last_heard = now
            self._hear(event.stream, connection, bytes(event.data), now)

    def stream_lost(self, event: StreamLost, now: float) -> None:
        """Retry or fail what travelled on a stream that is gone, or waited for it."""
        lost = self._pool.lost(event)
        if lost is None:
            return
        live = self._travelling.pop(event.stream, None)
        if live is not None:
            self._end_attempt(live, now)
        if lost.connection is None:
            # What comes of it is told of each request.
            self._emit(ReportConnection(event.stream, lost.endpoint.node, lost.detail, ReportLevel.DEBUG))
            reason = RetryReason.TLS_ERROR if event.cause is LossCause.TLS else RetryReason.SOCKET_NOT_AVAILABLE
            self._fail_waiting(lost, reason, now)
        elif live is not None:
            live.stream = None
            # An answer without a length ends with the stream.
            if event.cause is LossCause.END_OF_STREAM and lost.connection.ends_with_stream():
                self._judge(live, now)
            else:
                self._lose(live, lost.connection.handed_over(event.handed_over), lost.detail, now)
        self._serve(lost.endpoint, now)

    def _fail_waiting(self, lost: LostConnection, reason: RetryReason, now: float) -> None:
        """Retry or fail, elsewhere if possible, what waits for an endpoint to which a stream could not be opened.

        Where there are other connections to it, those who are first in line wait for them. For each of the others one
        more stream would be opened at once, and refused at once.
        """
        endpoint = lost.endpoint
        while endpoint.needs_stream or (endpoint.waiting and not endpoint.connections):
            token = next(reversed(endpoint.waiting) if endpoint.connections else iter(endpoint.waiting))
            self._fail_dispatch(self.open[token], reason, lost.detail, now)

    def _lose(self, live: LiveRequest, handed_over: facts.HandedOver, detail: str, now: float) -> None:
        """Retry or fail a request whose stream is gone before its answer was whole."""
        live.leave_endpoint()
        if live.has_given_rows:
            text = f"the connection was lost while rows were read: {detail}; ask again, for a part is missing"
            self._fail_for_good(live, RequestCanceledException, text, now)
            return
        live.drop_rows()
        self._feed(live, facts.SocketClosed(handed_over, detail), now)

    def _hear(self, stream: StreamId, connection: HttpConnection, data: bytes, now: float) -> None:
        for news in connection.receive(data):
            if self._pool.of_stream(stream) is None:
                # What came before has cost the stream.
                return
            live = self._travelling.get(stream)
            if isinstance(news, AnswerBroken):
                self._break(stream, live, news.text, now)
                continue
            assert live is not None, "nothing but nonsense comes where nobody has asked"
            match news:
                case AnswerBegan(status):
                    live.begin_answer(status)
                case BodyReceived(piece):
                    self._take_body(live, stream, piece, now)
                case AnswerEnded(is_reusable):
                    self._end_answer(live, stream, is_reusable, now)

    def _take_body(self, live: LiveRequest, stream: StreamId, data: bytes, now: float) -> None:
        if live.splitter is None:
            live.body += data
            if len(live.body) > BODY_SIZE_BYTES_MAX:
                self._break(stream, live, f"answered more than {BODY_SIZE_BYTES_MAX} bytes", now)
            return
        try:
            rows = live.splitter.feed(data)
        except MalformedRows as error:
            self._break(stream, live, f"answered what is no list of rows: {error}", now)
            return
        # Those of an error would be held until somebody wants them, and nobody ever does.
        if rows and live.status == HTTP_OK:
            live.rows += rows
            live.rows_size += sum(map(len, rows))
            self._give(live, now)
        if live.rows_size >= HELD_SIZE_BYTES and not live.is_paused:
            live.is_paused = True
            self._emit(PauseReading(stream))
        elif live.rows_size > HELD_SIZE_BYTES_MAX:
            self._break(stream, live, f"sent {HELD_SIZE_BYTES_MAX} bytes of rows that nobody has asked for", now)

    def _break(self, stream: StreamId, live: LiveRequest | None, text: str, now: float) -> None:
        """Close a connection whose peer does not keep to the rules; whose answer it was fails for good."""
        endpoint = cast(Endpoint, self._pool.of_stream(stream))
        self._emit(ReportConnection(stream, endpoint.node, text))
        self._close(stream, text)
        if live is not None:
            applied = "" if live.request.idempotent else "; it may have been applied"
            self._fail_for_good(live, DecodingFailureException, f"{endpoint.node} {text}{applied}", now)
        self._serve(endpoint, now)

    def _end_answer(self, live: LiveRequest, stream: StreamId, is_reusable: bool, now: float) -> None:
        """Judge an answer that is whole, and have its connection carry the next request."""
        endpoint = cast(Endpoint, self._pool.of_stream(stream))
        del self._travelling[stream]
        self._end_attempt(live, now)
        live.stream = None
        endpoint.breaker.handle(BreakerEvent.OPERATION_ANSWERED, now)
        if live.is_paused:
            live.is_paused = False
            self._emit(ResumeReading(stream))
        if is_reusable:
            self._pool.release(stream, now)
        else:
            self._close(stream, "the node takes no further request on it")
        self._serve(endpoint, now)
        self._judge(live, now)

    def _judge(self, live: LiveRequest, now: float) -> None:
        try:
            body = bytes(live.body) if live.splitter is None else live.splitter.finish()
        except MalformedRows as error:
            node = live.endpoint.node if live.endpoint is not None else "the node"
            self._fail_for_good(live, DecodingFailureException, f"the answer of {node} cannot be read: {error}", now)
            return
        response = facts.ServiceResponse(
            live.request.service, live.status, body, live.request.name, is_partial=live.has_given_rows
        )
        if isinstance(live.message, PrepareRequest) and _is_success(response):
            self._take_plan(live, live.message.query, HttpAnswer(live.status, body), now)
            return
        self._feed(live, facts.ResponseReceived(response), now)

    def _take_plan(self, live: LiveRequest, query: QueryRequest, answer: HttpAnswer, now: float) -> None:
        """Remember the plan that a statement was prepared for, and execute it."""
        try:
            plan = live.message.decode(answer)
        except MalformedAnswer as error:
            self._fail_for_good(live, DecodingFailureException, f"the plan cannot be read: {error}", now)
            return
        assert isinstance(plan, PreparedPlan)
        self._plans.remember(query.plan_key, plan)
        self._dispatch(live, now)

    def _complete(self, live: LiveRequest, response: facts.ServiceResponse, now: float) -> None:
        body = response.body.encode() if isinstance(response.body, str) else response.body
        answer = HttpAnswer(response.http_status, body)
        try:
            live.outcome = live.message.decode(answer)
            if isinstance(live.message, QueryRequest) and live.message.auto_execute:
                plan = live.message.plan_of(answer)
                if plan is not None:
                    self._plans.remember(live.message.plan_key, plan)
        except MalformedAnswer as error:
            self._fail_for_good(live, DecodingFailureException, f"the answer cannot be read: {error}", now)
            return
        self._timers.cancel(live.deadline_timer)
        self._end_tokens(live, succeeded=True)
        self._measure(live, now)
        self._give(live, now)

    def _end_attempt(self, live: LiveRequest, now: float) -> None:
        """Measure the attempt that is over, if there is one, and tell of it where that is asked for."""
        if live.end_attempt(now) and live.traced_as is not None and live.dispatched_on is not None:
            self._emit(ReportAnswer(live.traced_as, {}, live.dispatched_on))

    def _measure(self, live: LiveRequest, now: float) -> None:
        """Tell how long a request took whose answer is whole, or will not come; pings are nobody's."""
        if live.owner is not None:
            return
        service, took = live.request.service, now - live.retry.annotation.submitted_at
        thresholds, durations = self._gathering.thresholds, self._gathering.durations
        if durations is not None:
            durations.count(service, SPAN_NAMES[live.request.name], took, now)
        if thresholds is not None and took >= thresholds[service]:
            self._gathering.slow(live.facts(now), now)
        if live.traced_as is not None:
            outcome = live.outcome
            self._emit(ReportEnd(live.traced_as, outcome if isinstance(outcome, CouchbaseException) else None))

    def _give(self, live: LiveRequest, now: float) -> None:
        """Hand out the rows that have come, or else the end, to whoever waits for them."""
        if not live.wants_rows:
            return
        token, outcome = Token(live.token), live.outcome
        if live.owner is not None and live.pinned is not None:
            if outcome is not None:
                self._forget(live)
                error = outcome if isinstance(outcome, CouchbaseException) else None
                self.ping_outcomes.append(PingOutcome(live.owner, live.pinned, error, live.sent))
        elif live.rows:
            self._timers.cancel(live.deadline_timer)
            self._emit(RowsReceived(token, live.take_rows()))
        elif isinstance(outcome, CouchbaseException):
            self._forget(live)
            self._emit(FailOperation(token, outcome))
        elif outcome is not None:
            self._forget(live)
            self._emit(CompleteRequest(token, outcome))

    def _close(self, stream: StreamId, reason: str) -> None:
        live = self._travelling.pop(stream, None)
        if live is not None:
            live.stream = None
        self._pool.close(stream, reason)

    # -- What is due.

    def on_timer(self, kind: TimerKind, subject: object, now: float) -> None:
        """Do what is due."""
        if isinstance(subject, Endpoint):
            self._pool.prune(self._topologies())
            if self._pool.has(subject):
                self._feed_breaker(subject, BreakerEvent.TIME_PASSED, now)
        elif not isinstance(subject, LiveRequest):
            lost = self._pool.timer_passed(cast(StreamId, subject))
            self._pool.prune(self._topologies())
            if lost is not None:
                self._fail_waiting(lost, RetryReason.SOCKET_NOT_AVAILABLE, now)
        elif kind is TimerKind.REQUEST_RETRY:
            if subject.tokens is not None and subject.tokens.obstacle is not None:
                subject.tokens.obstacle = None
                self._dispatch(subject, now)
            else:
                self._feed(subject, facts.TimePassed(), now)
        else:
            self._run_out(subject, now)

    def _run_out(self, live: LiveRequest, now: float) -> None:
        """Fail a request that has run out of time."""
        endpoint, was_sent = live.endpoint, live.stream is not None
        if live.has_given_rows:
            context = live.retry.error_context(now)
            self._fail(live, failures.timeout(context, ambiguous=live.retry.is_ambiguous, last_reason=None), now)
        elif endpoint is not None and not was_sent:
            self._fail_dispatch(live, RetryReason.SOCKET_NOT_AVAILABLE, waits_for(endpoint), now)
        elif live.token in self._unplaced:
            self._fail_dispatch(live, RetryReason.NODE_NOT_AVAILABLE, waits_for(None), now)
        else:
            obstacle = live.tokens.obstacle if live.tokens is not None else None
            self._feed(live, facts.TimePassed(obstacle=obstacle), now)
        if was_sent and endpoint is not None and live.owner is None:
            self._feed_breaker(endpoint, BreakerEvent.OPERATION_TIMED_OUT, now)

    def _feed_breaker(self, endpoint: Endpoint, event: BreakerEvent, now: float) -> None:
        """Tell an endpoint's breaker what happened, and send the canary, a ping, where it asks for it."""
        if endpoint.breaker.handle(event, now):
            self.ping(endpoint, endpoint, endpoint.breaker.canary_timeout, now)
        self._timers.cancel(endpoint.breaker_timer)
        endpoint.breaker_timer = self._timers.schedule(endpoint.breaker.wakeup, TimerKind.HTTP_BREAKER, endpoint)

    def hear_canaries(self, now: float) -> list[PingOutcome]:
        """Tell breakers what became of their canaries, and return what became of all other pings."""
        outcomes, self.ping_outcomes = self.ping_outcomes, []
        for owner, endpoint, error, _ in outcomes:
            if owner is endpoint:
                # Whatever the node says, it answers; a breaker counts nothing else of requests either.
                is_answered = error is None or error.context.http_status is not None
                event = BreakerEvent.CANARY_ANSWERED if is_answered else BreakerEvent.CANARY_TIMED_OUT
                self._feed_breaker(endpoint, event, now)
        return [outcome for outcome in outcomes if outcome.owner is not outcome.endpoint]

    # -- What the retry machine orders.

    def _feed(self, live: LiveRequest, event: facts.RequestEvent, now: float) -> None:
        """Feed the request's retry machine, and carry out what it orders."""
        token = Token(live.token)
        for action in live.retry.handle(event, now):
            match action:
                case orders.Dispatch():
                    self._dispatch(live, now)
                case orders.RetryAfter(delay, dispatches):
                    if live.tokens is not None and not dispatches:
                        live.tokens.give_back()
                    live.drop_rows()
                    live.leave_endpoint()
                    live.retry_timer = self._timers.schedule(now + delay, TimerKind.REQUEST_RETRY, live)
                case orders.Fail(error):
                    self._fail(live, error, now)
                case orders.Complete(response):
                    assert isinstance(response, facts.ServiceResponse)
                    self._complete(live, response, now)
                case orders.ConsultStrategy(strategy, request, reason):
                    live.leave_endpoint()
                    self._emit(ConsultStrategy(token, strategy, request, reason))
                case orders.ReportRetry() | orders.ReportRefusal() if live.owner is not None:
                    # Nobody asked who could be told; the outcome tells all.
                    pass
                case orders.ReportRetry(request, reason, delay, dispatches, node):
                    self.retries_by_reason[reason] += 1
                    self._forget_plan(live, reason)
                    self._emit(ReportRetry(token, request, reason, delay, dispatches, node))
                case orders.ReportRefusal(request, reason, error_name, node):
                    self._forget_plan(live, reason)
                    self._emit(ReportRefusal(token, request, reason, error_name, node))
                case orders.Ignore():
                    pass
                case orders.RefreshTopology() | orders.RefreshCollection() | orders.CloseConnection():
                    raise AssertionError(f"{action} is for the key-value service")
                case _:
                    assert_never(action)

    def _forget_plan(self, live: LiveRequest, reason: RetryReason) -> None:
        if reason in REASONS_TO_PREPARE_AGAIN and isinstance(live.request, QueryRequest):
            self._plans.forget(live.request.plan_key)

    def _fail_for_good(self, live: LiveRequest, error: type[CouchbaseException], text: str, now: float) -> None:
        """Fail a request that cannot succeed, without asking its strategy."""
        context = live.retry.error_context(now)
        self._fail(live, error(f"{failures.subject(context)}: {text}", context), now)

    def _fail(self, live: LiveRequest, error: CouchbaseException, now: float) -> None:
        """Fail a request, after the rows that have come, if any were handed out before."""
        self._end_attempt(live, now)
        self._end_tokens(live, succeeded=live.retry.is_answered and says_well(error))
        self._leave(live, "its request has failed", now)
        if not live.has_given_rows:
            live.drop_rows()
            live.wants_rows = True
        live.outcome = error
        self._measure(live, now)
        self._give(live, now)

    def _end_tokens(self, live: LiveRequest, *, succeeded: bool) -> None:
        """Tell a token strategy how a request ended."""
        tokens, token = live.tokens, Token(live.token)
        if isinstance(tokens, AsyncRequestTokens):
            if tokens.end(succeeded=succeeded):
                self._emit(RecordSuccess(token, tokens))
        elif tokens is not None:
            try:
                tokens.end(succeeded=succeeded)
            except Exception as error:
                self._emit(ReportStrategyError(token, error))

    def _leave(self, live: LiveRequest, reason: str, now: float) -> None:
        """Take a request from wherever it stands; a connection on which its answer is still due is closed."""
        endpoint, live.endpoint = live.endpoint, None
        if live.stream is not None:
            self._close(live.stream, reason)
        if endpoint is not None:
            endpoint.waiting.pop(live.token, None)
            self._serve(endpoint, now)
        self._unplaced.pop(live.token, None)
        self._timers.cancel(live.deadline_timer)
        self._timers.cancel(live.retry_timer)

    def _forget(self, live: LiveRequest) -> None:
        """Settle a request that neither waits nor travels any more."""
        del self.open[live.token]
        self._timers.cancel(live.deadline_timer)
        self._timers.cancel(live.retry_timer)


def _is_success(response: facts.ServiceResponse) -> bool:
    verdict = service_responses.classify(response.service, response.http_status, response.body, response.operation)
    return verdict.reason is None and verdict.error is None
