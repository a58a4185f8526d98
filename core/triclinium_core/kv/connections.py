"""All connections of one client: opening, bootstrapping, keeping alive, losing and opening again.

It feeds what connections tell into the terminal states and the error maps, and hands the rest to a listener, the client
machine, which knows the operations.

Source: decisions C6, C18, C24, C27, C33; SDK-RFC 0059 "Timeouts".
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.kv.actions import Action, CloseStream, OpenStream, ReportConnection, SendBytes
from triclinium_core.kv.connection_texts import loss_text, overdue_text
from triclinium_core.kv.events import BytesReceived, LossCause, StreamId, StreamLost, StreamOpened
from triclinium_core.kv.node.bootstrap import BootstrapFailure, BootstrapPlan, FailureKind
from triclinium_core.kv.node.in_flight import InFlightRequest, Owner, Purpose
from triclinium_core.kv.node.news import (
    Answered,
    BecameReady,
    BecameUnusable,
    BucketSelected,
    BytesOrdered,
    News,
    SaslAnswered,
)
from triclinium_core.kv.node.node_machine import NodeMachine
from triclinium_core.kv.node.patience import SECONDS_MAX
from triclinium_core.kv.node.states import NodeState
from triclinium_core.kv.timers import TIMERS_OF_A_STREAM, TimerId, TimerKind, Timers
from triclinium_core.kv.topology.collections import QUESTION_PATIENCE
from triclinium_core.kv.topology.connection_string import ConnectionString, Scheme
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame, encode_request
from triclinium_core.options import ClientOptions, TimeoutOptions
from triclinium_core.retry.backoff import ExponentialBackoff, Random
from triclinium_core.retry.circuit_breaker import BreakerEvent
from triclinium_core.retry.error_map import ErrorMapStore
from triclinium_core.retry.events import HandedOver
from triclinium_core.retry.kv_status import Status
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.terminal_states import TerminalStates

RECONNECT_BACKOFF = ExponentialBackoff(first=0.01, most=1.0, factor=2.0, jitter=0.2)
"""Jittered, so that the clients of a node that restarts do not come back all at once."""


LostRequest = tuple[InFlightRequest, HandedOver]
"""A request without an answer, and how much of it has left."""


class Listener(Protocol):
    """What the owner of the connections wants to know."""

    def on_ready(self, node: NodeMachine, now: float) -> None:
        """The connection can be used."""

    def on_answered(self, node: NodeMachine, request: InFlightRequest, frame: Frame, now: float) -> None:
        """A request was answered."""

    def on_requests_lost(self, requests: Sequence[LostRequest], detail: str, now: float) -> None:
        """Requests that were sent, or were to be, will not be answered any more."""

    def on_lost(self, node: NodeMachine, lost: Loss, now: float) -> None:
        """The connection is gone."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A connection that is gone, and who waited for it."""

    parked: Sequence[int]
    detail: str
    failure: BootstrapFailure | None = None


@dataclass(frozen=True, slots=True)
class _ClosedStream:
    """A stream that the driver was told to close, and has not said yet how much it had handed over."""

    requests: Sequence[InFlightRequest]
    detail: str


