"""Open pings: a NOOP on each key-value connection, a GET request to each HTTP endpoint, and one report.

A connection that is being opened is pinged once it is ready. So a ping waits for the bootstrap, and includes the nodes
of a map that arrives during the bootstrap. A connection that is lost and has no other address to try is reported
immediately, without waiting for its backoff. The first cluster config lists the endpoints of the HTTP services. A ping
of HTTP services alone needs key-value connections only for that config.

Source: SDK-RFC 0061 "The ping Command".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from triclinium_core.client.health.diagnostics import endpoint_id, stream_id
from triclinium_core.client.health.service_pings import (
    endpoints_of,
    error_text,
    namespace_of,
    state_of,
    unanswered_text,
)
from triclinium_core.contract.couchbase import CompleteOperation, ReportAnswer, TimerKind
from triclinium_core.contract.neutral import StreamId, TimerId, Token
from triclinium_core.kv.operation.inquiries import Ping
from triclinium_core.kv.operation.reports import EndpointPingReport, PingResult, PingState
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame, encode_request
from triclinium_core.kv.wire.framing_extras import server_duration
from triclinium_core.retry.couchbase import RetryReason, Service
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.in_flight import Probe
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.dispatcher import dispatch_report
from triclinium_core.runtime.kv.known_cluster import KnownCluster
from triclinium_core.runtime.kv.pool.connection_texts import status_text
from triclinium_core.runtime.kv.pool.connections import Connections
from triclinium_core.runtime.services.pings import PingOutcome, ServicePings
from triclinium_core.runtime.services.pool import Endpoint, Pool
from triclinium_core.runtime.toolkit import Toolkit
from triclinium_core.telemetry.attributes import answer_attributes
from triclinium_core.telemetry.tracing import AttributeValue


@dataclass(slots=True)
class _Target:
    """Progress of a ping on one connection."""

    attempt_max: int
    """Number of attempts of the connection, over all its streams, after which the ping stops waiting for it."""
    since: float
    """Time at which the NOOP was ordered. Before that, the time at which the connection joined the ping."""
    stream_number: int | None = None
    """Stream of the NOOP; None before the NOOP is sent."""
    is_reported: bool = False
    """Whether the start of the NOOP was reported to a tracer, but its end was not."""
    report: EndpointPingReport | None = None


@dataclass(slots=True, eq=False)
class OpenPing:
    """One open ping with the reports that it has so far."""

    token: int
    request: Ping
    began_at: float
    timer: TimerId
    is_traced: bool
    """Whether the NOOPs of the ping are reported to a tracer."""
    targets: dict[Connection, _Target] = field(default_factory=dict)
    awaited: dict[Connection, _Target] = field(default_factory=dict)
    """Connections for which the ping still waits, with its progress on each."""
    endpoints: dict[Endpoint, EndpointPingReport | None] = field(default_factory=dict)
    """Report on each HTTP endpoint; None for an endpoint without a report yet."""
    takes_connections: bool = True
    """Whether the ping includes connections that are created later. True until the key-value timeout."""

    @property
    def has_kv(self) -> bool:
        """Whether the ping includes the key-value connections."""
        return Service.KV in self.request.services

    @property
    def unanswered(self) -> list[Endpoint]:
        """HTTP endpoints without a report."""
        return [endpoint for endpoint, report in self.endpoints.items() if report is None]

    def report(self, connection: Connection, state: PingState, error: str | None, now: float) -> None:
        """Record the result of pinging a connection."""
        target = self.awaited.pop(connection)
        target.report = EndpointPingReport(
            type=Service.KV,
            id=endpoint_id(connection),
            remote=connection.node,
            local=connection.link.local_address,
            namespace=connection.bucket,
            state=state,
            latency=now - target.since,
            error=error,
        )

    def record(self, outcome: PingOutcome, now: float) -> None:
        """Record the result of pinging an HTTP endpoint."""
        endpoint, error, link = outcome.endpoint, outcome.error, outcome.link
        stream = link.stream if link is not None else endpoint.newest_stream
        self.endpoints[endpoint] = EndpointPingReport(
            type=endpoint.service,
            id=stream_id(stream if stream is not None else 0),
            remote=endpoint.node,
            local=link.local_address if link is not None else None,
            namespace=namespace_of(endpoint.service, self.request),
            state=state_of(outcome),
            latency=outcome.seconds if outcome.seconds is not None else now - self.began_at,
            error=error_text(endpoint, error) if error is not None else None,
        )


class Pings:
    """All open pings, by token."""

    def __init__(
        self,
        connections: Connections,
        pool: Pool,
        service_pings: ServicePings,
        cluster: KnownCluster,
        tools: Toolkit,
    ) -> None:
        self._connections = connections
        self._pool = pool
        self._service_pings = service_pings
        self._timeouts = tools.options.timeouts
        self._sdk = tools.options.user_agent
        self._configs = cluster.configs
        self._own_addresses = cluster.own_addresses
        self._terminal_states = cluster.terminal_states
        self._timers = tools.timers
        self._emit = tools.emit
        self.open: dict[int, OpenPing] = {}
        """Open pings by token."""

    def submit(self, token: int, ping: Ping, now: float, *, is_traced: bool) -> None:
        """Begin a ping, and schedule the deadline for its key-value connections."""
        timer = self._timers.schedule(now + self._timeouts.kv, TimerKind.PING, token)
        self.open[token] = OpenPing(token, ping, now, timer, is_traced)

    def abandon(self, token: int, now: float) -> None:
        """Forget a ping, and close the HTTP connections with its unanswered requests. Ignore an unknown token."""
        ping = self.open.pop(token, None)
        if ping is not None:
            self._timers.cancel(ping.timer)
            self._service_pings.stop(ping, now)

    def unreported(self, token: int) -> Sequence[str]:
        """Return, in words, the connections and services for which a ping still waits."""
        ping = self.open.get(token)
        if ping is None:
            return ()
        return [*map(status_text, ping.awaited), *map(unanswered_text, ping.unanswered)]

    def review(self, fresh: Collection[Connection], now: float) -> None:
        """Ping ready connections, report lost connections, and complete the pings that have all reports.

        Args:
            fresh: connections whose state changed.
        """
        # A terminal error on one connection also ends the ping of the connections that were lost before.
        is_terminal = any(
            connection.state is ConnectionState.LOST and self._terminal(connection) is not None for connection in fresh
        )
        for ping in list(self.open.values()):
            for connection in fresh:
                self._find_target(ping, connection, now)
            for connection in list(ping.awaited) if is_terminal else fresh:
                self._look_at(ping, connection, now)
            self._ping_services(ping, now)
            self._complete_if_whole(ping, now)

    def answered(self, connection: Connection, probe: Probe, frame: Frame, now: float) -> bool:
        """Record the response to a NOOP. Return False if the ping was no longer waiting for the response."""
        ping = self.open.get(probe.ping)
        if ping is None or connection not in ping.awaited:
            return False
        self._end_probe(ping, ping.awaited[connection], answer_attributes(server_duration(frame.framing_extras)))
        ping.report(connection, PingState.OK, None, now)
        self._connections.routes.moved(connection)
        return True

    def deadline_passed(self, token: int, now: float) -> None:
        """Report a timeout, with its reason, for each connection that has not responded."""
        ping = self.open[token]
        ping.takes_connections = False
        for connection, target in list(ping.awaited.items()):
            self._end_probe(ping, target, {})
            ping.report(connection, PingState.TIMEOUT, self._silence(connection, target), now)
        self._complete_if_whole(ping, now)

    def service_answered(self, ping: OpenPing, outcome: PingOutcome, now: float) -> None:
        """Record the result of pinging an HTTP endpoint. Complete the ping if it has all reports."""
        ping.record(outcome, now)
        self._complete_if_whole(ping, now)

    def _ping_services(self, ping: OpenPing, now: float) -> None:
        """Ping the HTTP endpoints in the newest config, each once.

        After the first config, a ping of HTTP services alone stops waiting for connections.
        """
        for endpoint in endpoints_of(ping.request, self._pool):
            if endpoint not in ping.endpoints:
                ping.endpoints[endpoint] = None
                seconds, token = self._timeouts.of_service(endpoint.service), Token(ping.token)
                self._service_pings.begin(ping, endpoint, seconds, now, traced_as=token if ping.is_traced else None)
        if self._pool.knows_topology and not ping.has_kv:
            ping.awaited.clear()

    def _outside(self, ping: OpenPing, service: Service, now: float) -> Iterator[EndpointPingReport]:
        """Yield a report on each node that has the HTTP service but no address in the client's network."""
        namespace = namespace_of(service, ping.request)
        for address, text in self._pool.outside(service, namespace):
            yield EndpointPingReport(
                type=service,
                id=stream_id(0),
                remote=str(address),
                local=None,
                namespace=namespace,
                state=PingState.ERROR,
                latency=now - ping.began_at,
                error=text,
            )

    def _find_target(self, ping: OpenPing, connection: Connection, now: float) -> None:
        if connection in ping.targets or connection.is_leaving or not ping.takes_connections:
            return
        if ping.request.bucket not in (None, connection.bucket):
            return
        streams_to_come = len(connection.addresses) - (0 if connection.state is ConnectionState.LOST else 1)
        target = _Target(connection.history.attempts + max(streams_to_come, 0), now)
        ping.targets[connection] = ping.awaited[connection] = target

    def _look_at(self, ping: OpenPing, connection: Connection, now: float) -> None:
        target = ping.awaited.get(connection)
        if target is None:
            return
        if connection.state is ConnectionState.LOST or target.stream_number != connection.stream_number:
            self._end_probe(ping, target, {})
        if connection.state is ConnectionState.READY:
            if not ping.has_kv:
                # A ping of HTTP services alone needs a connection only until it is ready: by then, the client has
                # received the node's config, if the node has one.
                del ping.awaited[connection]
            elif target.stream_number != connection.stream_number:
                target.stream_number, target.since = connection.stream_number, now
                self._probe(ping, connection, target)
            return
        # After a terminal error, do not wait for attempts at the remaining addresses, because the error affects them
        # too.
        is_over = (
            connection.history.attempts >= target.attempt_max
            or connection.is_leaving
            or self._terminal(connection) is not None
        )
        if connection.state is ConnectionState.LOST and is_over:
            ping.report(connection, PingState.ERROR, status_text(connection), now)

    def _probe(self, ping: OpenPing, connection: Connection, target: _Target) -> None:
        """Order a NOOP, and report it to a tracer if the ping is traced."""
        opaque = connection.in_flight.next_opaque
        connection.in_flight.send(Probe(ping.token), encode_request(Opcode.NOOP, opaque=opaque))
        if ping.is_traced:
            target.is_reported = True
            self._emit(dispatch_report(ping.token, connection, opaque, self._own_addresses))

    def _end_probe(self, ping: OpenPing, target: _Target, attributes: Mapping[str, AttributeValue]) -> None:
        """Report the end of a NOOP to a tracer, if the start of the NOOP was reported."""
        if target.is_reported and target.stream_number is not None:
            target.is_reported = False
            self._emit(ReportAnswer(Token(ping.token), attributes, StreamId(target.stream_number)))

    def _terminal(self, connection: Connection) -> RetryReason | None:
        return self._terminal_states.reason_for(Service.KV, bucket=connection.bucket)

    def _silence(self, connection: Connection, target: _Target) -> str:
        if target.stream_number == connection.stream_number and connection.state is ConnectionState.READY:
            return f"{connection.node}: did not respond to a NOOP within {self._timeouts.kv:g} s"
        return f"{status_text(connection)}, {self._timeouts.kv:g} s after the ping began"

    def _complete_if_whole(self, ping: OpenPing, now: float) -> None:
        if ping.awaited or ping.unanswered:
            return
        self.abandon(ping.token, now)
        endpoints: dict[Service, tuple[EndpointPingReport, ...]] = {}
        if ping.has_kv or not self._pool.knows_topology:
            reports = (target.report for target in ping.targets.values())
            endpoints[Service.KV] = tuple(report for report in reports if report is not None)
        for service in ping.request.services:
            found = [report for report in ping.endpoints.values() if report is not None and report.type is service]
            if service is not Service.KV:
                found += self._outside(ping, service, now)
            if found:
                endpoints[service] = tuple(found)
        revision = self._configs.newest_revision()
        result = PingResult(id=ping.request.report_id, sdk=self._sdk, config_rev=revision, endpoints=endpoints)
        self._emit(CompleteOperation(Token(ping.token), result))
