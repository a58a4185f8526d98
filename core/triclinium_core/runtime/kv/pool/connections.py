"""Key-value connections of one client: opening, bootstrap, reauthentication, loss and reconnection.

This module passes the events of connections to the terminal states and the error maps, and lists lost connections in
``losses`` for the client machine.

Source: decisions C6, C18, C24, C27, C33; SDK-RFC 0059 "Configuration".
"""

from __future__ import annotations

import math
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import AuthenticatorChanged, FaultReports, TimerKind
from triclinium_core.contract.neutral import CloseStream, LossCause, ReportConnection, ReportLevel, SendBytes, StreamId
from triclinium_core.decoder_faults import DecoderFault
from triclinium_core.kv.address import Address
from triclinium_core.kv.operation.codec_parts import Dialect
from triclinium_core.kv.operation.durability import DURABLE_TIMEOUT_MIN
from triclinium_core.kv.topology.connection_string import ConnectionString, Scheme
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.backoff import ExponentialBackoff
from triclinium_core.runtime.kv.connection.address_cycle import AddressCycle
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapFailure, FailureKind
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.connection_events import BecameUnusable, News
from triclinium_core.runtime.kv.connection.grace_period import GracePeriod
from triclinium_core.runtime.kv.connection.in_flight import InFlightRequest, InFlightTable
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.known_cluster import KnownCluster
from triclinium_core.runtime.kv.pool.authentication import UNVERIFIED_TLS, Authentication
from triclinium_core.runtime.kv.pool.connection_texts import (
    LEFT_THE_MAP,
    advice_on,
    advice_on_loss,
    advised,
    loss_text,
    overdue_text,
    ready_text,
)
from triclinium_core.runtime.kv.pool.connection_timers import ConnectionTimers
from triclinium_core.runtime.kv.pool.error_maps import NegotiatedErrorMaps
from triclinium_core.runtime.kv.pool.openings import Openings
from triclinium_core.runtime.kv.pool.outages import Outages
from triclinium_core.runtime.kv.pool.plans import Plans
from triclinium_core.runtime.kv.pool.routes import RouteKey, Routes
from triclinium_core.runtime.kv.pool.seeds import Seeds
from triclinium_core.runtime.kv.pool.streams import ClosedStream, LostRequest, Streams
from triclinium_core.runtime.toolkit import Toolkit

NO_CONFIG_SECONDS = 1.0
"""Maximum number of seconds for which all nodes may report that a bucket has no cluster config. A new bucket gets its
config much sooner; a memcached bucket never gets one."""
RECONNECT_BACKOFF = ExponentialBackoff(first=0.01, most=1.0, factor=2.0, jitter=0.2)
"""Backoff between the streams of a connection. It has jitter, so that the clients of a restarted node do not all
reconnect at the same time."""


UNUSED_BUCKET_SECONDS = 1.0
"""Interval in seconds at which the client checks whether a bucket that the nodes refuse is still in use."""
PARTLY_REFUSED_SECONDS = 60.0
"""Interval in seconds of the check for an unused bucket if a connection of the bucket is ready. The client checks even
then, because a dead connection may still seem to be ready."""
FORGOTTEN_MAX = 64
"""Maximum number of forgotten buckets whose failure count the client keeps, about 150 bytes each. Without the count,
each new use of such a bucket would start with the shortest backoff."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A connection that is lost, or whose node has left the map, and the tokens of its queued operations."""

    connection: Connection
    waiting: Sequence[int]
    detail: str


