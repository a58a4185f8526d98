"""State machine of a client: it takes events, and returns the actions for the driver in order.

Contract with the driver:

1. ``now``, in monotonic seconds, never goes back.
2. Execute the actions in the given order before the next ``handle``, or queue them in that order. One ``handle``
   returns at most one ``SendBytes`` for each stream, after all other actions. With ``unless_readable``, write only if
   no bytes of the stream wait to be read; otherwise close the stream and feed ``StreamLost`` instead of writing.
3. Feed received bytes in pieces of at most ``PIECE_SIZE_BYTES_MAX``. When ``wakeup`` is reached, read the available
   bytes of every stream and feed them, but stop once ``work`` has grown by ``WORK_BEFORE_TIME_MAX``. Then feed
   ``TimePassed``; its ``unread`` lists the streams that may have more bytes. The first ``TimePassed`` starts the
   client. Additional ``TimePassed`` events are harmless, and ``wakeup`` may be earlier than necessary.
4. The machine is not re-entrant and not thread-safe: make one call at a time.
5. At the end, feed ``OperationAbandoned`` for every open operation, request and inquiry. The garbage collector does not
   track requests in flight. Operations that stay open keep their strategies and contexts alive, with all objects that
   these refer to.

The machine needs no polling besides ``wakeup``. An invalid call raises immediately and changes nothing. An invalid
response from a node results in actions, never in an exception.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from triclinium_core.checks import check_integer, check_type, is_number
from triclinium_core.client.conclusions import Conclusions
from triclinium_core.client.due_timers import DueTimers
from triclinium_core.client.health.diagnostics import diagnostics_of
from triclinium_core.client.health.statistics import ClientStatistics, describe_connection, describe_endpoint
from triclinium_core.client.own_answers import OwnAnswers
from triclinium_core.client.unused_buckets import UnusedBuckets
from triclinium_core.client.wiring import wired
from triclinium_core.contract.couchbase import (
    Action,
    AuthenticatorChanged,
    CallEnded,
    Event,
    InquirySubmitted,
    OperationAbandoned,
    OperationsSubmitted,
    OperationSubmitted,
    ReportTelemetry,
    RequestSubmitted,
    RowsWanted,
    ServiceLookedUp,
    SubscribersChanged,
)
from triclinium_core.contract.neutral import (
    BytesReceived,
    ReportConnection,
    StrategyDecided,
    StreamId,
    StreamLost,
    StreamOpened,
    TimePassed,
    Token,
)
from triclinium_core.decision_tape.recorder import DecisionRecorder, RecordedCall, settled
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.kv.operation.document_operations import Noop, Operation
from triclinium_core.kv.operation.inquiries import Inquiry, Ping, WaitForNodes, WaitUntilReady
from triclinium_core.kv.operation.operation_codec import CODECS
from triclinium_core.kv.operation.reports import DiagnosticsResult
from triclinium_core.kv.topology.connection_string import Scheme, check_bucket, parse_connection_string
from triclinium_core.kv.topology.topology import Topology
from triclinium_core.options import Authenticator, ClientOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.combined.strategies import require_strategy
from triclinium_core.retry.couchbase import BreakerEvent, Service
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.connection_events import Answered, News, Strayed
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.known_cluster import KnownCluster
from triclinium_core.runtime.kv.live_operation import LiveOperation
from triclinium_core.runtime.kv.pool.authentication import check_authenticator
from triclinium_core.runtime.lifecycle.stages import Stage
from triclinium_core.runtime.toolkit import toolkit_of
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.shown import shown, total_repr
from triclinium_core.work import PIECE_WORK

TIME_MAX = 1e12
"""Upper bound of the monotonic clock in seconds. At ten times this, sums of times would lose milliseconds."""


_SETTLED, _CONNECTING, _ANSWERED = Stage.SETTLED, ConnectionState.CONNECTING, BreakerEvent.OPERATION_ANSWERED
"""Aliases of enum members used for each response; ``kv.wire.constants`` documents the cost of a lookup."""


class ClientMachine:
    """State machine of one client of one cluster.

    Args:
        options: options of the client.
        rng: random source, such as a ``random.Random``.
        recorder: recorder of a decision tape. None, the default, records nothing.

    Raises:
        InvalidArgumentException: the connection string or another option is invalid.
    """

    work: int = 0
    """Units of work on received bytes so far (``triclinium_core.work``)."""

    def __init__(self, options: ClientOptions, *, rng: Random, recorder: DecisionRecorder | None = None) -> None:
        check_type(options, "options", ClientOptions)
        if not callable(getattr(rng, "random", None)):
            raise InvalidArgumentException(
                f"rng={shown(rng)} must be an object with a method random(), such as random.Random()", parameter="rng"
            )
        connection_string = parse_connection_string(options.connection_string)
        options = connection_string.over(options)
        check_authenticator(options.authenticator, connection_string, tls_is_verified=options.tls_is_verified)
        self._scheme = connection_string.scheme
        self._bare = connection_string.scheme is Scheme.MEMCACHED
        self._started, self._now = False, -TIME_MAX
        self.wakeup: float = -math.inf
        """Time at which ``TimePassed`` is due, in monotonic seconds; ``-inf`` at first, ``inf`` for never.

        The time may be earlier than necessary, because the operation that needed the wakeup may be settled already.
        """
        self._actions: list[Action] = []
        tools = toolkit_of(options, rng=rng, emit=self._actions.append, recorder=recorder)
        cluster = KnownCluster()
        parts = wired(connection_string, cluster, tools)
        self._options = options
        self._recorder = recorder
        self._timers = tools.timers
        self._gathering = tools.gathering
        self._configs = cluster.configs
        self._topologies = cluster.topologies
        self._connections = parts.connections
        self._keep_alive = parts.keep_alive
        self._lifecycle = parts.lifecycle
        self._operations = parts.operations
        self._pool = parts.pool
        self._requests = parts.requests
        self._service_pings = parts.service_pings
        self._inquiries = parts.inquiries
        self._own_answers = OwnAnswers(parts, tools)
        self._conclusions = Conclusions(parts, cluster.configs)
        self._unused_buckets = UnusedBuckets(parts, cluster.configs)
        self._due_timers = DueTimers(parts, self._unused_buckets, tools)

    @total_repr
    def __repr__(self) -> str:
        return f"<ClientMachine: connections={len(tuple(self._connections.all))} open_operations={self._open_count}>"

    @property
    def _open_count(self) -> int:
        """Number of open operations, requests and inquiries of users."""
        return sum(not live.is_own for live in self._lifecycle.open.values()) + len(self._inquiries)

    def handle(self, event: Event, now: float) -> Sequence[Action]:
        """Process ``event``, and return the actions to execute, in order.

        Raises:
            InvalidEvent: a submitted token is in use or occurs twice, or a decision was not requested.
            InvalidArgumentException: an operation on a document names no bucket, ``now`` goes back, or another argument
                is invalid.
        """
        handler = _HANDLERS.get(type(event))
        if handler is None:
            raise InvalidArgumentException(
                f"event={shown(event)} must be an Event of triclinium_core.contract.couchbase", parameter="event"
            )
        # The first test accepts a plain float; ``is_number`` accepts other numbers. Here and below, testing the type
        # before the full check saves 4400 of the 95200 instructions of a get (callgrind, ``tests.bench --only core``).
        if (type(now) is not float and not is_number(now)) or not self._now <= now < TIME_MAX:
            raise InvalidArgumentException(
                f"now={shown(now)} must be a number of monotonic seconds below 1e12, not before the last time, "
                f"{self._now!r}",
                parameter="now",
            )
        if self._recorder is not None:
            self._recorder.now = now
        handler(self, event, now)
        while self._connections.losses:
            self._conclusions.lost(self._connections.losses.popleft(), now)
        if self._connections.routes.fresh:
            fresh = self._connections.routes.take_fresh()
            if self._inquiries:
                self._inquiries.review(fresh, now)
        if self._pool.sending or self._requests.own_answers or self._requests.unplaced:
            self._requests.place(now)
            while self._requests.own_answers:
                for outcome in self._service_pings.take_outcomes(now):
                    self._inquiries.service_answered(outcome, now)
            self._actions += self._pool.take_sending()
        if self._connections.sending:
            self._connections.flush()
        self._now = now
        if self._started:
            wakeup, lifecycle = self._timers.wakeup, self._lifecycle
            has_earlier = lifecycle.open and lifecycle.next_deadline < wakeup
            self.wakeup = lifecycle.next_deadline if has_earlier else wakeup
        actions = self._actions.copy()
        self._actions.clear()
        return actions

    def is_ambiguous(self, token: Token) -> bool:
        """Return whether the operation, if abandoned now, may have been or may still be applied.

        Return False for an unknown token.
        """
        return self._lifecycle.is_ambiguous(token) or self._inquiries.is_ambiguous(token)

    def error_context(self, token: Token, now: float) -> ErrorContext | None:
        """Return the error context of an operation, request or inquiry that is abandoned now.

        Return None for an unknown token.

        Args:
            now: monotonic seconds, as for ``handle``.
        """
        found = self._lifecycle.error_context(token, now)
        return found if found is not None else self._inquiries.error_context(token)

    def open_calls(self) -> Sequence[RecordedCall]:
        """Return the facts about all open operations and requests of users, for a decision tape that is saved."""
        return [settled(live.recorded()) for live in self._lifecycle.open.values() if not live.is_own]

    def check_authenticator(self, authenticator: Authenticator) -> None:
        """Check the authenticator of a future ``AuthenticatorChanged``, without replacing the current one.

        Raises:
            InvalidArgumentException: the authenticator does not fit the scheme, or cannot replace the current one.
        """
        self._connections.authentication.check(authenticator)

    def vbucket_count(self, bucket: str | None) -> int:
        """Return the number of vbuckets of a bucket; 0 if it is unknown."""
        return self._configs.vbucket_count(bucket)

    def replica_count(self, bucket: str | None) -> int | None:
        """Return the number of replicas of each document of a bucket; None if it is unknown.

        A document may have fewer replicas if there are too few nodes, or after a failover.
        """
        return self._configs.replica_count(bucket)

    def statistics(self) -> ClientStatistics:
        """Return a snapshot of the client's connections, endpoints, topologies and counts."""
        connections = tuple(self._connections.all)
        return ClientStatistics(
            connections=tuple(
                describe_connection(connection, self._configs.version(connection.bucket)) for connection in connections
            ),
            open_operations=self._open_count,
            in_flight=sum(len(connection.in_flight) for connection in connections),
            orphans=self._own_answers.orphans,
            endpoints=tuple(map(describe_endpoint, self._pool.endpoints)),
            retries_by_reason=self._lifecycle.retries_by_reason.copy(),
            topologies=tuple(self._topologies.values()),
        )

    def last_reports(self, now: float | None = None) -> Sequence[ReportTelemetry]:
        """Return and clear the reports of all open intervals, because the client closes.

        Args:
            now: monotonic seconds, as for ``handle``; None for the time of the newest event.
        """
        return self._gathering.rest(self._now if now is None else now)

    def diagnostics(self, report_id: str, now: float) -> DiagnosticsResult:
        """Return the states of the connections, without sending a request.

        Args:
            now: monotonic seconds, as for ``handle``.

        Raises:
            InvalidArgumentException: ``report_id`` is invalid.
        """
        return diagnostics_of(self._connections, self._pool, report_id=report_id, sdk=self._options.user_agent, now=now)

    @property
    def topologies(self) -> Sequence[Topology]:
        """Newest known topologies of the cluster and of opened buckets. ``PublishTopology`` reports later changes."""
        return tuple(self._topologies.values())

    @property
    def cluster_labels(self) -> Mapping[str, str]:
        """Attributes of the cluster for all spans and metrics; empty until a config has the cluster's name or id.

        Source: SDK-RFC 0067 "Cluster labels".
        """
        return self._configs.cluster_labels

    def _on_operation_submitted(self, event: OperationSubmitted, now: float) -> None:
        self._check((event,))
        self._operations.submit((event,), now)

    def _on_operations_submitted(self, event: OperationsSubmitted, now: float) -> None:
        self._check(event.submissions)
        self._operations.submit(event.submissions, now)

    def _check(self, submissions: Sequence[OperationSubmitted]) -> None:
        """Raise if any submission is invalid, so that either all take effect or none does."""
        tokens: set[Token] = set()
        for submission in submissions:
            if type(submission) is not OperationSubmitted:
                check_type(submission, "submissions", OperationSubmitted)
            request, token = submission.operation, submission.token
            if type(token) is not int:
                check_type(token, "token", int)
            tokens.add(token)
            if type(request) not in CODECS:
                raise InvalidArgumentException(
                    f"operation={shown(request)} must be an operation of triclinium_core.kv.operation, such as a Get",
                    parameter="operation",
                )
            if submission.retry_strategy is not None:
                require_strategy(submission.retry_strategy)
            if submission.client_context is not None:
                _check_context(submission.client_context)
            if (request.keyspace.bucket is None) is not self._bare:
                self._check_bucket(request)
        if len(tokens) != len(submissions):
            repeated, count = Counter(each.token for each in submissions).most_common(1)[0]
            raise InvalidEvent(f"token {shown(repeated)} has {count} operations; each operation needs its own")
        if any(self._inquiries.tables) or not self._lifecycle.open.keys().isdisjoint(tokens):
            for each in tokens:
                self._check_token(each)

    def _on_request_submitted(self, event: RequestSubmitted, now: float) -> None:
        self._check_token(event.token)
        if not isinstance(event.request, ServiceRequest) or not event.request.name:
            raise InvalidArgumentException(
                f"request={shown(event.request)} must be a request of triclinium_core.services, such as a QueryRequest",
                parameter="request",
            )
        if event.retry_strategy is not None:
            require_strategy(event.retry_strategy)
        _check_context(event.client_context)
        if self._bare:
            raise InvalidArgumentException(
                f"{event.request.name}: a plain memcached has only kv; connect with couchbase://",
                parameter="request",
            )
        self._requests.submit(event, now)

    def _on_rows_wanted(self, event: RowsWanted, now: float) -> None:
        self._requests.rows_wanted(event.token, now)

    def _on_inquiry_submitted(self, event: InquirySubmitted, now: float) -> None:
        self._check_token(event.token)
        if not isinstance(event.inquiry, Ping | WaitUntilReady | WaitForNodes):
            raise InvalidArgumentException(
                f"inquiry={shown(event.inquiry)} must be a Ping, a WaitUntilReady or a WaitForNodes",
                parameter="inquiry",
            )
        self._check_bucket(event.inquiry)
        if self._bare and not isinstance(event.inquiry, WaitForNodes) and Service.KV not in event.inquiry.services:
            raise InvalidArgumentException(
                f"service_types={shown(event.inquiry.service_types)}: a plain memcached has only kv; connect with "
                "couchbase://",
                parameter="service_types",
            )
        self._inquiries.submit(event.token, event.inquiry, now, is_traced=event.is_traced)

    def _check_token(self, token: object) -> None:
        if type(token) is not int:
            check_type(token, "token", int)
        if token in self._lifecycle.open or token in self._inquiries:
            raise InvalidEvent(f"token {token} names an open operation, request or inquiry; each needs its own token")

    def _check_bucket(self, request: Operation | Inquiry) -> None:
        bucket = request.keyspace.bucket if isinstance(request, Operation) else request.bucket
        if bucket is not None or (isinstance(request, Operation) and not isinstance(request, Noop)):
            check_bucket(self._scheme, bucket)

    def _on_operation_abandoned(self, event: OperationAbandoned, now: float) -> None:
        self._inquiries.abandon(event.token, now)
        if event.fault is not None:
            self._requests.rows_undecoded(event.token, event.fault)
        self._lifecycle.abandon(event.token, now, event.reason)

    def _on_call_ended(self, event: CallEnded, now: float) -> None:
        durations = self._gathering.durations
        if durations is not None:
            durations.count(event.name.service, event.name.value, event.seconds, now)

    def _on_subscribers_changed(self, event: SubscribersChanged, now: float) -> None:
        count = check_integer(event.count, "count", 0, sys.maxsize)
        self._unused_buckets.subscribers_changed(count, now)

    def _on_strategy_decided(self, event: StrategyDecided, now: float) -> None:
        self._lifecycle.strategy_decided(event, now)

    def _on_authenticator_changed(self, event: AuthenticatorChanged, now: float) -> None:
        self._connections.authenticator_changed(event, now)
        self._requests.authenticator_changed(event.authenticator, now)

    def _on_service_looked_up(self, event: ServiceLookedUp, now: float) -> None:
        self._connections.open_waiting(self._connections.seeds.answered(event), now)

    def _on_time_passed(self, event: TimePassed, now: float) -> None:
        if not self._started:
            self._started = True
            self._connections.of_bucket(None, now)
        self._keep_alive.read_at = now
        if self._lifecycle.next_deadline <= now:
            self._lifecycle.deadlines_passed(event, now)
        if self._timers.wakeup <= now:
            self._due_timers.fire(event, now)

    # -- Events of streams.

    def _on_stream_opened(self, event: StreamOpened, now: float) -> None:
        opened = self._connections.stream_opened(event, now)
        if opened is not None:
            self._learn(*opened, now)
        else:
            self._requests.stream_opened(event, now)

    def _on_bytes_received(self, event: BytesReceived, now: float) -> None:
        data = event.data
        if type(data) is not bytes:
            check_type(data, "data", bytes, bytearray, memoryview)
            data = bytes(data)
        connection = self._connections.streams.connections.get(event.stream)
        if connection is None:
            before = self._requests.work
            self._requests.bytes_received(event, now)
            self.work += PIECE_WORK + self._requests.work - before
            return
        if connection.state is _CONNECTING:
            # Ignore bytes on a stream that is not reported as open: the connection has no receive buffer yet.
            return
        self._learn(connection, connection.bytes_received(data, now), now)
        self.work += connection.received.work
        if connection.waiting.tokens and connection.takes_operations:
            # Resume once for all responses in these bytes, not once for each.
            self._operations.resume_waiting(connection, now)

    def _on_stream_lost(self, event: StreamLost, now: float) -> None:
        if self._recorder is not None:
            self._recorder.stream_lost(event)
        for owner, handed_over, detail in self._connections.stream_lost(event, now):
            if isinstance(owner, LiveOperation):
                self._operations.socket_closed(owner, handed_over, detail, now)
        self._requests.stream_lost(event, now)

    def _learn(self, connection: Connection, news: Iterable[News], now: float) -> None:
        """Process the events that a connection returned for its current stream."""
        stream, answers = connection.in_flight.stream, 0
        for item in news:
            if type(item) is Answered:
                if item.problem is not None:
                    text = f"sent {item.problem}"
                    self._actions.append(ReportConnection(StreamId(connection.stream_number), connection.node, text))
                owner = item.request.owner
                if type(owner) is LiveOperation:
                    answers += 1
                    self._operations.answered(owner, connection, item, now)
                    if owner.stage is _SETTLED and item.request.owner is owner:
                        # Drop the reference to the operation: a traceback may keep the request alive, and the garbage
                        # collector does not track the request.
                        item.request.owner = None
                else:
                    self._own_answers.answered(connection, item, now)
            elif type(item) is Strayed:
                self._own_answers.orphans += 1
            elif connection.state is not ConnectionState.LOST and connection.in_flight.stream == stream:
                self._conclusions.draw(connection, item, now)
            # Otherwise an earlier item has closed the stream. After that, only responses are processed.
        if answers:
            connection.breaker.handle(_ANSWERED, now, answers)
        if connection.is_leaving:
            self._connections.part_with(connection, now)


