"""The whole client as one pure machine: events in, ordered actions out.

The contract, in full:

1. ``now``, in monotonic seconds, never goes back.
2. Carry out the actions in the order given before the next ``handle``, or queue them in that order. There is one
   ``SendBytes`` for each stream at most, and it comes last. With ``unless_readable``, write only if nothing of the
   stream waits to be read; otherwise close the stream and feed ``StreamLost`` instead of those bytes.
3. Feed received bytes in pieces of ``PIECE_SIZE_BYTES_MAX`` at most. When ``wakeup`` has come, read what is readable on
   every stream and feed that, but stop once ``work`` has grown by ``WORK_BEFORE_TIME_MAX``; then feed ``TimePassed``,
   and name the streams that may have more in ``unread``. The first ``TimePassed`` starts the client. Spurious ones are
   harmless, and ``wakeup`` itself may be early.
4. The machine is not re-entrant and not thread-safe: one call at a time.
5. At the end give up with ``OperationAbandoned`` what is open: the garbage collector does not look into operations, so
   what their strategies and contexts refer to would be kept with the machine.

Nothing else has to be polled. A caller's mistake raises at once and changes nothing; whatever a server sends becomes
actions, never an exception.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from operator import attrgetter
from types import NoneType
from typing import Any, cast

from triclinium_core.checks import check_integer, check_type, is_number
from triclinium_core.client.health.inquiries import Inquiries
from triclinium_core.client.health.statistics import ClientStatistics, describe_connection, describe_endpoint
from triclinium_core.contract.couchbase import (
    TIMERS_OF_CONNECTIONS,
    TIMERS_OF_HTTP_STREAMS,
    TIMERS_OF_INQUIRIES,
    TIMERS_OF_KEEP_ALIVE,
    Action,
    AuthenticatorChanged,
    CallEnded,
    Event,
    Gathering,
    InquirySubmitted,
    OperationAbandoned,
    OperationsSubmitted,
    OperationSubmitted,
    ReportTelemetry,
    RequestSubmitted,
    RowsWanted,
    ServiceLookedUp,
    SubscribersChanged,
    TimerKind,
)
from triclinium_core.contract.neutral import (
    BytesReceived,
    ReportConnection,
    StrategyDecided,
    StreamId,
    StreamLost,
    StreamOpened,
    TimePassed,
    Timers,
    Token,
)
from triclinium_core.decoder_faults import DecoderFault
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.kv.operation.codec import CODECS
from triclinium_core.kv.operation.codec_parts import MalformedResponse
from triclinium_core.kv.operation.inquiries import Inquiry, Ping, WaitForNodes, WaitUntilReady
from triclinium_core.kv.operation.reports import DiagnosticsResult
from triclinium_core.kv.operation.requests import Noop, Operation
from triclinium_core.kv.topology.connection_string import Scheme, check_bucket, parse_connection_string
from triclinium_core.kv.topology.networks import Network
from triclinium_core.kv.topology.topology import Topology
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.options import Authenticator, ClientOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.combined.strategies import require_strategy
from triclinium_core.retry.couchbase.circuit_breaker import BreakerEvent
from triclinium_core.retry.couchbase.events import DispatchFailed
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapStore
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.terminal_states import TerminalStates
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.runtime.kv.carrier import KeyValueCarrier
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapFailure, FailureKind
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.connection_events import (
    Answered,
    AuthenticatedAgain,
    BecameReady,
    BecameUnusable,
    BucketSelected,
    BytesOrdered,
    ConfigAnnounced,
    News,
    SaslAnswered,
    Strayed,
)
from triclinium_core.runtime.kv.connection.in_flight import (
    AbandonedScan,
    CollectionQuestion,
    ManifestQuestion,
    Probe,
    Purpose,
    is_last,
)
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.destinations import Destinations
from triclinium_core.runtime.kv.keyspaces import Keyspaces
from triclinium_core.runtime.kv.known_configs import KnownConfigs
from triclinium_core.runtime.kv.live_operation import LiveOperation
from triclinium_core.runtime.kv.pool.authentication import check_authenticator
from triclinium_core.runtime.kv.pool.connection_timers import ConnectionTimers
from triclinium_core.runtime.kv.pool.connections import Connections, Loss
from triclinium_core.runtime.kv.pool.keepalive import KeepAlive
from triclinium_core.runtime.lifecycle.lifecycle import Lifecycle
from triclinium_core.runtime.lifecycle.measured import Measured
from triclinium_core.runtime.lifecycle.stages import Stage
from triclinium_core.runtime.services.carrier import HttpCarrier
from triclinium_core.runtime.services.pings import ServicePings
from triclinium_core.runtime.services.pool.pool import Pool
from triclinium_core.services.request import ServiceRequest
from triclinium_core.shown import shown, total_repr
from triclinium_core.work import PIECE_WORK

TIME_MAX = 1e12
"""Monotonic seconds below which a clock stands; sums beyond would lose milliseconds."""


_token_of = attrgetter("token")
_SETTLED, _CONNECTING, _ANSWERED = Stage.SETTLED, ConnectionState.CONNECTING, BreakerEvent.OPERATION_ANSWERED
"""Members of enumerations that each answer needs: a lookup in the class takes longer than a global name."""


class ClientMachine:
    """One client of one cluster.

    Args:
        options: what the user wants.
        rng: randomness for jitter; ``random.Random`` fits.

    Raises:
        InvalidArgumentException: the connection string or another option is wrong.
    """

    work: int = 0
    """Units of work on received bytes so far (``triclinium_core.work``)."""

    def __init__(self, options: ClientOptions, *, rng: Random) -> None:
        check_type(options, "options", ClientOptions)
        if not callable(getattr(rng, "random", None)):
            raise InvalidArgumentException(f"rng={shown(rng)} has no method random", parameter="rng")
        connection_string = parse_connection_string(options.connection_string)
        options = connection_string.over(options)
        check_authenticator(options.authenticator, connection_string, tls_is_verified=options.tls_is_verified)
        self._bare, tls = connection_string.scheme is Scheme.MEMCACHED, connection_string.tls
        self._actions: list[Action] = []
        self._scheme = connection_string.scheme
        self._timers: Timers[TimerKind] = Timers()
        timers = self._timers
        self._started, self._now, self._orphans, self._subscribers = False, -TIME_MAX, 0, 0
        error_maps, terminal_states, destinations = ErrorMapStore(), TerminalStates(), Destinations()
        self._configs = configs = KnownConfigs()
        connection_timers = ConnectionTimers(timers)
        emit, stream_ids = self._actions.append, cast("Callable[[], StreamId]", count(1).__next__)
        self._gathering = Gathering(options.tracer, options.meter, options.orphans, timers=timers, emit=emit)
        self._connections = Connections(
            options,
            connection_string,
            timers=timers,
            connection_timers=connection_timers,
            rng=rng,
            terminal_states=terminal_states,
            error_maps=error_maps,
            destinations=destinations,
            configs=configs,
            stream_ids=stream_ids,
            emit=emit,
        )
        self._keep_alive = KeepAlive(self._connections, configs, connection_timers, options.timeouts)
        self._keyspaces = Keyspaces(
            self._connections,
            configs,
            self._keep_alive,
            tls=tls,
            network=Network(options.network, connection_string.addresses),
            terminal_states=terminal_states,
            error_maps=error_maps,
            timers=timers,
            destinations=destinations,
            emit=emit,
        )
        self._lifecycle = Lifecycle(timers=timers, rng=rng, error_maps=error_maps, gathering=self._gathering, emit=emit)
        self._pool, self._requests, self._service_pings = self._add_http(options, tls, stream_ids, terminal_states, rng)
        self._inquiries = Inquiries(
            self._connections,
            self._keyspaces,
            self._pool,
            self._service_pings,
            timeouts=options.timeouts,
            sdk=options.user_agent,
            terminal_states=terminal_states,
            timers=timers,
            emit=emit,
        )
        self._operations = KeyValueCarrier(
            self._lifecycle,
            timeouts=options.timeouts,
            strategy=options.retry_strategy,
            connections=self._connections,
            keyspaces=self._keyspaces,
            keep_alive=self._keep_alive,
            terminal_states=terminal_states,
            destinations=destinations,
            timers=timers,
            gathering=self._gathering,
            emit=emit,
        )

    def _add_http(
        self,
        options: ClientOptions,
        tls: bool,
        stream_ids: Callable[[], StreamId],
        terminal_states: TerminalStates,
        rng: Random,
    ) -> tuple[Pool, HttpCarrier, ServicePings]:
        """Return the connections to services over HTTP, the requests to these, and the pings of them."""
        pool = Pool(
            options,
            tls=tls,
            stream_ids=stream_ids,
            topologies=lambda: self._keyspaces.topologies,
            timers=self._timers,
            emit=self._actions.append,
        )
        requests = HttpCarrier(
            self._lifecycle,
            options,
            pool,
            configs=self._configs,
            own_addresses=self._keyspaces.own_addresses,
            terminal_states=terminal_states,
            timers=self._timers,
            rng=rng,
            emit=self._actions.append,
        )
        return pool, requests, ServicePings(pool, requests)

    @total_repr
    def __repr__(self) -> str:
        return f"<ClientMachine: connections={len(tuple(self._connections.all))} open_operations={self._open_count}>"

    @property
    def _open_count(self) -> int:
        """Number of operations, requests and inquiries of users that are open."""
        return sum(not live.is_own for live in self._lifecycle.open.values()) + len(self._inquiries)

    @property
    def wakeup(self) -> float:
        """When ``TimePassed`` is due: monotonic seconds, ``-inf`` before the first one, ``inf`` for never.

        It may be early: that of an operation which is settled by now.
        """
        if not self._started:
            return -math.inf
        wakeup, lifecycle = self._timers.wakeup, self._lifecycle
        return lifecycle.next_deadline if lifecycle.open and lifecycle.next_deadline < wakeup else wakeup

    def handle(self, event: Event, now: float) -> Sequence[Action]:
        """Handle ``event``, and return what to do, in order.

        Raises:
            InvalidEvent: a token was submitted that names an open operation, or a decision that nobody asked for.
            InvalidArgumentException: an operation on a document names no bucket, ``now`` goes back, or another
                argument is wrong.
        """
        handler = _HANDLERS.get(type(event))
        if handler is None:
            raise InvalidArgumentException(
                f"event={shown(event)} is not an event that the machine knows", parameter="event"
            )
        # A plain number at first sight; whatever else it is may be one all the same.
        if (type(now) is not float and not is_number(now)) or not self._now <= now < TIME_MAX:
            raise InvalidArgumentException(
                f"now={shown(now)} must be monotonic seconds, and after {self._now!r} they cannot go back",
                parameter="now",
            )
        handler(self, event, now)
        while self._connections.losses:
            self._on_loss(self._connections.losses.popleft(), now)
        if self._connections.routes.fresh:
            fresh = self._connections.routes.take_fresh()
            if self._inquiries:
                self._inquiries.review(fresh, now)
        if self._pool.sending or self._requests.own_answers or self._requests.unplaced:
            self._requests.place(now)
            while self._requests.own_answers:
                for outcome in self._service_pings.heard(now):
                    self._inquiries.service_answered(outcome, now)
            self._actions += self._pool.take_sending()
        if self._connections.sending:
            self._connections.flush()
        self._now = now
        actions = self._actions.copy()
        self._actions.clear()
        return actions

    def is_ambiguous(self, token: Token) -> bool:
        """Tell whether an operation, given up now, may still be applied or have been. False for unknown tokens."""
        return self._lifecycle.is_ambiguous(token) or self._inquiries.is_ambiguous(token)

    def error_context(self, token: Token, now: float) -> ErrorContext | None:
        """Return what an error can tell of what was submitted and is given up now; None for unknown tokens.

        Args:
            now: monotonic seconds, as ``handle`` gets them.
        """
        found = self._lifecycle.error_context(token, now)
        return found if found is not None else self._inquiries.error_context(token)

    def check_authenticator(self, authenticator: Authenticator) -> None:
        """Check that ``AuthenticatorChanged`` may bring this one; nothing changes.

        Raises:
            InvalidArgumentException: it does not go with the scheme, or cannot follow the present one.
        """
        self._connections.authentication.check(authenticator)

    def vbucket_count(self, bucket: str | None) -> int:
        """Return how many vbuckets a bucket has; 0 as long as no map of it has come."""
        return self._keyspaces.vbucket_count(bucket)

    def replica_count(self, bucket: str | None) -> int | None:
        """Return how many replicas a bucket keeps of each document; None as long as no map of it has come.

        On too few nodes some of them are missing, and so they are after a failover.
        """
        return self._keyspaces.replica_count(bucket)

    def statistics(self) -> ClientStatistics:
        """Return a snapshot."""
        connections = tuple(self._connections.all)
        return ClientStatistics(
            connections=tuple(
                describe_connection(connection, self._configs.version(connection.bucket)) for connection in connections
            ),
            open_operations=self._open_count,
            in_flight=sum(len(connection.in_flight) for connection in connections),
            orphans=self._orphans,
            endpoints=tuple(map(describe_endpoint, self._pool.endpoints)),
            retries_by_reason=self._lifecycle.retries_by_reason.copy(),
            topologies=self._keyspaces.topologies,
        )

    def last_reports(self, now: float | None = None) -> Sequence[ReportTelemetry]:
        """Return and clear the reports of all open intervals, for a client that closes.

        Args:
            now: monotonic seconds, as ``handle`` gets them; None for the time of the newest event.
        """
        return self._gathering.rest(self._now if now is None else now)

    def diagnostics(self, report_id: str, now: float) -> DiagnosticsResult:
        """Return how the connections stand; nobody is asked.

        Args:
            now: monotonic seconds, as ``handle`` gets them.

        Raises:
            InvalidArgumentException: the report cannot be called so.
        """
        return self._inquiries.diagnostics(report_id, now)

    @property
    def topologies(self) -> Sequence[Topology]:
        """The newest topology of each bucket, and of the cluster: from where ``PublishTopology`` goes on."""
        return self._keyspaces.topologies

    @property
    def cluster_labels(self) -> Mapping[str, str]:
        """What all spans and metrics tell of the cluster, by attribute; nothing where it has not told its name and id.

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
        """Raise where any of several submissions is wrong: all take effect, or none does."""
        for submission in submissions:
            if type(submission) is not OperationSubmitted:
                check_type(submission, "submissions", OperationSubmitted)
            request, token = submission.operation, submission.token
            if type(token) is not int:
                check_type(token, "token", int)
            if type(request) not in CODECS:
                raise InvalidArgumentException(f"operation={shown(request)} cannot be submitted", parameter="operation")
            if submission.retry_strategy is not None:
                require_strategy(submission.retry_strategy)
            if submission.client_context is not None:
                _check_context(submission.client_context)
            if (request.keyspace.bucket is None) is not self._bare:
                self._check_bucket(request)
        tokens = set(map(_token_of, submissions))
        if len(tokens) != len(submissions):
            raise InvalidEvent("a token stands twice among the submissions; every operation needs a token of its own")
        if any(self._inquiries.tables) or not self._lifecycle.open.keys().isdisjoint(tokens):
            for each in tokens:
                self._check_token(each)

    def _on_request_submitted(self, event: RequestSubmitted, now: float) -> None:
        self._check_token(event.token)
        if not isinstance(event.request, ServiceRequest) or not event.request.name:
            raise InvalidArgumentException(f"request={shown(event.request)} cannot be submitted", parameter="request")
        if event.retry_strategy is not None:
            require_strategy(event.retry_strategy)
        _check_context(event.client_context)
        if self._bare:
            raise InvalidArgumentException(
                f"{event.request.name}: a plain memcached has no services; connect with couchbase://",
                parameter="request",
            )
        self._requests.submit(event, now)

    def _on_rows_wanted(self, event: RowsWanted, now: float) -> None:
        self._requests.rows_wanted(event.token, now)

    def _on_inquiry_submitted(self, event: InquirySubmitted, now: float) -> None:
        self._check_token(event.token)
        if not isinstance(event.inquiry, Ping | WaitUntilReady | WaitForNodes):
            raise InvalidArgumentException(f"inquiry={shown(event.inquiry)} cannot be submitted", parameter="inquiry")
        self._check_bucket(event.inquiry)
        if self._bare and not isinstance(event.inquiry, WaitForNodes) and Service.KV not in event.inquiry.services:
            raise InvalidArgumentException(
                f"service_types={shown(event.inquiry.service_types)}: a plain memcached has no services; connect with "
                "couchbase://",
                parameter="service_types",
            )
        self._inquiries.submit(event.token, event.inquiry, now, is_traced=event.is_traced)

    def _check_token(self, token: object) -> None:
        check_type(token, "token", int)
        if token in self._lifecycle.open or token in self._inquiries:
            raise InvalidEvent(f"token {token} names an open operation; every operation needs a token of its own")

    def _check_bucket(self, asked: Operation | Inquiry) -> None:
        bucket = asked.keyspace.bucket if isinstance(asked, Operation) else asked.bucket
        if bucket is not None or (isinstance(asked, Operation) and not isinstance(asked, Noop)):
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
        self._subscribers = check_integer(event.count, "count", 0, sys.maxsize)
        if not self._subscribers:
            for bucket in self._connections.routes.buckets:
                self._forget_if_unused(bucket, now)

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
        # What becomes due because of this event waits for the next one, so that this call ends.
        newest = self._timers.newest
        while (due := self._timers.pop_due(now, newest)) is not None:
            kind, subject = due
            _ON_TIMER[kind](self, kind, subject, event, now)

    def _on_bucket_unused(self, connection: Connection, now: float) -> None:
        """Look whether a bucket that a connection's node does not have or refuses can be forgotten."""
        self._connections.unused_timer_passed(connection)
        if connection.bucket is not None and not connection.is_leaving:
            self._forget_if_unused(connection.bucket, now)

    def _forget_if_unused(self, bucket: str, now: float) -> None:
        """Forget a bucket that its nodes do not have or refuse, unless something uses it (decision C7)."""
        if not self._connections.can_forget(bucket, now):
            self._connections.keep_bucket(bucket, now)
            return
        is_known = bucket in self._configs
        if is_known and self._subscribers:
            # A subscriber has seen its topology. When the last one leaves, the client looks again.
            return
        # Without a config of the cluster, the services over HTTP are found by the last topology.
        is_needed = is_known and len(self._configs.all) == 1
        if is_needed or self._lifecycle.use(bucket) or self._inquiries.use(bucket):
            self._connections.keep_bucket(bucket, now)
            return
        self._connections.forget_bucket(bucket)
        self._keyspaces.forget_bucket(bucket)

    def _on_collection_id(self, connection: Connection, question: CollectionQuestion, frame: Frame, now: float) -> None:
        try:
            answer = self._keyspaces.take_collection_id(connection, question, frame)
        except MalformedResponse as error:
            # Those who wait were not sent: the question is asked again, like one without an answer.
            self._report(connection, str(error))
            return
        except DecoderFault as fault:
            self._connections.close_after_fault(connection, fault, now)
            return
        if answer.reason is None and answer.error is None:
            self._operations.resume(answer.waiters, now)
            return
        for token in answer.waiters:
            if answer.reason is not None:
                failed = DispatchFailed(answer.reason, answer.detail, answer.error, connection.node)
                self._operations.collection_not_found(token, failed, now)
            elif answer.error is not None:
                self._operations.fail_waiting(token, answer.error, answer.detail, now)
        if answer.close_connection is not None:
            self._connections.close(connection, answer.close_connection, now)

    def _report(self, connection: Connection, text: str) -> None:
        self._actions.append(ReportConnection(StreamId(connection.stream_number), connection.node, text))

    # -- What connections tell.

    def _on_stream_opened(self, event: StreamOpened, now: float) -> None:
        opened = self._connections.stream_opened(event, now)
        if opened is not None:
            self._learn(*opened, now)
        else:
            self._requests.stream_opened(event, now)

    def _on_bytes_received(self, event: BytesReceived, now: float) -> None:
        connection = self._connections.streams.connections.get(event.stream)
        if connection is None:
            before = self._requests.work
            self._requests.bytes_received(event, now)
            self.work += PIECE_WORK + self._requests.work - before
            return
        if connection.state is _CONNECTING:
            # The stream was given up meanwhile.
            return
        self._learn(connection, connection.bytes_received(event.data, now), now)
        self.work += connection.work
        if connection.waiting.tokens and connection.takes_operations:
            # Once for all the answers of one piece.
            self._operations.resume_waiting(connection, now)

    def _on_stream_lost(self, event: StreamLost, now: float) -> None:
        for owner, handed_over, detail in self._connections.stream_lost(event, now):
            if isinstance(owner, LiveOperation):
                self._operations.socket_closed(owner, handed_over, detail, now)
        self._requests.stream_lost(event, now)

    def _learn(self, connection: Connection, news: Iterable[News], now: float) -> None:
        """Draw the conclusions from what a connection tells of its present stream."""
        stream, answers = connection.stream_number, 0
        for item in news:
            if type(item) is Answered:
                if item.problem is not None:
                    self._report(connection, f"sent {item.problem}")
                owner = item.request.owner
                if type(owner) is LiveOperation:
                    answers += 1
                    self._operations.answered(owner, connection, item, now)
                    if owner.stage is _SETTLED and item.request.owner is owner:
                        # A traceback may keep the request, and the collector does not look into it.
                        item.request.owner = None
                else:
                    self._on_own_answer(connection, item, now)
            elif type(item) is Strayed:
                self._orphans += 1
            elif connection.state is not ConnectionState.LOST and connection.stream_number == stream:
                self._conclude(connection, item, now)
            # Else an answer has cost the stream. Only the answers behind it are still due to somebody.
        if answers:
            connection.breaker.handle(_ANSWERED, now, answers)
        if connection.is_leaving:
            self._connections.part_with(connection, now)

    def _on_own_answer(self, connection: Connection, answered: Answered, now: float) -> None:
        """Handle the answer to a request of the client's own, or to one whose caller has left."""
        owner = answered.request.owner
        handler = _ON_OWN_ANSWER[owner if isinstance(owner, Purpose) else type(owner)]
        handler(self, connection, owner, answered.frame, now)

    def _on_sign_of_life(self, connection: Connection, purpose: Purpose, frame: Frame, now: float) -> None:
        self._keep_alive.answered(connection, purpose, now)

    def _on_manifest(self, connection: Connection, purpose: Purpose, frame: Frame, now: float) -> None:
        self._keyspaces.manifest_received(connection, frame, now)

    def _on_config(self, connection: Connection, purpose: Purpose, frame: Frame, now: float) -> None:
        connection.config_asked_at = -math.inf
        connection.questions.reset()
        self._keyspaces.take_config(connection, frame.value if frame.status == Status.SUCCESS else None, now)
        # One more question where the answer is older than what was announced meanwhile, and no third.
        self._fetch_announced(connection, now)
        connection.announced = None

    def _on_opened_scan(self, connection: Connection, scan: AbandonedScan, frame: Frame, now: float) -> None:
        self._orphans += scan.is_orphan
        self._operations.end_scan(connection, scan, frame, now)

    def _on_late_answer(self, connection: Connection, measured: Measured, frame: Frame, now: float) -> None:
        self._orphans += 1
        if is_last(frame.opcode, frame.status):
            self._operations.orphaned(measured, frame, now)

    def _on_forgotten(self, connection: Connection, owner: None, frame: Frame, now: float) -> None:
        self._orphans += 1

    def _on_needless(self, connection: Connection, purpose: Purpose, frame: Frame, now: float) -> None:
        """Do nothing: no part of the client waits for the answer."""

    def _on_probe(self, connection: Connection, probe: Probe, frame: Frame, now: float) -> None:
        self._orphans += not self._inquiries.answered(connection, probe, frame, now)

    def _on_node_manifest(self, connection: Connection, question: ManifestQuestion, frame: Frame, now: float) -> None:
        self._orphans += not self._inquiries.manifest_told(connection, question, frame, now)

    def _conclude(self, connection: Connection, item: News, now: float) -> None:
        """Do what follows from what a connection tells besides answers."""
        match item:
            case BytesOrdered(data):
                self._connections.order(connection, data)
            case SaslAnswered(status):
                self._connections.sasl_answered(connection, status)
            case BucketSelected(bucket, status):
                self._connections.bucket_selected(connection, bucket, status)
            case ConfigAnnounced():
                self._fetch_announced(connection, now)
            case BecameReady(losses):
                self._on_ready(connection, losses, now)
            case AuthenticatedAgain():
                self._connections.authenticated_again(connection)
                self._operations.resume_waiting(connection, now)
                self._fetch_announced(connection, now)
                self._connections.catch_up(connection, now)
            case BecameUnusable(text, failure):
                self._connections.close(connection, text, now, failure=failure)

    def _fetch_announced(self, connection: Connection, now: float) -> None:
        """Fetch the config that a node announced, unless it is known."""
        known = self._configs.version(connection.bucket)
        if connection.announced is not None and (known is None or known < connection.announced):
            self._keep_alive.refresh_config(connection, now)

    def _on_ready(self, connection: Connection, losses: int, now: float) -> None:
        """Use a connection that became ready after so many losses, unless it has brought no config."""
        self._keep_alive.begin(connection, now)
        self._connections.became_ready(connection, losses)
        failure = self._keyspaces.take_config(connection, connection.negotiated.config, now)
        has_map = connection.bucket is None or connection.bucket in self._configs
        if failure is None and not has_map:
            failure = BootstrapFailure(FailureKind.PROTOCOL, "gave no cluster config")
        # Without vbuckets it is no config yet: an earlier one stays in use.
        if failure is not None and not (has_map and failure.kind is FailureKind.NO_VBUCKETS):
            self._connections.close(connection, failure.text, now, failure=failure)
            return
        if self._configs.is_lost(connection.bucket):
            self._keep_alive.refresh_config(connection, now)
        self._operations.resume_waiting(connection, now)
        self._connections.catch_up(connection, now)

    def _on_loss(self, loss: Loss, now: float) -> None:
        """Retry or fail what waited for a connection that is gone, or whose node has left the map."""
        connection = loss.connection
        if not connection.is_leaving:
            # While a map is being followed, the connections to its new nodes are not there yet.
            self._keyspaces.search_if_lost(connection.bucket, now)
        waiting = [*loss.waiting, *self._keyspaces.connection_lost(connection)]
        is_refused = connection.is_refused
        reason = RetryReason.AUTHENTICATION_ERROR if is_refused else RetryReason.NODE_NOT_AVAILABLE
        self._requests.cluster_not_found(reason, loss.detail, now)
        if connection.is_unsupported:
            self._inquiries.unsupported(connection, loss.detail, now)
        for token in waiting:
            self._operations.connection_lost(token, connection, loss.detail, now)


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
"""Handler of each event."""

