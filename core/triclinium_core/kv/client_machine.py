"""The whole client as one pure machine: events in, ordered actions out.

The contract, in full:

1. ``now``, in monotonic seconds, never goes back.
2. Carry out the actions in the order given before the next ``handle``, or queue them in that order.
3. When ``wakeup`` has come, read what is readable on every stream and feed that, then feed ``TimePassed``; the first one
   starts the client. Spurious ones are harmless.
4. The machine is not re-entrant and not thread-safe: one call at a time.

Nothing else has to be polled. A caller's mistake raises at once and changes nothing; whatever a server sends becomes
actions, never an exception.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from triclinium_core.checks import check_type, is_number
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.kv.actions import Action, ReportConnection
from triclinium_core.kv.authentication import check_authenticator
from triclinium_core.kv.connections import Connections
from triclinium_core.kv.events import (
    AuthenticatorChanged,
    BytesReceived,
    Event,
    InquirySubmitted,
    OperationAbandoned,
    OperationSubmitted,
    ServiceLookedUp,
    StrategyDecided,
    StreamLost,
    StreamOpened,
    TimePassed,
    Token,
)
from triclinium_core.kv.inquiries import Inquiries
from triclinium_core.kv.keyspaces import Keyspaces
from triclinium_core.kv.listener import Loss, LostRequest
from triclinium_core.kv.node.bootstrap import BootstrapFailure, FailureKind
from triclinium_core.kv.node.in_flight import AbandonedScan, CollectionQuestion, Probe, Purpose
from triclinium_core.kv.node.news import Answered
from triclinium_core.kv.node.node_machine import NodeMachine
from triclinium_core.kv.operation.codec import CODECS
from triclinium_core.kv.operation.codec_parts import MalformedResponse
from triclinium_core.kv.operation.inquiries import Ping, WaitUntilReady
from triclinium_core.kv.operation.operation import LiveOperation
from triclinium_core.kv.operation.reports import DiagnosticsResult
from triclinium_core.kv.operation.requests import Noop
from triclinium_core.kv.operations import Operations
from triclinium_core.kv.statistics import ClientStatistics, describe_connection
from triclinium_core.kv.timers import TimerKind, Timers
from triclinium_core.kv.topology.connection_string import Scheme, parse_connection_string
from triclinium_core.kv.topology.networks import Network
from triclinium_core.kv.topology.topology import Topology
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.options import Authenticator, ClientOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.couchbase.events import DispatchFailed
from triclinium_core.retry.couchbase.strategy import require_strategy
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapStore
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.retry.couchbase.terminal_states import TerminalStates
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.shown import shown

TIME_MAX = 1e12
"""Monotonic seconds below which a clock stands; sums beyond would lose milliseconds."""


class ClientMachine:
    """One client of one cluster.

    Args:
        options: what the user wants.
        rng: randomness for jitter; ``random.Random`` fits.

    Raises:
        InvalidArgumentException: the connection string or another option is wrong.
    """

    def __init__(self, options: ClientOptions, *, rng: Random) -> None:
        check_type(options, "options", ClientOptions)
        if not callable(getattr(rng, "random", None)):
            raise InvalidArgumentException(f"rng={rng!r} has no method random", parameter="rng")
        connection_string = parse_connection_string(options.connection_string)
        options = connection_string.over(options)
        check_authenticator(options.authenticator, connection_string)
        self._bare = connection_string.scheme is Scheme.MEMCACHED
        self._actions: list[Action] = []
        self._timers = Timers()
        self._started = False
        self._now = -math.inf
        self._orphans = 0
        error_maps = ErrorMapStore()
        terminal_states = TerminalStates()
        self._connections = Connections(
            options,
            connection_string,
            timers=self._timers,
            rng=rng,
            terminal_states=terminal_states,
            error_maps=error_maps,
            emit=self._emit,
            listener=self,
        )
        self._keyspaces = Keyspaces(
            self._connections,
            tls=connection_string.tls,
            network=Network(options.network, connection_string.addresses),
            terminal_states=terminal_states,
            error_maps=error_maps,
            timers=self._timers,
            emit=self._emit,
        )
        self._inquiries = Inquiries(
            self._connections,
            self._keyspaces,
            timeout=options.timeouts.kv,
            sdk=options.user_agent,
            terminal_states=terminal_states,
            timers=self._timers,
            emit=self._emit,
        )
        self._operations = Operations(
            timeouts=options.timeouts,
            strategy=options.retry_strategy,
            connections=self._connections,
            keyspaces=self._keyspaces,
            terminal_states=terminal_states,
            error_maps=error_maps,
            timers=self._timers,
            rng=rng,
            emit=self._emit,
        )
        self._handlers: dict[type, Callable[..., None]] = {
            OperationSubmitted: self._on_operation_submitted,
            InquirySubmitted: self._on_inquiry_submitted,
            OperationAbandoned: self._on_operation_abandoned,
            ServiceLookedUp: self._on_service_looked_up,
            StreamOpened: self._connections.stream_opened,
            BytesReceived: self._connections.bytes_received,
            StreamLost: self._connections.stream_lost,
            TimePassed: self._on_time_passed,
            StrategyDecided: self._operations.strategy_decided,
            AuthenticatorChanged: self._connections.authenticator_changed,
        }

    def __repr__(self) -> str:
        open_operations = len(self._operations) + len(self._inquiries)
        return f"<ClientMachine: connections={len(tuple(self._connections.nodes))} open_operations={open_operations}>"

    @property
    def wakeup(self) -> float:
        """When ``TimePassed`` is due: monotonic seconds, ``-inf`` before the first one, ``inf`` for never."""
        return self._timers.wakeup if self._started else -math.inf

    def handle(self, event: Event, now: float) -> Sequence[Action]:
        """Take note of ``event`` and return what to do, in order.

        Raises:
            InvalidEvent: a token was submitted that names an open operation, or a decision that nobody asked for.
            InvalidArgumentException: an operation on a document names no bucket, ``now`` goes back, or another
                argument is wrong.
        """
        handler = self._handlers.get(type(event))
        if handler is None:
            raise InvalidArgumentException(f"event={event!r} is none that the machine knows", parameter="event")
        if not (is_number(now) and abs(now) < TIME_MAX and self._now <= now):
            raise InvalidArgumentException(
                f"now={shown(now)} must be monotonic seconds, and after {self._now!r} they cannot go back",
                parameter="now",
            )
        handler(event, now)
        if self._connections.routes.fresh:
            fresh = self._connections.routes.take_fresh()
            if self._inquiries:
                self._inquiries.review(fresh, now)
        self._now = now
        actions, self._actions = self._actions, []
        return actions

    def is_ambiguous(self, token: Token) -> bool:
        """Tell whether an operation, given up now, may still be applied or have been. False for unknown tokens."""
        return self._operations.is_ambiguous(token)

    def error_context(self, token: Token, now: float) -> ErrorContext | None:
        """Return what an error can tell of an operation, or an inquiry, that is given up now; None for unknown tokens.

        Args:
            now: monotonic seconds, as ``handle`` gets them.
        """
        found = self._operations.error_context(token, now)
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
        nodes = tuple(self._connections.nodes)
        return ClientStatistics(
            connections=tuple(
                describe_connection(node, self._keyspaces.config_revision(node.bucket)) for node in nodes
            ),
            open_operations=len(self._operations) + len(self._inquiries),
            in_flight=sum(len(node.in_flight) for node in nodes),
            orphans=self._orphans,
            retries_by_reason=self._operations.retries_by_reason,
            topologies=self._keyspaces.topologies,
        )

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

    def config_revision(self, bucket: str | None) -> tuple[int, int] | None:
        """Return epoch and revision of the config that need not be told again; ``Connections`` calls this."""
        return None if self._keyspaces.is_lost(bucket) else self._keyspaces.config_revision(bucket)

    def knows_bucket(self, bucket: str | None) -> bool:
        """Tell whether a config of a bucket has ever come; ``Connections`` calls this."""
        return self._keyspaces.knows_bucket(bucket)

    def on_ready(self, node: NodeMachine, now: float) -> None:
        """Dispatch what waited for the connection; ``Connections`` calls this."""
        failure = self._take_config(node, node.negotiated.config, now)
        if failure is None and node.bucket is not None and not self._keyspaces.knows_bucket(node.bucket):
            failure = BootstrapFailure(FailureKind.PROTOCOL, "gave no cluster config")
        if failure is not None:
            self._connections.close(node, failure.text, now, failure=failure)
            return
        if self._keyspaces.is_lost(node.bucket):
            self._connections.upkeep.refresh_config(node, now)
        self._operations.resume_parked(node, now)

    def on_resumed(self, node: NodeMachine, now: float) -> None:
        """Dispatch what waited, and fetch the config that was announced meanwhile; ``Connections`` calls this."""
        self._operations.resume_parked(node, now)
        self.on_config_announced(node, now)

    def on_room(self, node: NodeMachine, now: float) -> None:
        """Dispatch what waited for room; ``Connections`` calls this."""
        self._operations.resume_parked(node, now)

    def on_answered(self, node: NodeMachine, answered: Answered, now: float) -> None:
        """Take an answer to where it belongs; ``Connections`` calls this."""
        owner, frame = answered.request.owner, answered.frame
        if isinstance(owner, int):
            carried_config = False
            if frame.status == Status.NOT_MY_VBUCKET and frame.value:
                # Decision C10: an embedded config is applied before the retry.
                carried_config = self._take_config(node, frame.value, now) is None
            self._operations.answered(owner, node, answered, now, carried_config=carried_config)
        elif isinstance(owner, AbandonedScan):
            self._operations.end_scan(node, owner, frame)
        elif isinstance(owner, CollectionQuestion):
            self._on_collection_id(node, owner, frame, now)
        elif owner is Purpose.CONFIG:
            node.config_asked_at = -math.inf
            node.questions.rest()
            self._take_config(node, frame.value if frame.status == Status.SUCCESS else None, now)
            # One more question where the answer is older than what was announced meanwhile, and no third.
            self.on_config_announced(node, now)
            node.announced = None
        elif owner is Purpose.SCAN_CANCEL:
            pass
        elif not isinstance(owner, Probe) or not self._inquiries.answered(node, owner, now):
            self._orphans += 1

    def on_stray(self) -> None:
        """Count a response that answers no request; ``Connections`` calls this."""
        self._orphans += 1

    def on_config_announced(self, node: NodeMachine, now: float) -> None:
        """Fetch the config that a node announced, unless it is known; ``Connections`` calls this."""
        known = self._keyspaces.config_revision(node.bucket)
        if node.announced is not None and (known is None or known < node.announced):
            self._connections.upkeep.refresh_config(node, now)

    def on_requests_lost(self, requests: Sequence[LostRequest], detail: str, now: float) -> None:
        """Retry or fail what travelled on a stream; ``Connections`` calls this."""
        for request, handed_over in requests:
            # Its caller may have left since the stream was closed, or its deadline passed.
            if isinstance(request.owner, int) and request.owner in self._operations:
                self._operations.socket_closed(request.owner, handed_over, detail, now)

    def on_lost(self, node: NodeMachine, lost: Loss, now: float) -> None:
        """Retry or fail what waited for the connection; ``Connections`` calls this."""
        if not node.is_leaving:
            # While a map is being followed, the connections to its new nodes are not there yet.
            self._keyspaces.search_if_lost(node.bucket, now)
        waiting = [*lost.parked, *self._keyspaces.connection_lost(node)]
        if node.is_hopeless:
            self._inquiries.hopeless(node, lost.detail)
        for token in waiting:
            self._operations.connection_lost(token, node, lost.detail, now)

    def _emit(self, action: Action) -> None:
        self._actions.append(action)

    def _on_operation_submitted(self, event: OperationSubmitted, now: float) -> None:
        self._check_token(event.token)
        if type(event.operation) not in CODECS:
            raise InvalidArgumentException(f"operation={event.operation!r} cannot be submitted", parameter="operation")
        if event.retry_strategy is not None:
            require_strategy(event.retry_strategy)
        if not isinstance(event.client_context, Mapping | None):
            raise InvalidArgumentException(
                f"client_context={event.client_context!r} must be a mapping or None", parameter="client_context"
            )
        bucket = event.operation.keyspace.bucket
        self._check_bucket(bucket)
        if not self._bare and bucket is None and not isinstance(event.operation, Noop):
            raise InvalidArgumentException(
                f"bucket=None: {event.operation.name} needs one; use cluster.bucket(name)", parameter="bucket"
            )
        self._operations.submit(event, now)

    def _on_inquiry_submitted(self, event: InquirySubmitted, now: float) -> None:
        self._check_token(event.token)
        if not isinstance(event.inquiry, Ping | WaitUntilReady):
            raise InvalidArgumentException(f"inquiry={event.inquiry!r} cannot be submitted", parameter="inquiry")
        self._check_bucket(event.inquiry.bucket)
        self._inquiries.submit(event.token, event.inquiry, now)

    def _check_token(self, token: object) -> None:
        check_type(token, "token", int)
        if token in self._operations or token in self._inquiries:
            raise InvalidEvent(f"token {token} names an open operation; every operation needs a token of its own")

    def _check_bucket(self, bucket: str | None) -> None:
        if self._bare and bucket is not None:
            raise InvalidArgumentException(
                f"bucket={bucket!r}: a plain memcached has none; use cluster.default_collection()", parameter="bucket"
            )

    def _on_operation_abandoned(self, event: OperationAbandoned, now: float) -> None:
        self._inquiries.abandon(event.token)
        self._operations.abandon(event.token)

    def _on_service_looked_up(self, event: ServiceLookedUp, now: float) -> None:
        self._connections.open_waiting(self._connections.seeds.answered(event), now)

    def _on_time_passed(self, event: TimePassed, now: float) -> None:
        if not self._started:
            self._started = True
            self._connections.of_bucket(None, now)
        self._connections.upkeep.read_at = now
        # What becomes due because of this event waits for the next one, so that this call ends.
        newest = self._timers.newest
        while (due := self._timers.pop_due(now, newest)) is not None:
            kind, subject = due
            if kind is TimerKind.OPERATION_DEADLINE:
                self._operations.deadline_passed(cast(LiveOperation, subject), event, now)
            elif kind is TimerKind.RETRY:
                self._operations.backoff_over(cast(LiveOperation, subject), now)
            elif kind is TimerKind.PING:
                self._inquiries.deadline_passed(cast(int, subject), now)
            elif kind is TimerKind.COLLECTION_QUESTION:
                node, question = cast(tuple[NodeMachine, CollectionQuestion], subject)
                self._keyspaces.question_overdue(node, question, now)
            elif kind is TimerKind.SERVICE_LOOKUP:
                self._connections.open_waiting(self._connections.seeds.give_up(), now)
            elif kind is TimerKind.OPENING:
                self._connections.open_next(now)
            else:
                self._connections.on_timer(kind, cast(NodeMachine, subject), now)

    def _on_collection_id(self, node: NodeMachine, question: CollectionQuestion, frame: Frame, now: float) -> None:
        try:
            answer = self._keyspaces.take_collection_id(node, question, frame)
        except MalformedResponse as error:
            # Those who wait were not sent: the question is asked again, like one without an answer.
            self._report(node, str(error))
            return
        if answer.reason is None and answer.error is None:
            self._operations.resume(answer.waiters, now)
            return
        for token in answer.waiters:
            if answer.reason is not None:
                failed = DispatchFailed(answer.reason, answer.detail, answer.error, node.node)
                self._operations.collection_not_found(token, failed, now)
            elif answer.error is not None:
                self._operations.fail(token, answer.error, answer.detail, now)
        if answer.close_connection is not None:
            self._connections.close(node, answer.close_connection, now)

    def _report(self, node: NodeMachine, text: str) -> None:
        stream = self._connections.streams.of(node)
        if stream is not None:
            self._emit(ReportConnection(stream, node.node, text))

    def _take_config(self, node: NodeMachine, document: bytes | None, now: float) -> BootstrapFailure | None:
        stream = self._connections.streams.of(node)
        return self._keyspaces.take_config(node, stream, document, now) if stream is not None else None
