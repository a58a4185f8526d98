"""Requests of the client itself on a ready connection: NOOP, canary of the circuit breaker, poll of the cluster config.

Source: decisions C33 and C37; SDK-RFC 0059 "Configuration".
"""

from __future__ import annotations

import math

from triclinium_core.contract.couchbase import TimerKind
from triclinium_core.kv.wire.config_version import encode_version
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import encode_request
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.couchbase import BreakerEvent
from triclinium_core.runtime.kv.collection_ids import QUESTION_SECONDS
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.grace_period import SECONDS_MAX
from triclinium_core.runtime.kv.connection.in_flight import Purpose
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.known_configs import KnownConfigs
from triclinium_core.runtime.kv.pool.connection_timers import ConnectionTimers
from triclinium_core.runtime.kv.pool.connections import Connections


class KeepAlive:
    """Requests of the client itself on ready connections."""

    def __init__(
        self,
        connections: Connections,
        configs: KnownConfigs,
        timers: ConnectionTimers,
        timeouts: TimeoutOptions,
    ) -> None:
        self._connections = connections
        self._configs = configs
        self._timers = timers
        self._timeouts = timeouts
        self.read_at: float = -math.inf
        """Time of the last ``TimePassed``. By then, the driver had read all received bytes, except on the streams in
        ``unread``. A response that a busy client has not read yet does not count as missing."""

    @property
    def config_spacing(self) -> float:
        """Half of the poll interval, in seconds. The responses to two polls are further apart, even if one is late."""
        return self._timeouts.config_poll_interval / 2

    def begin(self, connection: Connection, now: float) -> None:
        """Schedule the checks of a connection that has become ready."""
        self._timers.schedule(connection, TimerKind.KEEP_ALIVE, now + self._timeouts.keep_alive_interval)
        if _has_to_be_polled(connection):
            self._timers.schedule(connection, TimerKind.CONFIG_POLL, now + self._timeouts.config_poll_interval)

    def lacks_room(self, connection: Connection, now: float) -> None:
        """Set a timer that closes a connection on which operations wait for capacity, unless it has capacity by then.

        A timer makes the decision, so that the client first reads all received bytes.
        """
        if connection.in_flight.lacks_room(now):
            self._timers.schedule(connection, TimerKind.NO_ROOM, now + SECONDS_MAX)

    def on_timer(self, kind: TimerKind, connection: Connection, now: float) -> None:
        """Send a periodic request, feed the breaker, or close a connection without a response or without capacity."""
        self._timers.cancel(connection, kind)
        match kind:
            case TimerKind.KEEP_ALIVE:
                self._keep_alive(connection, now)
            case TimerKind.KEEP_ALIVE_ANSWER:
                self._connections.close(
                    connection, f"did not respond to a NOOP within {self._timeouts.keep_alive:g} s", now
                )
            case TimerKind.CONFIG_POLL:
                self.refresh_config(connection, now)
                # A connection that authenticates again cannot request the config now, so it tries again later.
                is_ready = connection.state is ConnectionState.READY
                if connection.is_in_use and (_has_to_be_polled(connection) or not is_ready):
                    self._timers.schedule(connection, TimerKind.CONFIG_POLL, now + self._timeouts.config_poll_interval)
            case TimerKind.NO_ROOM:
                self._give_up_full(connection, now)
            case TimerKind.CIRCUIT_BREAKER:
                self.feed_breaker(connection, BreakerEvent.TIME_PASSED, now)
            case TimerKind.CANARY:
                self.feed_breaker(connection, BreakerEvent.CANARY_TIMED_OUT, now)
            case _:
                raise AssertionError(f"{kind} is not a timer of a connection")

    def answered(self, connection: Connection, purpose: Purpose, now: float) -> None:
        """Record the response to a keep-alive NOOP or to a canary."""
        if purpose is Purpose.CANARY:
            self._timers.cancel(connection, TimerKind.CANARY)
            self.feed_breaker(connection, BreakerEvent.CANARY_ANSWERED, now)
            return
        self._timers.cancel(connection, TimerKind.KEEP_ALIVE_ANSWER)
        if connection.is_in_use:
            # The connection is not in use if an earlier response in the same bytes has closed the stream.
            self._timers.schedule(connection, TimerKind.KEEP_ALIVE, now + self._timeouts.keep_alive_interval)

    def refresh_config(self, connection: Connection, now: float) -> None:
        """Request the newest cluster config, now or when the minimum interval between two requests has passed.

        Do nothing if a recent request is still unanswered, if the connection is not ready, or on a plain memcached.
        """
        if (
            connection.state is not ConnectionState.READY
            or connection.dialect.bare
            or connection.own_requests.is_config_pending(now, QUESTION_SECONDS)
        ):
            return
        allowed_at = connection.own_requests.config_allowed_at(self._timeouts.config_poll_floor)
        if now < allowed_at:
            self._timers.schedule(connection, TimerKind.CONFIG_POLL, allowed_at)
        elif self.may_request_again(connection, now):
            connection.own_requests.config_requested(now)
            extras = b""
            if connection.negotiated.sends_only_new_config:
                extras = encode_version(self._configs.settled_version(connection.bucket))
            self._send_own(connection, Purpose.CONFIG, Opcode.GET_CLUSTER_CONFIG, extras)

    def fetch_announced(self, connection: Connection, now: float) -> None:
        """Request the config that a node has announced, unless the client has it."""
        if connection.own_requests.announces_newer(self._configs.version(connection.bucket)):
            self.refresh_config(connection, now)

    def may_request_again(self, connection: Connection, now: float) -> bool:
        """Return whether to send another request of the client itself.

        Close a connection that has ignored all such requests during the grace period.
        """
        if connection.own_requests.are_ignored(now, read_at=self.read_at):
            self._connections.close(connection, f"has responded to no internal request for {SECONDS_MAX:g} s", now)
        return connection.state is ConnectionState.READY

    def feed_breaker(self, connection: Connection, event: BreakerEvent, now: float) -> None:
        """Pass an event to the connection's breaker, and send a canary if the breaker requests it."""
        if connection.feed_breaker(event, now) and connection.is_in_use:
            self._send_own(connection, Purpose.CANARY, Opcode.NOOP)
            self._timers.schedule(connection, TimerKind.CANARY, now + connection.breaker.canary_timeout)
        self._timers.schedule(connection, TimerKind.CIRCUIT_BREAKER, connection.breaker.wakeup)

    def _give_up_full(self, connection: Connection, now: float) -> None:
        if connection.in_flight.has_lacked_room(now, SECONDS_MAX):
            self._connections.close(
                connection, f"has left {len(connection.in_flight)} requests unanswered for {SECONDS_MAX:g} s", now
            )

    def _keep_alive(self, connection: Connection, now: float) -> None:
        due = connection.received.at + self._timeouts.keep_alive_interval
        if due > now:
            self._timers.schedule(connection, TimerKind.KEEP_ALIVE, due)
            return
        self._send_own(connection, Purpose.KEEP_ALIVE, Opcode.NOOP)
        self._timers.schedule(connection, TimerKind.KEEP_ALIVE_ANSWER, now + self._timeouts.keep_alive)

    def _send_own(self, connection: Connection, purpose: Purpose, opcode: Opcode, extras: bytes = b"") -> None:
        in_flight = connection.in_flight
        in_flight.send(purpose, encode_request(opcode, opaque=in_flight.next_opaque, extras=extras))


def _has_to_be_polled(connection: Connection) -> bool:
    """Return whether the client must poll for new configs: the node has configs, but does not announce them."""
    return not connection.dialect.bare and not connection.negotiated.announces_configs
