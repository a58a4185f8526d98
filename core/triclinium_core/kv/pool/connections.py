"""All connections of one client: opening, bootstrapping, keeping alive, losing and opening again.

It feeds what connections tell into the terminal states and the error maps. Who was lost on the way stands in ``losses``.

Source: decisions C6, C18, C24, C27, C33; SDK-RFC 0059 "Timeouts".
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from triclinium_core.kv.actions import Action, CloseStream, ReportConnection, ReportLevel, SendBytes
from triclinium_core.kv.address import Address
from triclinium_core.kv.connection.bootstrap import BootstrapFailure, FailureKind
from triclinium_core.kv.connection.connection_events import BecameUnusable, BytesOrdered, News
from triclinium_core.kv.connection.grace_period import Patience
from triclinium_core.kv.connection.in_flight import InFlightRequest, Owner
from triclinium_core.kv.connection.node_machine import NodeMachine
from triclinium_core.kv.connection.states import NodeState
from triclinium_core.kv.destinations import Destinations
from triclinium_core.kv.events import (
    AuthenticatorChanged,
    LossCause,
    StreamId,
    StreamLost,
    StreamOpened,
)
from triclinium_core.kv.known_configs import KnownConfigs
from triclinium_core.kv.operation.durability import DURABLE_TIMEOUT_MIN
from triclinium_core.kv.operation.operation import Link
from triclinium_core.kv.pool.authentication import Authentication
from triclinium_core.kv.pool.connection_texts import LEFT_THE_MAP, loss_text, overdue_text, ready_text
from triclinium_core.kv.pool.connection_timers import NodeTimers
from triclinium_core.kv.pool.openings import Openings
from triclinium_core.kv.pool.plans import Plans
from triclinium_core.kv.pool.routes import Route, Routes
from triclinium_core.kv.pool.seeds import Seeds
from triclinium_core.kv.pool.streams import ClosedStream, LostRequest, Streams
from triclinium_core.kv.timers import TimerKind, Timers
from triclinium_core.kv.topology.connection_string import ConnectionString, Scheme
from triclinium_core.options import ClientOptions, TimeoutOptions
from triclinium_core.retry.backoff import ExponentialBackoff, Random
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapStore
from triclinium_core.retry.couchbase.terminal_states import TerminalStates

NO_CONFIG_SECONDS = 1.0
"""So long may all nodes say that a bucket has no cluster config. One that was just created gets it well before; a
memcached bucket never does."""
RECONNECT_BACKOFF = ExponentialBackoff(first=0.01, most=1.0, factor=2.0, jitter=0.2)
"""Jittered, so that the clients of a node that restarts do not come back all at once."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A connection that is gone, or whose node has left the map, and the tokens of those who waited for it."""

    node: NodeMachine
    parked: Sequence[int]
    detail: str


