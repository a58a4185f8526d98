"""Who waits until connections are ready, and what ends the wait.

A wait has no deadline of its own. It ends with the state that it waits for, or with the exception of the terminal error
that keeps a connection from being opened: what the default retry strategy would say to an operation.

Source: SDK-RFC 0061 "The waitUntilReady Command"; SDK-RFC 0049 rev 16 "Fail Fast (Terminal Errors)"; decision C6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triclinium_core.client.actions import Action, CompleteOperation, FailOperation
from triclinium_core.client.events import Token
from triclinium_core.client.health.diagnostics import cluster_state
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import CouchbaseException, UnsupportedOperationException
from triclinium_core.kv.connection.connection import Connection
from triclinium_core.kv.connection.states import ConnectionState
from triclinium_core.kv.operation.inquiries import WaitUntilReady
from triclinium_core.kv.operation.reports import ClusterState, Ready
from triclinium_core.kv.pool.connections import Connections
from triclinium_core.retry.couchbase.failures import refused
from triclinium_core.retry.couchbase.strategy import TERMINAL_ERRORS
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.terminal_states import TerminalStates


class Readiness:
    """All waits that have not ended, by token."""

    def __init__(
        self, connections: Connections, *, terminal_states: TerminalStates, emit: Callable[[Action], None]
    ) -> None:
        self._connections = connections
        self._terminal_states = terminal_states
        self._emit = emit
        self.open: dict[int, WaitUntilReady] = {}
        """By token."""

    def submit(self, token: int, wait: WaitUntilReady) -> None:
        """Begin a wait."""
        self.open[token] = wait

    def abandon(self, token: int) -> None:
        """Forget a wait."""
        self.open.pop(token, None)

    def get(self, token: int) -> WaitUntilReady | None:
        """Return an open wait; None for unknown tokens."""
        return self.open.get(token)

    def not_ready(self, token: int) -> Sequence[Connection]:
        """Return the connections that a wait still waits for."""
        wait = self.open.get(token)
        if wait is None:
            return ()
        connections = self._connections.all
        return [
            connection
            for connection in connections
            if connection.bucket in (None, wait.bucket) and connection.state is not ConnectionState.READY
        ]

    def review(self) -> None:
        """End the waits whose state is reached, or cannot be reached."""
        for token, wait in list(self.open.items()):
            state = self._state(wait)
            error = self._terminal_error(wait)
            if state is ClusterState.ONLINE or state is wait.desired_state:
                del self.open[token]
                self._emit(CompleteOperation(Token(token), Ready(state)))
            elif error is not None:
                self._fail(token, error)

    def unsupported(self, connection: Connection, detail: str) -> None:
        """Fail the waits for a connection whose peer does not speak our protocol."""
        for token, wait in list(self.open.items()):
            if connection.bucket in (None, wait.bucket) and not connection.is_leaving:
                text = f"{wait.name}: {detail}"
                self._fail(token, UnsupportedOperationException(text, _context(wait, connection)))

    def _state(self, wait: WaitUntilReady) -> ClusterState:
        routes = self._connections.routes
        state = cluster_state(routes.ready_count(wait.bucket), len(routes.all_of(wait.bucket)))
        # RFC 0061: a bucket's readiness includes that of what belongs to no bucket. Documents can be had over the
        # bucket's connections alone.
        is_whole = routes.ready_count(None) == len(routes.all_of(None))
        return ClusterState.DEGRADED if state is ClusterState.ONLINE and not is_whole else state

    def _terminal_error(self, wait: WaitUntilReady) -> CouchbaseException | None:
        reason = self._terminal_states.reason_for(Service.KV, bucket=wait.bucket)
        if reason is None:
            return None
        connections = self._connections.all
        lost = [
            connection
            for connection in connections
            if connection.bucket in (None, wait.bucket) and connection.state is ConnectionState.LOST
        ]
        # A state from before says nothing of a connection that is being opened again.
        if not lost:
            return None
        return refused(TERMINAL_ERRORS[reason], reason, _context(wait, lost[-1]))

    def _fail(self, token: int, error: CouchbaseException) -> None:
        del self.open[token]
        self._emit(FailOperation(Token(token), error))


def _context(wait: WaitUntilReady, connection: Connection) -> ErrorContext:
    return ErrorContext(
        service=str(Service.KV),
        operation=wait.name,
        idempotent=True,
        bucket=wait.bucket,
        last_dispatched_to=connection.node,
        last_dispatch_error=connection.last_error,
    )