class Connections:
    """All key-value connections of a client, with and without a bucket."""

    def __init__(
        self,
        connection_string: ConnectionString,
        timers: ConnectionTimers,
        cluster: KnownCluster,
        tools: Toolkit,
    ) -> None:
        options, rng, emit, configs = tools.options, tools.rng, tools.emit, cluster.configs
        self._dialect = Dialect(bare=connection_string.scheme is Scheme.MEMCACHED, compression=options.compression)
        self._options = options
        self.authentication: Authentication = Authentication(
            options.authenticator, connection_string, tls_is_verified=options.tls_is_verified
        )
        if connection_string.tls and not options.tls_is_verified:
            emit(ReportConnection(StreamId(0), "TLS", UNVERIFIED_TLS, ReportLevel.WARNING))
        self._timeouts: TimeoutOptions = options.timeouts
        self._timers = timers
        self._configs = configs
        self._rng = rng
        self._terminal_states = cluster.terminal_states
        self._error_maps = NegotiatedErrorMaps(cluster.error_maps)
        self._emit = emit
        self.routes: Routes = Routes(cluster.destinations)
        self.seeds: Seeds = Seeds(options, connection_string, self.routes, tools.timers, emit)
        self._openings = Openings(tools.timers)
        self._recorder = tools.recorder
        self.streams: Streams = Streams(emit, tools.stream_ids, tls=connection_string.tls, recorder=tools.recorder)
        self.sending: list[InFlightTable] = []
        """Request tables of the connections on which the current event has ordered frames."""
        self._idle_until: dict[Connection, float] = {}
        """Connections that the client reopens only on demand, each with the end of its backoff."""
        self._without_config: defaultdict[str | None, GracePeriod] = defaultdict(lambda: GracePeriod(NO_CONFIG_SECONDS))
        """Grace period of each bucket for which all nodes that responded so far have reported no cluster config."""
        self._failures: OrderedDict[str, int] = OrderedDict()
        """Number of failed attempts to open each forgotten bucket. The most recently forgotten bucket is at the end."""
        self._outages = Outages()
        self._faults = FaultReports(emit=emit)
        self._advised: set[str] = set()
        """Advice that a warning has already given, out of a few constant texts. The client reports later losses with
        the same advice at DEBUG, for all nodes and buckets."""
        self._plans = Plans(options, connection_string, self.authentication, configs, rng)
        self.refused: set[Connection] = set()
        """Connections that the client last lost because it refused to authenticate with the node (decision C6)."""
        self.losses: deque[Loss] = deque()
        """Connections that are lost, or whose node has left the map. The client machine has yet to process them."""

    @property
    def all(self) -> Iterable[Connection]:
        """All connections except draining ones, by bucket, in the order in which the client first needed them."""
        return self.routes.all

    @property
    def draining(self) -> Sequence[Connection]:
        """Connections whose nodes have left the map, but which still have unanswered requests."""
        return self._timers.of_kind(TimerKind.DRAIN)

    def of_bucket(self, bucket: str | None, now: float) -> Connection:
        """Return a connection of a bucket to any node, preferably a ready one. Without a connection, open one.

        The first connection of a bucket tries the seeds and the known nodes in turn.
        """
        connection = self.routes.any_of(bucket)
        return self._awake(connection, now) if connection is not None else self._open((bucket, None), now)

    def of_address(self, bucket: str | None, address: Address, now: float) -> Connection:
        """Return the connection of a bucket to one node. Open the connection on first use."""
        connection = self.routes.get((bucket, address))
        return self._awake(connection, now) if connection is not None else self._open((bucket, address), now)

    def follow(self, source: Connection, addresses: Collection[Address], here: Address | None, now: float) -> None:
        """Open connections of ``source``'s bucket to all addresses of a new map, and close those to other addresses.

        Args:
            here: address of ``source`` itself in the map.
        """
        if here is not None and not source.is_leaving:
            # Keep the address at which the client has reached the node, even if the map has another one for it.
            self.routes.identify(source, here)
            source.addresses.stay()
        for connection in self.routes.drop_others(source.bucket, addresses):
            self._leave(connection, now)
        for address in addresses:
            self.of_address(source.bucket, address, now)

    def search(self, bucket: str | None, now: float) -> None:
        """Open one more connection to search for an unreachable bucket at the seeds, if the search may help."""
        if self.seeds.begin_search(bucket, now):
            self._open((bucket, None), now)

    def _open(self, route: RouteKey, now: float) -> Connection:
        bucket, address = route
        connection = Connection(
            bucket,
            AddressCycle((address,))
            if address is not None
            else AddressCycle(self.seeds.addresses(bucket), is_seeking=True),
            dialect=self._dialect,
            circuit_breaker=self._options.circuit_breaker,
            sending=self.sending,
            earlier_failures=self._failures.get(bucket, 0) if bucket is not None else 0,
            recorder=self._recorder,
        )
        self.routes.add(route, connection)
        self._connect(connection, now)
        return connection

    def _awake(self, connection: Connection, now: float) -> Connection:
        """Return the connection. If it waits to be reopened on demand and its backoff is over, reopen it."""
        if self._idle_until.get(connection, math.inf) <= now:
            del self._idle_until[connection]
            self._connect(connection, now)
        return connection

    def expect(self, connection: Connection, now: float) -> None:
        """Reopen a connection as soon as its backoff is over, for a caller that does not request it again."""
        self._awake(connection, now)
        opens_at = self._idle_until.pop(connection, None)
        if opens_at is not None:
            self._timers.schedule(connection, TimerKind.RECONNECT, opens_at)

    def _leave(self, connection: Connection, now: float) -> None:
        """Drain and close a connection whose node has left the map."""
        connection.leave()
        self.routes.moved(connection)
        self._timers.cancel(connection, TimerKind.RECONNECT)
        self._idle_until.pop(connection, None)
        self._terminal_states.connection_removed(connection)
        if connection.is_in_use and connection.in_flight:
            # Close the connection after this time at the latest: by then, every request with a default timeout, except
            # those of scans, has timed out.
            longest = max(self._timeouts.kv, self._timeouts.kv_durable, DURABLE_TIMEOUT_MIN)
            self._timers.schedule(connection, TimerKind.DRAIN, now + longest)
            self.losses.append(Loss(connection, connection.waiting.take_all(), LEFT_THE_MAP))
        else:
            self.close(connection, LEFT_THE_MAP, now)
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        """Drop all state of a connection that the client does not reopen."""
        self._timers.cancel(connection, TimerKind.UNUSED_BUCKET)
        self._outages.forget(connection)
        self.refused.discard(connection)
        self._error_maps.forget(connection)
        self._terminal_states.connection_removed(connection)

    def can_forget(self, bucket: str, now: float) -> bool:
        """Return whether a node has refused a bucket, and all connections of the bucket are lost.

        The backoff must be over for those that the client reopens only on demand.
        """
        connections = self.routes.all_of(bucket)
        return any(each.history.last_end.lacks_bucket for each in connections) and all(
            each.state is ConnectionState.LOST and self._idle_until.get(each, now) <= now for each in connections
        )

    def unused_timer_passed(self, connection: Connection) -> None:
        """Cancel the timer of a connection whose bucket may be unused."""
        self._timers.cancel(connection, TimerKind.UNUSED_BUCKET)

    def forget_bucket(self, bucket: str) -> None:
        """Drop the connections of a bucket, and all its state except the number of failed attempts."""
        failures = 0
        for connection in self.routes.drop(bucket):
            failures = max(failures, connection.history.all_failures)
            self._timers.cancel(connection, TimerKind.RECONNECT)
            self._idle_until.pop(connection, None)
            self._forget(connection)
        self._without_config.pop(bucket, None)
        self.seeds.forget(bucket)
        self._terminal_states.bucket_forgotten(bucket)
        self._failures[bucket] = failures
        self._failures.move_to_end(bucket)
        if len(self._failures) > FORGOTTEN_MAX:
            self._failures.popitem(last=False)

    def keep_bucket(self, bucket: str, now: float) -> None:
        """Schedule another check whether a bucket is in use, unless a further attempt to connect leads to the check."""
        idle = (each for each in self.routes.all_of(bucket) if each in self._idle_until)
        connection = next((each for each in idle if each.history.last_end.lacks_bucket), None)
        if connection is not None:
            seconds = PARTLY_REFUSED_SECONDS if self.routes.ready_count(bucket) else UNUSED_BUCKET_SECONDS
            self._timers.schedule(connection, TimerKind.UNUSED_BUCKET, now + seconds)

    def flush(self) -> None:
        """Emit one action for each stream to send its ordered frames. A lost stream has no ordered frames."""
        for requests in self.sending:
            if requests.outgoing:
                self._emit(SendBytes(requests.stream, b"".join(requests.outgoing)))
                requests.outgoing.clear()
        self.sending.clear()

    def close(
        self,
        connection: Connection,
        reason: str,
        now: float,
        *,
        failure: BootstrapFailure | None = None,
    ) -> None:
        """Close the stream of a connection, and report ``reason``.

        Unless the node has left the map, open another stream after a backoff. If only an administrator or other
        credentials can fix the failure, also wait until the connection is needed.
        """
        fault = failure.fault if failure is not None else None
        if fault is not None:
            self._faults.report(StreamId(connection.stream_number), connection.node, fault)
        advice = advice_on(connection, failure)
        detail = f"{connection.node}: {advised(reason, failure, advice)}"
        stream = self.streams.of(connection)
        if stream is None and (self.seeds.stop_waiting(connection) or self._openings.stop_waiting(connection)):
            connection.lost(detail)
            self.routes.moved(connection)
            self.losses.append(Loss(connection, connection.waiting.take_all(), detail))
            return
        if stream is None:
            # The stream is already closed, for example after an earlier response in the same bytes.
            return
        self._emit(CloseStream(stream, reason))
        connection.history.closed(after_fault=fault is not None)
        if failure is not None and failure.kind is FailureKind.TLS:
            self._terminal_states.tls_failed(connection)
        # Only other credentials or an administrator can fix a denied bucket, and only an administrator an unsupported
        # type, so reconnect only when an operation needs the connection.
        is_denied = failure is not None and failure.is_denial and not self.authentication.is_outdated(connection)
        is_of_no_use = failure is not None and self._is_of_no_use(connection.bucket, failure, now)
        on_demand = (is_denied or is_of_no_use) and not connection.is_leaving
        # Until the grace period ends, the bucket may still get a config. Reconnect at its end at the latest, even if
        # the backoff is longer.
        is_in_doubt = failure is not None and connection.bucket in self._without_config
        reopen_by = self._without_config[connection.bucket].ends if is_in_doubt else math.inf
        lacks_bucket = failure is not None and failure.lacks_bucket
        requests, waiting = self._give_up(
            connection,
            stream,
            detail,
            now,
            advice=advice,
            reopen_on_demand=on_demand,
            reopen_by=reopen_by,
            lacks_bucket=lacks_bucket,
            is_of_no_use=is_of_no_use,
        )
        self.streams.keep(stream, requests, detail)
        self.losses.append(Loss(connection, waiting, detail))

    def close_after_fault(self, connection: Connection, fault: DecoderFault, now: float) -> None:
        """Close a connection, as ``close`` does, after a decoder failed on its bytes."""
        self.close(connection, str(fault), now, failure=BootstrapFailure.of_fault(fault))

    def _is_of_no_use(self, bucket: str | None, failure: BootstrapFailure, now: float) -> bool:
        """Return whether the responses of the nodes show that the client does not support the type of a bucket."""
        if failure.kind is not FailureKind.NO_CONFIG or bucket in self._configs:
            self._without_config.pop(bucket, None)
            return failure.kind is FailureKind.BUCKET_TYPE
        if not self._without_config[bucket].try_at(now):
            return False
        # Start the grace period again, because the bucket may be recreated before the next attempt.
        del self._without_config[bucket]
        return True

    def stream_opened(self, event: neutral.StreamOpened, now: float) -> tuple[Connection, Sequence[News]] | None:
        """Begin the bootstrap on an opened stream. Return None if no connection waits for the stream."""
        self._openings.opened(event.stream)
        self.open_next(now)
        connection = self.streams.connection(event.stream)
        if connection is None or connection.state is not ConnectionState.CONNECTING:
            return None
        self._terminal_states.tls_established(connection)
        plan, local, remote = self._plans.plan_for(connection, event.nonce), event.local_address, event.remote_address
        return connection, connection.stream_opened(plan, now, local=local or None, remote=remote or None)

    def stream_lost(self, event: neutral.StreamLost, now: float) -> Sequence[LostRequest]:
        """Process the loss of a stream, or the failure to open it. Return its unanswered requests."""
        size = sys.maxsize if event.handed_over is None else event.handed_over
        closed = self.streams.take(event.stream)
        lost = closed.lose(size) if closed is not None else []
        connection = self.streams.connection(event.stream)
        if connection is None:
            return lost
        if event.cause is LossCause.TLS:
            self._terminal_states.tls_failed(connection)
        detail = loss_text(connection, event)
        advice = advice_on_loss(connection, event, detail)
        requests, waiting = self._give_up(connection, event.stream, detail, now, advice=advice)
        self.losses.append(Loss(connection, waiting, detail))
        return [*lost, *ClosedStream(requests, detail).lose(size)]

    def authenticator_changed(self, event: AuthenticatorChanged, now: float) -> None:
        """Use another authenticator for new streams, reauthenticate connections in use, and end the backoff of others.

        Raises:
            InvalidArgumentException: the authenticator may not replace the current one. The client is unchanged.
        """
        self.authentication.change(event)
        self._terminal_states.authenticator_changed()
        for connection in tuple(self.all):
            if connection.is_in_use:
                self._authenticate_again(connection, now)
            elif connection in self._idle_until:
                self._idle_until[connection] = now
            elif connection.state is ConnectionState.LOST and not connection.is_leaving:
                # Reconnect without waiting for the backoff, because the old credentials may be the reason for the loss.
                self._timers.cancel(connection, TimerKind.RECONNECT)
                self._connect(connection, now)

    def on_timer(self, kind: TimerKind, connection: Connection, now: float) -> None:
        """Close a connection that is overdue or still drains, or reopen a connection after its backoff."""
        self._timers.cancel(connection, kind)
        match kind:
            case TimerKind.CONNECT:
                self.close(connection, overdue_text(connection, self._timeouts.connect), now)
            case TimerKind.RECONNECT:
                self._connect(connection, now)
            case TimerKind.DRAIN:
                self.close(connection, LEFT_THE_MAP, now)
            case _:
                raise AssertionError(f"{kind} is not a timer of a connection's stream")

    def _connect(self, connection: Connection, now: float) -> None:
        if connection.addresses.is_seeking:
            addresses = self.seeds.addresses(connection.bucket)
            self.seeds.look_up(now, again=connection.history.failures >= len(addresses))
            connection.addresses.replace(addresses)
        connection.connect()
        if not connection.addresses.is_seeking or not self.seeds.wait(connection):
            self._open_stream(connection, now)

    def look_up_no_longer(self, now: float) -> None:
        """Stop waiting for DNS, and open the streams of the connections that waited for it."""
        self.open_waiting(self.seeds.give_up(), now)

    def open_waiting(self, waiting: Iterable[Connection], now: float) -> None:
        """Open the streams of connections that waited for the lookup of the seeds in DNS."""
        for connection in waiting:
            connection.addresses.replace(self.seeds.addresses(connection.bucket))
            connection.choose()
            self._open_stream(connection, now)

    def _open_stream(self, connection: Connection, now: float) -> None:
        if connection.addresses.is_seeking:
            # Do not wait for a slot: each bucket has only one such connection, and all its other connections depend on
            # it.
            self._order_stream(connection, now)
        else:
            self._openings.wait(connection)
            self.open_next(now)

    def open_next(self, now: float) -> None:
        """Open the streams of waiting connections while slots are free."""
        while (connection := self._openings.next(now)) is not None:
            self._order_stream(connection, now)

    def _order_stream(self, connection: Connection, now: float) -> None:
        self._timers.schedule(connection, TimerKind.CONNECT, now + self._timeouts.connect)
        connection.addresses.explain(self.seeds.remark(connection.address))
        self._openings.began(self.streams.open(connection), now)

    def sasl_answered(self, connection: Connection, status: int) -> None:
        """Record the result of an authentication, unless the connection used an earlier authenticator."""
        if not self.authentication.is_outdated(connection):
            self._terminal_states.sasl_answered(connection, status)

    def bucket_selected(self, connection: Connection, bucket: str, status: int) -> None:
        """Record the result of SELECT_BUCKET, unless the connection uses an earlier authenticator."""
        if not self.authentication.is_outdated(connection):
            self._terminal_states.bucket_selected(bucket, status)

    def became_ready(self, connection: Connection, losses: int) -> None:
        """Record and report that a connection is ready, after ``losses`` lost streams."""
        stream = StreamId(connection.stream_number)
        self.routes.moved(connection)
        self._timers.cancel(connection, TimerKind.CONNECT)
        self._without_config.pop(connection.bucket, None)
        if connection.bucket is not None and self._failures:
            self._failures.pop(connection.bucket, None)
        self.refused.discard(connection)
        problem = self._error_maps.ready(connection)
        if problem is not None:
            self._emit(ReportConnection(stream, connection.node, problem))
        level, failures = self._outages.ready(connection, losses)
        self._emit(ReportConnection(stream, connection.node, ready_text(failures), level))

    def authenticated_again(self, connection: Connection) -> None:
        """Record and report that a connection has reauthenticated."""
        self.routes.moved(connection)
        self._timers.cancel(connection, TimerKind.CONNECT)
        self._emit(ReportConnection(StreamId(connection.stream_number), connection.node, "authenticated again"))

    def catch_up(self, connection: Connection, now: float) -> None:
        """Reauthenticate a connection that became ready with an earlier authenticator."""
        if connection.state is ConnectionState.READY and self.authentication.is_outdated(connection):
            self._authenticate_again(connection, now)

    def _authenticate_again(self, connection: Connection, now: float) -> None:
        news = self.authentication.begin_again(connection)
        if news is None:
            return
        self.routes.moved(connection)
        self._timers.schedule(connection, TimerKind.CONNECT, now + self._timeouts.connect)
        for item in news:
            if isinstance(item, BecameUnusable):
                self.close(connection, item.text, now, failure=item.failure)

    def part_with(self, connection: Connection, now: float) -> None:
        """Close a connection whose node has left the map, once all its requests are answered."""
        if connection.is_leaving and not connection.in_flight and self.streams.of(connection) is not None:
            self.close(connection, LEFT_THE_MAP, now)

    def _give_up(
        self,
        connection: Connection,
        stream: StreamId,
        detail: str,
        now: float,
        *,
        advice: str,
        reopen_on_demand: bool = False,
        reopen_by: float = math.inf,
        lacks_bucket: bool = False,
        is_of_no_use: bool = False,
    ) -> tuple[Sequence[InFlightRequest], Sequence[int]]:
        """Drop the current stream. Return its unanswered requests and the tokens of the queued operations."""
        self.streams.forget(connection, stream)
        level = self._loudness(connection, is_turned_away=reopen_on_demand)
        if advice and not connection.is_leaving:
            level = ReportLevel.DEBUG if advice in self._advised else ReportLevel.WARNING
            self._advised.add(advice)
        # Leave out the remark, because a separate warning has named the refused targets.
        text = detail.removeprefix(f"{connection.node}: ").removesuffix(connection.addresses.remark)
        self._emit(ReportConnection(stream, connection.node, text, level))
        self._timers.end_stream(connection)
        if connection.is_leaving:
            # Drop all state of the connection, because its end does not concern a node in the map.
            self._forget(connection)
        requests = tuple(connection.lost(detail, lacks_bucket=lacks_bucket, is_of_no_use=is_of_no_use))
        waiting = connection.waiting.take_all()
        self.refused.discard(connection)
        if connection.history.last_end.is_refused and not connection.is_leaving:
            self.refused.add(connection)
        self.routes.moved(connection)
        reopen_at = min(now + RECONNECT_BACKOFF(connection.history.backoff_failures, self._rng), reopen_by)
        self._error_maps.share(connection)
        if lacks_bucket and not connection.is_leaving:
            # Check whether the bucket is in use before the next attempt.
            self._timers.schedule(connection, TimerKind.UNUSED_BUCKET, reopen_at)
        if reopen_on_demand:
            self._idle_until[connection] = reopen_at
        elif not connection.is_leaving:
            self._timers.schedule(connection, TimerKind.RECONNECT, reopen_at)
        return requests, waiting

    def _loudness(self, connection: Connection, *, is_turned_away: bool) -> ReportLevel:
        """Return the level at which to report a lost connection.

        Only the first loss of an outage, or the first refusal, is a warning.
        """
        if not connection.is_leaving and not is_turned_away:
            return self._outages.lost(connection)
        self._outages.forget(connection)
        if connection.is_leaving:
            return ReportLevel.INFO
        # The node is reachable, so this is not an outage: only the bucket is unusable.
        return ReportLevel.DEBUG if connection.history.losses else ReportLevel.WARNING
