"""What is asked about the cluster rather than of a document: from submission to settlement, each exactly once.

After each event the client machine has the open inquiries look at the connections that took a step by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import assert_never

from triclinium_core.client.actions import Action
from triclinium_core.client.events import Token
from triclinium_core.client.health.diagnostics import cluster_state, diagnose
from triclinium_core.client.health.pings import Pings
from triclinium_core.client.health.readiness import Readiness
from triclinium_core.client.timers import Timers
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.connection.connection import Connection
from triclinium_core.kv.connection.in_flight import Probe
from triclinium_core.kv.connection.states import ConnectionState
from triclinium_core.kv.keyspaces import Keyspaces
from triclinium_core.kv.operation.inquiries import Ping, WaitUntilReady, check_report_id
from triclinium_core.kv.operation.reports import DiagnosticsResult
from triclinium_core.kv.pool.connection_texts import status_text
from triclinium_core.kv.pool.connections import Connections
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.terminal_states import TerminalStates


class Inquiries:
    """All open inquiries of a client, by token."""

    def __init__(
        self,
        connections: Connections,
        keyspaces: Keyspaces,
        *,
        timeout: float,
        sdk: str,
        terminal_states: TerminalStates,
        timers: Timers,
        emit: Callable[[Action], None],
    ) -> None:
        self._sdk = sdk
        self._connections = connections
        self._keyspaces = keyspaces
        self._pings = Pings(
            connections,
            timeout=timeout,
            sdk=sdk,
            config_revision=keyspaces.newest_revision,
            terminal_states=terminal_states,
            timers=timers,
            emit=emit,
        )
        self._readiness = Readiness(connections, terminal_states=terminal_states, emit=emit)

    def __len__(self) -> int:
        return len(self._pings.open) + len(self._readiness.open)

    def __contains__(self, token: object) -> bool:
        return token in self._pings.open or token in self._readiness.open

    def submit(self, token: Token, inquiry: Ping | WaitUntilReady, now: float) -> None:
        """Begin an inquiry, and open the connections that it is about."""
        if inquiry.bucket is None:
            self._keyspaces.reach_all_nodes(now)
        self._connections.of_bucket(inquiry.bucket, now)
        for connection in self._connections.routes.all_of(inquiry.bucket):
            self._connections.expect(connection, now)
        # The inquiry has looked at none of them yet.
        self._connections.routes.fresh = dict.fromkeys(self._connections.all)
        match inquiry:
            case Ping():
                self._pings.submit(token, inquiry, now)
            case WaitUntilReady():
                self._readiness.submit(token, inquiry)
            case _:
                assert_never(inquiry)

    def abandon(self, token: int) -> None:
        """Forget an inquiry; unknown tokens are ignored."""
        self._pings.abandon(token)
        self._readiness.abandon(token)

    def error_context(self, token: int) -> ErrorContext | None:
        """Return what is known of an inquiry that is given up now; None for unknown tokens."""
        inquiry: Ping | WaitUntilReady | None = self._pings.get(token)
        waits_for = self._pings.unreported(token)
        if inquiry is None:
            inquiry, waits_for = self._readiness.get(token), self._readiness.not_ready(token)
        if inquiry is None:
            return None
        return ErrorContext(
            service=str(Service.KV),
            operation=inquiry.name,
            idempotent=True,
            bucket=inquiry.bucket,
            # Connections to one node may well have failed alike.
            connections=tuple(dict.fromkeys(map(status_text, waits_for))),
        )

    def review(self, fresh: Collection[Connection], now: float) -> None:
        """Let every open inquiry see connections that have taken a step."""
        self._pings.review(fresh, now)
        self._readiness.review()

    def diagnostics(self, report_id: str, now: float) -> DiagnosticsResult:
        """Return how the connections stand.

        Raises:
            InvalidArgumentException: the report cannot be called so.
        """
        connections = tuple(self._connections.all)
        return DiagnosticsResult(
            id=check_report_id(report_id),
            sdk=self._sdk,
            state=cluster_state(
                sum(connection.state is ConnectionState.READY for connection in connections), len(connections)
            ),
            endpoints={
                Service.KV: tuple(
                    diagnose(connection, now) for connection in (*connections, *self._connections.draining)
                )
            },
        )

    def answered(self, connection: Connection, probe: Probe, now: float) -> bool:
        """Record an answer to a ping's NOOP, and return whether anybody still waited for it."""
        return self._pings.answered(connection, probe, now)

    def deadline_passed(self, token: int, now: float) -> None:
        """Report what a ping has found until now."""
        self._pings.deadline_passed(token, now)

    def unsupported(self, connection: Connection, detail: str) -> None:
        """Record that a peer does not speak our protocol."""
        self._readiness.unsupported(connection, detail)