class Connections:
    """One connection for each bucket, and one that belongs to none; a plain memcached has a single one."""

    def __init__(
        self,
        options: ClientOptions,
        connection_string: ConnectionString,
        *,
        timers: Timers,
        rng: Random,
        terminal_states: TerminalStates,
        error_maps: ErrorMapStore,
        emit: Callable[[Action], None],
        listener: Listener,
    ) -> None:
        self._bare = connection_string.scheme is Scheme.MEMCACHED
        if options.authenticator is None and not self._bare:
            raise InvalidArgumentException(
                f"authenticator is missing: {connection_string.scheme}:// needs a PasswordAuthenticator",
                parameter="authenticator",
            )
        self._options = options
        self._connection_string = connection_string
        self._timeouts: TimeoutOptions = connection_string.timeouts(options.timeouts)
        self._timers = timers
        self._rng = rng
        self._terminal_states = terminal_states
        self._error_maps = error_maps
        self._emit = emit
        self._listener = listener
        self._by_bucket: dict[str | None, NodeMachine] = {}
        self._by_stream: dict[StreamId, NodeMachine] = {}
        self._stream_of: dict[NodeMachine, StreamId] = {}
        self._closed: dict[StreamId, _ClosedStream] = {}
        self._idle_until: dict[NodeMachine, float] = {}
        """Connections that are opened again when they are needed, and not before this time."""
        self._node_timers: dict[tuple[NodeMachine, TimerKind], TimerId] = {}
        self._reported_problems: dict[str, str] = {}
        """What is wrong with the error map of a node, as it was reported last."""
        self._last_stream = 0
        self._client_id = f"{int(rng.random() * 2**64):016x}"

    @property
    def nodes(self) -> Iterable[NodeMachine]:
        """All connections, in the order in which they were first needed."""
        return self._by_bucket.values()

    def of_bucket(self, bucket: str | None, now: float) -> NodeMachine:
        """Return the connection of a bucket, opening it where it is needed for the first time, or for the next one."""
        node = self._by_bucket.get(bucket)
        if node is None:
            node = NodeMachine(
                bucket,
                self._connection_string.addresses,
                bare=self._bare,
                compression=self._options.compression,
                circuit_breaker=self._options.circuit_breaker,
            )
            self._by_bucket[bucket] = node
            self._connect(node, now)
        elif self._idle_until.get(node, math.inf) <= now:
            del self._idle_until[node]
            self._connect(node, now)
        return node

    def of_stream(self, stream: int | None) -> NodeMachine | None:
        """Return the connection that a stream belongs to, or None once it is lost."""
        return None if stream is None else self._by_stream.get(StreamId(stream))

    def stream_of(self, node: NodeMachine) -> StreamId | None:
        """Return the present stream of a connection."""
        return self._stream_of.get(node)

    def unavailable_reason(self, node: NodeMachine) -> RetryReason:
        """Return the reason why nothing can be dispatched to a connection now, as far as it is not a terminal one."""
        return RetryReason.SOCKET_NOT_AVAILABLE if node.was_reached else RetryReason.NODE_NOT_AVAILABLE

    def send(
        self, node: NodeMachine, owner: Owner, opcode: int, encode: Callable[[int], bytes]
    ) -> tuple[int, StreamId]:
        """Order a request to be sent, and return its opaque and stream. ``encode`` may raise; then nothing is sent."""
        stream = self._stream_of[node]
        opaque, frame = node.send(owner, opcode, encode)
        self._emit(SendBytes(stream, frame))
        return opaque, stream

    def refresh_config(self, node: NodeMachine, now: float) -> None:
        """Ask for the newest cluster config, unless that was asked a moment ago and not answered yet."""
        is_asked = now - node.config_asked_at < QUESTION_PATIENCE
        if node.state is NodeState.READY and not is_asked and not node.dialect.bare and self.may_ask_again(node, now):
            node.config_asked_at = now
            self._send_own(node, Purpose.CONFIG, Opcode.GET_CLUSTER_CONFIG)

    def may_ask_again(self, node: NodeMachine, now: float) -> bool:
        """Return whether a question of ours is of use; a connection that answers none any more is closed instead."""
        if node.questions.try_at(now):
            self.close(node, f"has answered no question for {SECONDS_MAX:g} s", now)
        return node.state is NodeState.READY

    def has_room(self, node: NodeMachine, now: float) -> bool:
        """Return whether a request can be sent; a connection that has had no room for long is closed."""
        if not node.in_flight.is_full:
            node.room.rest()
        elif node.room.try_at(now):
            self.close(node, f"has left {len(node.in_flight)} requests unanswered for {SECONDS_MAX:g} s", now)
        return node.state is NodeState.READY and not node.in_flight.is_full

    def close(
        self,
        node: NodeMachine,
        reason: str,
        now: float,
        *,
        failure: BootstrapFailure | None = None,
        unsettled: InFlightRequest | None = None,
    ) -> None:
        """Close the connection's stream for a reason of ours, and open another after a backoff.

        Args:
            unsettled: a request whose answer is the reason.
        """
        detail = f"{node.node}: {reason}"
        misanswered = [] if unsettled is None else [(unsettled, HandedOver.ALL)]
        stream = self._stream_of.get(node)
        if stream is None:
            # It was closed for an earlier answer in the same piece of bytes.
            self._listener.on_requests_lost(misanswered, detail, now)
            return
        self._emit(CloseStream(stream, reason))
        # Only an administrator can help against that, so there is no use in knocking again until somebody asks.
        is_denied = failure is not None and failure.kind is FailureKind.BUCKET and failure.status == Status.NO_ACCESS
        requests, parked = self._give_up(node, stream, detail, now, reopen_on_demand=is_denied)
        # Only the driver knows how much of them has left (decision C24).
        if requests:
            self._closed[stream] = _ClosedStream(requests, detail)
        self._listener.on_requests_lost(misanswered, detail, now)
        self._listener.on_lost(node, Loss(parked, detail, failure), now)

    def stream_opened(self, event: StreamOpened, now: float) -> None:
        """Bootstrap a stream that was opened. A stream that was given up meanwhile is ignored."""
        node = self._by_stream.get(event.stream)
        if node is None or node.state is not NodeState.CONNECTING:
            return
        node.local_address = event.local_address or None
        self._terminal_states.tls_established(node)
        self._tell(node, node.stream_opened(self._plan(node, event.nonce), now), now)

    def bytes_received(self, event: BytesReceived, now: float) -> None:
        """Take bytes of a stream. A stream that was given up meanwhile is ignored."""
        node = self._by_stream.get(event.stream)
        if node is not None and node.state is not NodeState.CONNECTING:
            self._tell(node, node.bytes_received(event.data, now), now)

    def stream_lost(self, event: StreamLost, now: float) -> None:
        """Take note that a stream is gone, or was never opened, and how much of its requests had left."""
        closed = self._closed.pop(event.stream, None)
        if closed is not None:
            self._lose_requests(closed.requests, event.handed_over, closed.detail, now)
        node = self._by_stream.get(event.stream)
        if node is None:
            return
        if event.cause is LossCause.TLS:
            self._terminal_states.tls_failed(node)
        detail = loss_text(node, event)
        requests, parked = self._give_up(node, event.stream, detail, now)
        self._lose_requests(requests, event.handed_over, detail, now)
        self._listener.on_lost(node, Loss(parked, detail), now)

    def on_timer(self, kind: TimerKind, node: NodeMachine, now: float) -> None:
        """Do what is due on a connection."""
        self._node_timers.pop((node, kind), None)
        match kind:
            case TimerKind.CONNECT:
                self.close(node, overdue_text(node, self._timeouts.connect), now)
            case TimerKind.RECONNECT:
                self._connect(node, now)
            case TimerKind.KEEP_ALIVE:
                self._keep_alive(node, now)
            case TimerKind.KEEP_ALIVE_ANSWER:
                self.close(node, f"did not answer a NOOP within {self._timeouts.keep_alive:g} s", now)
            case TimerKind.CIRCUIT_BREAKER:
                self.feed_breaker(node, BreakerEvent.TIME_PASSED, now)
            case TimerKind.CANARY:
                self.feed_breaker(node, BreakerEvent.CANARY_TIMED_OUT, now)
            case _:
                raise AssertionError(f"{kind} is no timer of a connection")

    def feed_breaker(self, node: NodeMachine, event: BreakerEvent, now: float) -> None:
        """Tell the connection's breaker what happened, and send the canary where it asks for it."""
        if node.breaker.handle(event, now) and node.state is NodeState.READY:
            self._send_own(node, Purpose.CANARY, Opcode.NOOP)
            self._schedule(node, TimerKind.CANARY, now + node.breaker.canary_timeout)
        self._schedule(node, TimerKind.CIRCUIT_BREAKER, node.breaker.wakeup)

    def _connect(self, node: NodeMachine, now: float) -> None:
        address = node.connect()
        self._last_stream += 1
        stream = StreamId(self._last_stream)
        self._by_stream[stream] = node
        self._stream_of[node] = stream
        self._schedule(node, TimerKind.CONNECT, now + self._timeouts.connect)
        self._emit(OpenStream(stream, address.host, address.port, self._connection_string.tls))

    def _plan(self, node: NodeMachine, nonce: str) -> BootstrapPlan | None:
        authenticator = self._options.authenticator
        if self._bare or authenticator is None:
            return None
        return BootstrapPlan(
            authenticator=authenticator,
            bucket=node.bucket,
            tls=self._connection_string.tls,
            nonce=nonce,
            user_agent=self._options.user_agent,
            connection_id=f"{self._client_id}/{hashlib.sha256(nonce.encode()).hexdigest()[:16]}",
            compression=self._options.compression,
            xerror=node.xerror,
            hello_after_auth=self._options.hello_after_auth,
            renegotiate_on_corrupt_error_map=self._options.renegotiate_on_corrupt_error_map,
        )

    def _tell(self, node: NodeMachine, news: Iterable[News], now: float) -> None:
        stream = self._stream_of[node]
        for item in news:
            match item:
                case Answered(request, frame):
                    self._on_answered(node, request, frame, now)
                case BytesOrdered(data):
                    self._emit(SendBytes(stream, data))
                case SaslAnswered(status):
                    self._terminal_states.sasl_answered(node, status)
                case BucketSelected(bucket, status):
                    self._terminal_states.bucket_selected(bucket, status)
                case BecameReady():
                    self._on_ready(node, stream, now)
                case BecameUnusable(text, failure, unsettled):
                    self.close(node, text, now, failure=failure, unsettled=unsettled)

    def _on_ready(self, node: NodeMachine, stream: StreamId, now: float) -> None:
        self._unschedule(node, TimerKind.CONNECT)
        self._schedule(node, TimerKind.KEEP_ALIVE, now + self._timeouts.keep_alive_interval)
        if node.negotiated.error_map is not None:
            self._error_maps.load(node.node, node.negotiated.error_map)
        if node.negotiated.error_map_problem is not None:
            self._report_error_map(node, stream, node.negotiated.error_map_problem)
        self._emit(ReportConnection(stream, node.node, "ready"))
        self._listener.on_ready(node, now)

    def _report_error_map(self, node: NodeMachine, stream: StreamId, problem: str) -> None:
        # Decision C18: once, and not for every stream that meets the same.
        if self._reported_problems.get(node.node) != problem:
            self._reported_problems[node.node] = problem
            self._emit(ReportConnection(stream, node.node, problem))

    def _on_answered(self, node: NodeMachine, request: InFlightRequest, frame: Frame, now: float) -> None:
        match request.owner:
            case Purpose.KEEP_ALIVE:
                self._unschedule(node, TimerKind.KEEP_ALIVE_ANSWER)
                if node.state is NodeState.READY:
                    # An answer in the same piece of bytes may have closed the stream.
                    self._schedule(node, TimerKind.KEEP_ALIVE, now + self._timeouts.keep_alive_interval)
            case Purpose.CANARY:
                self._unschedule(node, TimerKind.CANARY)
                self.feed_breaker(node, BreakerEvent.CANARY_ANSWERED, now)
            case _:
                self._listener.on_answered(node, request, frame, now)

    def _keep_alive(self, node: NodeMachine, now: float) -> None:
        due = node.last_heard + self._timeouts.keep_alive_interval
        if due > now:
            self._schedule(node, TimerKind.KEEP_ALIVE, due)
            return
        self._send_own(node, Purpose.KEEP_ALIVE, Opcode.NOOP)
        self._schedule(node, TimerKind.KEEP_ALIVE_ANSWER, now + self._timeouts.keep_alive)

    def _send_own(self, node: NodeMachine, purpose: Purpose, opcode: Opcode) -> None:
        self.send(node, purpose, opcode, lambda opaque: encode_request(opcode, opaque=opaque))

    def _give_up(
        self, node: NodeMachine, stream: StreamId, detail: str, now: float, *, reopen_on_demand: bool = False
    ) -> tuple[Sequence[InFlightRequest], Sequence[int]]:
        """Forget the present stream, and return the requests that have no answer and the tokens that waited for it."""
        del self._stream_of[node], self._by_stream[stream]
        self._emit(ReportConnection(stream, node.node, detail.removeprefix(f"{node.node}: ")))
        for kind in TIMERS_OF_A_STREAM:
            self._unschedule(node, kind)
        requests = tuple(node.lost(detail))
        parked, node.parked = tuple(node.parked), {}
        reopen_at = now + RECONNECT_BACKOFF(node.failed_attempts, self._rng)
        if reopen_on_demand:
            self._idle_until[node] = reopen_at
        else:
            self._schedule(node, TimerKind.RECONNECT, reopen_at)
        return requests, parked

    def _lose_requests(
        self, requests: Sequence[InFlightRequest], handed_over: int | None, detail: str, now: float
    ) -> None:
        size = sys.maxsize if handed_over is None else handed_over
        lost = [(request, request.handed_over(size)) for request in requests]
        self._listener.on_requests_lost(lost, detail, now)

    def _schedule(self, node: NodeMachine, kind: TimerKind, when: float) -> None:
        self._unschedule(node, kind)
        self._node_timers[node, kind] = self._timers.schedule(when, kind, node)

    def _unschedule(self, node: NodeMachine, kind: TimerKind) -> None:
        self._timers.cancel(self._node_timers.pop((node, kind), None))