def _check_context(context: object) -> None:
    if context is not None and not isinstance(context, Mapping):
        raise InvalidArgumentException(
            f"client_context={shown(context)} must be a mapping or None", parameter="client_context"
        )


_HANDLERS: Mapping[type, Callable[..., None]] = {
    OperationSubmitted: ClientMachine._on_operation_submitted,
    OperationsSubmitted: ClientMachine._on_operations_submitted,
    CallEnded: ClientMachine._on_call_ended,
    RequestSubmitted: ClientMachine._on_request_submitted,
    RowsWanted: ClientMachine._on_rows_wanted,
    InquirySubmitted: ClientMachine._on_inquiry_submitted,
    OperationAbandoned: ClientMachine._on_operation_abandoned,
    SubscribersChanged: ClientMachine._on_subscribers_changed,
    ServiceLookedUp: ClientMachine._on_service_looked_up,
    StreamOpened: ClientMachine._on_stream_opened,
    BytesReceived: ClientMachine._on_bytes_received,
    StreamLost: ClientMachine._on_stream_lost,
    TimePassed: ClientMachine._on_time_passed,
    StrategyDecided: ClientMachine._on_strategy_decided,
    AuthenticatorChanged: ClientMachine._on_authenticator_changed,
}
"""Handler of each type of event."""