_ON_OWN_ANSWER: Mapping[object, Callable[..., None]] = {
    Purpose.KEEP_ALIVE: ClientMachine._on_sign_of_life,
    Purpose.CANARY: ClientMachine._on_sign_of_life,
    Purpose.CONFIG: ClientMachine._on_config,
    Purpose.MANIFEST: ClientMachine._on_manifest,
    Purpose.AUTHENTICATION: ClientMachine._on_needless,
    Purpose.SCAN_CANCEL: ClientMachine._on_needless,
    Purpose.NOT_NEEDED: ClientMachine._on_needless,
    AbandonedScan: ClientMachine._on_opened_scan,
    Measured: ClientMachine._on_late_answer,
    CollectionQuestion: ClientMachine._on_collection_id,
    Probe: ClientMachine._on_probe,
    ManifestQuestion: ClientMachine._on_node_manifest,
    NoneType: ClientMachine._on_forgotten,
}
"""Handler of each answer that no open operation waits for, by the purpose of the request or by the type of its owner."""

_ON_TIMER: Mapping[TimerKind, Callable[[ClientMachine, TimerKind, Any, TimePassed, float], object]] = {
    TimerKind.DEADLINE: lambda machine, _, live, event, now: machine._lifecycle.deadline_passed(live, event, now),
    TimerKind.RETRY: lambda machine, _, live, __, now: machine._lifecycle.backoff_over(live, now),
    TimerKind.DECODING: lambda machine, _, live, __, now: machine._requests.decode_on(live, now),
    TimerKind.COLLECTION_QUESTION: lambda machine, _, asked, __, now: machine._keyspaces.question_overdue(
        asked[0], asked[1], now
    ),
    TimerKind.SERVICE_LOOKUP: lambda machine, _, __, ___, now: machine._connections.look_up_no_longer(now),
    TimerKind.OPENING: lambda machine, _, __, ___, now: machine._connections.open_next(now),
    TimerKind.TELEMETRY: lambda machine, _, kind, __, now: machine._gathering.interval_over(kind, now),
    TimerKind.HTTP_BREAKER: lambda machine, _, endpoint, __, now: machine._service_pings.breaker_woken(endpoint, now),
    TimerKind.UNUSED_BUCKET: lambda machine, _, connection, __, now: machine._on_bucket_unused(connection, now),
    **dict.fromkeys(
        TIMERS_OF_HTTP_STREAMS, lambda machine, _, stream, __, now: machine._requests.stream_timer_passed(stream, now)
    ),
    **dict.fromkeys(
        TIMERS_OF_INQUIRIES, lambda machine, kind, subject, _, now: machine._inquiries.on_timer(kind, subject, now)
    ),
    **dict.fromkeys(
        TIMERS_OF_CONNECTIONS,
        lambda machine, kind, connection, _, now: machine._connections.on_timer(kind, connection, now),
    ),
    **dict.fromkeys(
        TIMERS_OF_KEEP_ALIVE,
        lambda machine, kind, connection, _, now: machine._keep_alive.on_timer(kind, connection, now),
    ),
}
"""Handler of each kind of timer. It gets the kind and the subject of the timer, the event, and the instant."""