class Connections:
    """One connection for each bucket to each of its nodes, and one that belongs to none."""

    def __init__(
        self,
        options: ClientOptions,
        connection_string: ConnectionString,
        *,
        timers: Timers,
        node_timers: NodeTimers,
        rng: Random,
        terminal_states: TerminalStates,
        error_maps: ErrorMapStore,
        destinations: Destinations,
        configs: KnownConfigs,
        emit: Callable[[Action], None],
    ) -> None:
        self._bare = connection_string.scheme is Scheme.MEMCACHED
        self._options = options
        self.authentication: Authentication = Authentication(options.authenticator, connection_string)
        self._connection_string = connection_string
        self._timeouts: TimeoutOptions = options.timeouts
        self._timers = node_timers
        self._configs = configs
        self._rng = rng
        self._terminal_states = terminal_states
        self._error_maps = error_maps
        self._emit = emit
        self.routes: Routes = Routes(destinations)
        self.seeds: Seeds = Seeds(options, connection_string, self.routes, timers, emit)
        self._openings = Openings(timers)
        self.streams: Streams = Streams(emit, tls=connection_string.tls)
        self.sending: list[NodeMachine] = []
        """Connections on which something was ordered by the present event."""
        self._idle_until: dict[NodeMachine, float] = {}
        """Connections that are opened again when they are needed, and not before this time."""
        self._without_config: defaultdict[str | None, Patience] = defaultdict(lambda: Patience(NO_CONFIG_SECONDS))
        """With buckets of which every node that was asked says that they have no cluster config."""
        self._reported_problems: dict[str, str] = {}
        """What is wrong with the error map of a node, as it was reported last."""
        self._plans = Plans(options, connection_string, self.authentication, configs, rng)
        self.losses: deque[Loss] = deque()
        """Connections that were lost, or left the map, and from which nobody has drawn the conclusions yet."""

    @property
    def nodes(self) -> Iterable[NodeMachine]:
        """All connections, bucket by bucket, in the order in which they were first needed."""
        return self.routes.nodes

    @property
    def draining(self) -> Sequence[NodeMachine]:
        """Connections whose nodes have left the map, and which still have requests without an answer."""
        return self._timers.of_kind(TimerKind.DRAIN)

    def of_bucket(self, bucket: str | None, now: float) -> NodeMachine:
        """Return a connection of a bucket, whichever node it is to; a ready one if there is any.

        The first one of a bucket tries the addresses of the connection string in turn.
        """
        node = self.routes.any_of(bucket)
        return self._awake(node, now) if node is not None else self._open((bucket, None), now)

    def of_address(self, bucket: str | None, address: Address, now: float) -> NodeMachine:
        """Return the connection of a bucket to one node, opening it where it is needed for the first time."""
        node = self.routes.get((bucket, address))
        return self._awake(node, now) if node is not None else self._open((bucket, address), now)

    def follow(self, teller: NodeMachine, addresses: Collection[Address], here: Address | None, now: float) -> None:
        """Have a connection of ``teller``'s bucket to each of the addresses of a new map, and none to others.

        Args:
            here: the address of ``teller`` itself, as the map has it.
        """
        if here is not None and not teller.is_leaving:
            # It goes on at the address at which it was reached, which the map may name otherwise.
            self.routes.identify(teller, here)
            teller.stay()
        for node in self.routes.drop_others(teller.bucket, addresses):
            self._leave(node, now)
        for address in addresses:
            self.of_address(teller.bucket, address, now)

    def search(self, bucket: str | None, now: float) -> None:
        """Look for a bucket that is cut off at the seeds as well, where that is of use."""
        if self.seeds.begin_search(bucket, now):
            self._open((bucket, None), now)

    def _open(self, route: Route, now: float) -> NodeMachine:
        bucket, address = route
        node = NodeMachine(
            bucket,
            self.seeds.addresses(bucket) if address is None else (address,),
            bare=self._bare,
            compression=self._options.compression,
            circuit_breaker=self._options.circuit_breaker,
            is_seeking=address is None,
        )
        self.routes.add(route, node)
        self._connect(node, now)
        return node

    def _awake(self, node: NodeMachine, now: float) -> NodeMachine:
        """Return a connection, opened again if it was left closed until somebody asks for it."""
        if self._idle_until.get(node, math.inf) <= now:
            del self._idle_until[node]
            self._connect(node, now)
        return node

    def expect(self, node: NodeMachine, now: float) -> None:
        """Have a connection opened again for somebody who asks only once: as soon as its backoff is over."""
        self._awake(node, now)
        opens_at = self._idle_until.pop(node, None)
        if opens_at is not None:
            self._timers.schedule(node, TimerKind.RECONNECT, opens_at)

    def _leave(self, node: NodeMachine, now: float) -> None:
        """Give up a connection for good, once what is on its way is answered: its node has left the map."""
        node.is_leaving = True
        self.routes.moved(node)
        self._timers.cancel(node, TimerKind.RECONNECT)
        self._idle_until.pop(node, None)
        self._terminal_states.connection_removed(node)
        if node.is_in_use and node.in_flight:
            # No request on it can be answered in time after that.
            longest = max(self._timeouts.kv, self._timeouts.kv_durable, DURABLE_TIMEOUT_MIN)
            self._timers.schedule(node, TimerKind.DRAIN, now + longest)
            self.losses.append(Loss(node, node.parked.take_all(), LEFT_THE_MAP))
        else:
            self.close(node, LEFT_THE_MAP, now)

    def send(self, node: NodeMachine, owner: Owner, frame: bytes) -> None:
        """Order a request to be sent, which has the connection's ``next_opaque``; it leaves with ``flush``."""
        node.in_flight.add(owner, frame)
        if not node.outgoing:
            self.sending.append(node)
        node.outgoing.append(frame)

    def order(self, node: NodeMachine, data: bytes) -> None:
        """Have bytes sent on the present stream of a connection; they leave with ``flush``."""
        if not node.outgoing:
            self.sending.append(node)
        node.outgoing.append(data)

    def flush(self) -> None:
        """Have all that was ordered sent, once for each stream. What was ordered for a stream that is lost is not sent."""
        for node in self.sending:
            if node.outgoing:
                self._emit(SendBytes(StreamId(node.stream_number), b"".join(node.outgoing)))
                node.outgoing.clear()
        self.sending.clear()

    def close(
        self,
        node: NodeMachine,
        reason: str,
        now: float,
        *,
        failure: BootstrapFailure | None = None,
    ) -> None:
        """Close the stream for a reason, and open another after a backoff."""
        detail = f"{node.node}: {reason}"
        stream = self.streams.of(node)
        if stream is None and (self.seeds.stop_waiting(node) or self._openings.stop_waiting(node)):
            node.lost(detail)
            self.routes.moved(node)
            self.losses.append(Loss(node, node.parked.take_all(), detail))
            return
        if stream is None:
            # It was closed for an earlier answer in the same piece of bytes.
            return
        self._emit(CloseStream(stream, reason))
        if failure is not None and failure.kind is FailureKind.TLS:
            self._terminal_states.tls_failed(node)
        # Only an administrator can help against these, so there is no use in knocking again until somebody asks.
        is_denied = failure is not None and failure.is_denial and not self.authentication.is_outdated(node)
        is_of_no_use = failure is not None and self._is_of_no_use(node.bucket, failure, now)
        on_demand = (is_denied or is_of_no_use) and not node.is_leaving
        # Whether it has a config in the end decides, and must not wait for a backoff that has grown.
        is_in_doubt = failure is not None and node.bucket in self._without_config
        reopen_by = self._without_config[node.bucket].ends if is_in_doubt else math.inf
        requests, parked = self._give_up(node, stream, detail, now, reopen_on_demand=on_demand, reopen_by=reopen_by)
        node.is_hopeless |= is_of_no_use
        self.streams.keep(stream, requests, detail)
        self.losses.append(Loss(node, parked, detail))

    def _is_of_no_use(self, bucket: str | None, failure: BootstrapFailure, now: float) -> bool:
        """Tell whether a bucket is of a type that the client does not speak to, as far as its nodes have told."""
        if failure.kind is not FailureKind.NO_CONFIG or bucket in self._configs:
            self._without_config.pop(bucket, None)
            return failure.kind is FailureKind.BUCKET_TYPE
        if not self._without_config[bucket].try_at(now):
            return False
        # Whoever asks for it again may do so because it was made anew.
        del self._without_config[bucket]
        return True

    def stream_opened(self, event: StreamOpened, now: float) -> tuple[NodeMachine, Sequence[News]] | None:
        """Begin the bootstrap on a stream that was opened; None for one that was given up meanwhile."""
        self._openings.opened(event.stream)
        self.open_next(now)
        node = self.streams.node(event.stream)
        if node is None or node.state is not NodeState.CONNECTING:
            return None
        node.link = Link(node.stream_number, node.node, event.local_address or None)
        self._terminal_states.tls_established(node)
        return node, node.stream_opened(self._plans.plan_for(node, event.nonce), now)

    def stream_lost(self, event: StreamLost, now: float) -> Sequence[LostRequest]:
        """Give up a stream that is gone, or was never opened, and return the requests that will not be answered."""
        size = sys.maxsize if event.handed_over is None else event.handed_over
        closed = self.streams.take(event.stream)
        lost = closed.lose(size) if closed is not None else []
        node = self.streams.node(event.stream)
        if node is None:
            return lost
        if event.cause is LossCause.TLS:
            self._terminal_states.tls_failed(node)
        detail = loss_text(node, event)
        requests, parked = self._give_up(node, event.stream, detail, now)
        self.losses.append(Loss(node, parked, detail))
        return [*lost, *ClosedStream(requests, detail).lose(size)]

    def authenticator_changed(self, event: AuthenticatorChanged, now: float) -> None:
        """Have new connections use another authenticator, and live ones authenticate again.

        Raises:
            InvalidArgumentException: it may not replace the present one; nothing has changed.
        """
        self.authentication.change(event)
        self._terminal_states.authenticator_changed()
        for node in tuple(self.nodes):
            if node.is_in_use:
                self._authenticate_again(node, now)
            elif node in self._idle_until:
                self._idle_until[node] = now
            elif node.state is NodeState.LOST and not node.is_leaving:
                # What kept it away may have been the credentials.
                self._timers.cancel(node, TimerKind.RECONNECT)
                self._connect(node, now)

    def on_timer(self, kind: TimerKind, node: NodeMachine, now: float) -> None:
        """Do what is due on a connection."""
        self._timers.cancel(node, kind)
        match kind:
            case TimerKind.CONNECT:
                self.close(node, overdue_text(node, self._timeouts.connect), now)
            case TimerKind.RECONNECT:
                self._connect(node, now)
            case TimerKind.DRAIN:
                self.close(node, LEFT_THE_MAP, now)
            case _:
                raise AssertionError(f"{kind} is no timer of a connection's stream")

    def _connect(self, node: NodeMachine, now: float) -> None:
        if node.is_seeking:
            addresses = self.seeds.addresses(node.bucket)
            self.seeds.look_up(now, again=node.failed_attempts >= len(addresses))
            node.look_at(addresses)
        node.connect()
        if not node.is_seeking or not self.seeds.wait(node):
            self._open_stream(node, now)

    def open_waiting(self, waiting: Iterable[NodeMachine], now: float) -> None:
        """Open the streams of connections that waited for the seeds."""
        for node in waiting:
            node.look_at(self.seeds.addresses(node.bucket))
            node.choose()
            self._open_stream(node, now)

    def _open_stream(self, node: NodeMachine, now: float) -> None:
        if node.is_seeking:
            # There is one for each bucket, and it leads to all the others.
            self._order_stream(node, now)
        else:
            self._openings.wait(node)
            self.open_next(now)

    def open_next(self, now: float) -> None:
        """Open the streams of connections whose turn it is."""
        while (node := self._openings.next(now)) is not None:
            self._order_stream(node, now)

    def _order_stream(self, node: NodeMachine, now: float) -> None:
        self._timers.schedule(node, TimerKind.CONNECT, now + self._timeouts.connect)
        self._openings.began(self.streams.open(node), now)

    def sasl_answered(self, node: NodeMachine, status: int) -> None:
        """Learn from the end of an authentication, unless it was that of an earlier authenticator."""
        if not self.authentication.is_outdated(node):
            self._terminal_states.sasl_answered(node, status)

    def bucket_selected(self, node: NodeMachine, bucket: str, status: int) -> None:
        """Learn from the answer to SELECT_BUCKET, unless an earlier authenticator was to select it."""
        if not self.authentication.is_outdated(node):
            self._terminal_states.bucket_selected(bucket, status)

    def became_ready(self, node: NodeMachine, losses: int) -> None:
        """Use what was negotiated on a connection that is ready, after so many losses."""
        stream = StreamId(node.stream_number)
        self.routes.moved(node)
        self._timers.cancel(node, TimerKind.CONNECT)
        self._without_config.pop(node.bucket, None)
        if node.negotiated.error_map is not None:
            self._error_maps.load(node.node, node.negotiated.error_map)
        if node.negotiated.error_map_problem is not None:
            self._report_error_map(node, stream, node.negotiated.error_map_problem)
        self._emit(ReportConnection(stream, node.node, ready_text(losses)))

    def authenticated_again(self, node: NodeMachine) -> None:
        """Use a connection that was ready before, and speaks for another authenticator now."""
        self.routes.moved(node)
        self._timers.cancel(node, TimerKind.CONNECT)
        self._emit(ReportConnection(StreamId(node.stream_number), node.node, "authenticated again"))

    def catch_up(self, node: NodeMachine, now: float) -> None:
        """Have a connection authenticate again that was under way when another authenticator was set."""
        if node.state is NodeState.READY and self.authentication.is_outdated(node):
            self._authenticate_again(node, now)

    def _authenticate_again(self, node: NodeMachine, now: float) -> None:
        news = self.authentication.begin_again(node, StreamId(node.stream_number))
        if news is None:
            return
        self.routes.moved(node)
        self._timers.schedule(node, TimerKind.CONNECT, now + self._timeouts.connect)
        for item in news:
            match item:
                case BytesOrdered(data):
                    self.order(node, data)
                case BecameUnusable(text, failure):
                    self.close(node, text, now, failure=failure)

    def _report_error_map(self, node: NodeMachine, stream: StreamId, problem: str) -> None:
        # Decision C18: once, and not for every stream that meets the same.
        if self._reported_problems.get(node.node) != problem:
            self._reported_problems[node.node] = problem
            self._emit(ReportConnection(stream, node.node, problem))

    def part_with(self, node: NodeMachine, now: float) -> None:
        """Close a connection whose node has left the map, once everything is answered."""
        if node.is_leaving and not node.in_flight and self.streams.of(node) is not None:
            self.close(node, LEFT_THE_MAP, now)

    def _give_up(
        self,
        node: NodeMachine,
        stream: StreamId,
        detail: str,
        now: float,
        *,
        reopen_on_demand: bool = False,
        reopen_by: float = math.inf,
    ) -> tuple[Sequence[InFlightRequest], Sequence[int]]:
        """Forget the present stream, and return the requests that have no answer and the tokens that waited for it."""
        self.streams.forget(node, stream)
        # An outage is told once, however often the connection cannot be opened again.
        level = ReportLevel.INFO if node.is_leaving else ReportLevel.DEBUG if node.losses else ReportLevel.WARNING
        self._emit(ReportConnection(stream, node.node, detail.removeprefix(f"{node.node}: "), level))
        self._timers.end_stream(node)
        if node.is_leaving:
            # What its end has told says nothing of the nodes that there are.
            self._terminal_states.connection_removed(node)
        requests, parked = tuple(node.lost(detail)), node.parked.take_all()
        self.routes.moved(node)
        reopen_at = min(now + RECONNECT_BACKOFF(node.failed_attempts, self._rng), reopen_by)
        if reopen_on_demand:
            self._idle_until[node] = reopen_at
        elif not node.is_leaving:
            self._timers.schedule(node, TimerKind.RECONNECT, reopen_at)
        return requests, parked
