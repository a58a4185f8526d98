"""Pings that are under way: a NOOP on each connection, and one report of all.

A connection that is being opened is pinged once it is ready, so a ping waits for the bootstrap, and finds the nodes of a
map that comes meanwhile. One that is lost and has no other address to try is reported as it is, without waiting for its
backoff.

Source: SDK-RFC 0061 "The ping Command".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from triclinium_core.client.actions import Action, CompleteOperation
from triclinium_core.client.events import Token
from triclinium_core.client.health.diagnostics import endpoint_id
from triclinium_core.client.timers import TimerId, TimerKind, Timers
from triclinium_core.kv.connection.connection import Connection
from triclinium_core.kv.connection.in_flight import Probe
from triclinium_core.kv.connection.states import ConnectionState
from triclinium_core.kv.operation.inquiries import Ping
from triclinium_core.kv.operation.reports import EndpointPingReport, PingResult, PingState
from triclinium_core.kv.pool.connection_texts import status_text
from triclinium_core.kv.pool.connections import Connections
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import encode_request
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.terminal_states import TerminalStates


@dataclass(slots=True)
class _Target:
    """One connection of a ping."""

    attempt_max: int
    """The stream after which there is none to wait for."""
    since: float
    """When the NOOP was ordered, or the ping began."""
    stream_number: int | None = None
    """The stream on which the NOOP travels; None while there is none."""
    report: EndpointPingReport | None = None


@dataclass(slots=True)
class _OpenPing:
    """One ping that is not complete."""

    request: Ping
    timer: TimerId
    targets: dict[Connection, _Target] = field(default_factory=dict)
    awaited: dict[Connection, _Target] = field(default_factory=dict)
    """Those without a report."""

    def report(self, connection: Connection, state: PingState, error: str | None, now: float) -> None:
        """Record what became of a connection."""
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


class Pings:
    """All open pings, by token.

    Args:
        timeout: seconds after which a silent connection is reported as such.
        sdk: who reports.
        config_revision: tells the newest of all configs.
    """

    def __init__(
        self,
        connections: Connections,
        *,
        timeout: float,
        sdk: str,
        config_revision: Callable[[], int | None],
        terminal_states: TerminalStates,
        timers: Timers,
        emit: Callable[[Action], None],
    ) -> None:
        self._connections = connections
        self._timeout = timeout
        self._sdk = sdk
        self._config_revision = config_revision
        self._terminal_states = terminal_states
        self._timers = timers
        self._emit = emit
        self.open: dict[int, _OpenPing] = {}
        """By token."""

    def submit(self, token: int, ping: Ping, now: float) -> None:
        """Begin a ping."""
        timer = self._timers.schedule(now + self._timeout, TimerKind.PING, token)
        self.open[token] = _OpenPing(ping, timer)

    def abandon(self, token: int) -> None:
        """Forget a ping."""
        ping = self.open.pop(token, None)
        if ping is not None:
            self._timers.cancel(ping.timer)

    def get(self, token: int) -> Ping | None:
        """Return an open ping; None for unknown tokens."""
        ping = self.open.get(token)
        return ping.request if ping is not None else None

    def unreported(self, token: int) -> Sequence[Connection]:
        """Return the connections that a ping still waits for."""
        ping = self.open.get(token)
        return tuple(ping.awaited) if ping is not None else ()

    def review(self, fresh: Collection[Connection], now: float) -> None:
        """Ping what has become ready, report what is lost, and complete the pings that wait for nothing more.

        Args:
            fresh: the connections that have taken a step.
        """
        # A terminal error of one connection concerns those that were lost before as well.
        is_terminal = any(
            connection.state is ConnectionState.LOST and self._terminal(connection) is not None for connection in fresh
        )
        for token, ping in list(self.open.items()):
            for connection in fresh:
                self._find_target(ping, connection, now)
            for connection in list(ping.awaited) if is_terminal else fresh:
                self._look_at(token, ping, connection, now)
            if not ping.awaited:
                self._complete(token, ping)

    def answered(self, connection: Connection, probe: Probe, now: float) -> bool:
        """Record an answer to a NOOP, and return whether anybody still waited for it."""
        ping = self.open.get(probe.ping)
        if ping is None or connection not in ping.awaited:
            return False
        ping.report(connection, PingState.OK, None, now)
        self._connections.routes.moved(connection)
        return True

    def deadline_passed(self, token: int, now: float) -> None:
        """Report what has not answered as it is."""
        ping = self.open[token]
        for connection, target in list(ping.awaited.items()):
            ping.report(connection, PingState.TIMEOUT, self._silence(connection, target), now)
        self._complete(token, ping)

    def _find_target(self, ping: _OpenPing, connection: Connection, now: float) -> None:
        if connection in ping.targets or connection.is_leaving or ping.request.bucket not in (None, connection.bucket):
            return
        streams_to_come = connection.address_count - (0 if connection.state is ConnectionState.LOST else 1)
        target = _Target(connection.attempts + max(streams_to_come, 0), now)
        ping.targets[connection] = ping.awaited[connection] = target

    def _look_at(self, token: int, ping: _OpenPing, connection: Connection, now: float) -> None:
        target = ping.awaited.get(connection)
        if target is None:
            return
        if connection.state is ConnectionState.READY:
            if target.stream_number != connection.stream_number:
                target.stream_number, target.since = connection.stream_number, now
                noop = encode_request(Opcode.NOOP, opaque=connection.in_flight.next_opaque)
                self._connections.send(connection, Probe(token), noop)
            return
        # A terminal error is mended by none of the addresses that are left to try.
        is_over = (
            connection.attempts >= target.attempt_max or connection.is_leaving or self._terminal(connection) is not None
        )
        if connection.state is ConnectionState.LOST and is_over:
            ping.report(connection, PingState.ERROR, status_text(connection), now)

    def _terminal(self, connection: Connection) -> RetryReason | None:
        return self._terminal_states.reason_for(Service.KV, bucket=connection.bucket)

    def _silence(self, connection: Connection, target: _Target) -> str:
        if target.stream_number == connection.stream_number and connection.state is ConnectionState.READY:
            return f"{connection.node}: did not answer a NOOP within {self._timeout:g} s"
        return f"{status_text(connection)}, {self._timeout:g} s after the ping began"

    def _complete(self, token: int, ping: _OpenPing) -> None:
        self.abandon(token)
        endpoints: Mapping[Service, tuple[EndpointPingReport, ...]] = {
            Service.KV: tuple(target.report for target in ping.targets.values() if target.report is not None)
        }
        result = PingResult(
            id=ping.request.report_id, sdk=self._sdk, config_rev=self._config_revision(), endpoints=endpoints
        )
        self._emit(CompleteOperation(Token(token), result))
