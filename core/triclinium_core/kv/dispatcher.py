"""Where the next attempt of an operation goes, and how it gets there: the dispatch stage of SDK-RFC 0049.

An attempt is sent, waits for its connection or for a collection's id, or fails without having left the client.

Source: SDK-RFC 0049 "Client Dispatch"; decisions C6, C29, C33, C37.
"""

from __future__ import annotations

import math
from typing import Protocol

from triclinium_core.errors import (
    CouchbaseException,
    DocumentUnretrievableException,
    FeatureNotAvailableException,
    UnsupportedOperationException,
)
from triclinium_core.kv.connection_texts import status_text
from triclinium_core.kv.connections import Connections
from triclinium_core.kv.keyspaces import Keyspaces
from triclinium_core.kv.node.node_machine import NodeMachine
from triclinium_core.kv.node.states import NodeState
from triclinium_core.kv.node.waiting_line import WAITING_MAX
from triclinium_core.kv.operation.codec import bare_obstacle, encode_operation, opcode_of
from triclinium_core.kv.operation.operation import LiveOperation
from triclinium_core.retry.couchbase import events as facts
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.terminal_states import TerminalStates


class Owner(Protocol):
    """Who knows what becomes of an operation that cannot be dispatched: ``Operations``."""

    def feed(self, operation: LiveOperation, event: facts.RequestEvent, now: float) -> None:
        """Feed the operation's retry machine and carry out what it orders."""

    def fail(self, token: int, error: type[CouchbaseException], text: str, now: float) -> None:
        """Fail an operation that cannot succeed, without asking its strategy."""


def load_of(node: NodeMachine) -> facts.Load:
    """Return how much a connection has to do."""
    return facts.Load(len(node.in_flight), node.parked.peak if node.parked else 0)


class Dispatcher:
    """Sends operations, and knows which of them wait for what."""

    def __init__(
        self, connections: Connections, keyspaces: Keyspaces, terminal_states: TerminalStates, owner: Owner
    ) -> None:
        self._connections = connections
        self._keyspaces = keyspaces
        self._terminal_states = terminal_states
        self._owner = owner
        self._waits_for: dict[int, NodeMachine] = {}
        """By token, the connection that an operation waits for: to become ready, or to tell a collection's id."""

    def waits_for(self, token: int) -> NodeMachine | None:
        """Return the connection that an operation waits for; None for one that does not wait."""
        return self._waits_for.get(token)

    def released(self, token: int) -> None:
        """Take note that what an operation waited for has come, or will not."""
        self._waits_for.pop(token, None)

    def stop_waiting(self, operation: LiveOperation) -> None:
        """Have an operation wait no longer, if it does."""
        node = self._waits_for.pop(operation.token, None)
        if node is not None:
            self._keyspaces.stop_waiting(operation.request.keyspace, operation.token)
            node.parked.leave(operation.token)

    def dispatch(self, operation: LiveOperation, now: float, *, turn_at: NodeMachine | None = None) -> None:
        """Send an operation to the node that has its document, now or as soon as that can be.

        Args:
            turn_at: the connection for which it has waited for longest; for any other it queues up.
        """
        request = operation.request
        known = self._keyspaces.map_of(request.keyspace.bucket)
        if known is not operation.map:
            operation.map, operation.led_astray = known, 0
        # Until a newer map comes, the one before and the one after the rebalance are tried in turn.
        forward = operation.led_astray % 2 == 1
        # Decision C29: resolved again for every attempt.
        operation.vbucket = self._keyspaces.vbucket(request)
        node = self._keyspaces.connection_for(request, operation.vbucket, now, forward=forward)
        if node is None:
            self._lack_node(operation, now)
            return
        obstacle = bare_obstacle(request) if node.dialect.bare else None
        if obstacle is not None:
            self._owner.fail(operation.token, FeatureNotAvailableException, obstacle, now)
        elif node.state.is_underway:
            self._wait(operation, node, now)
        elif node.state is NodeState.LOST:
            self.fail(operation, node, status_text(node), now)
        elif not node.breaker.allows_operations:
            detail = f"{node.node}: the circuit breaker is {node.breaker.state.value}"
            failed = facts.DispatchFailed(RetryReason.CIRCUIT_BREAKER_OPEN, detail, node=node.node)
            self._owner.feed(operation, failed, now)
        elif node.in_flight.is_full or (node.parked and turn_at is not node):
            if node.in_flight.is_full:
                self._connections.upkeep.lacks_room(node, now)
            self._wait(operation, node, now)
        else:
            node.full_since = math.inf
            self._send(operation, node, now)

    def fail(
        self, operation: LiveOperation, node: NodeMachine, detail: str, now: float, *, load: facts.Load | None = None
    ) -> None:
        """Retry or fail an operation that could not be sent to ``node``.

        Args:
            load: what the node had to do, where that is why.
        """
        self._waits_for.pop(operation.token, None)
        if node.is_hopeless:
            self._owner.fail(operation.token, UnsupportedOperationException, detail, now)
            return
        # Decision C6: a terminal state says better than the socket what is wrong.
        reason = self.terminal_reason(operation) or node.unavailable_reason
        self._owner.feed(operation, facts.DispatchFailed(reason, detail, node=node.node, load=load), now)

    def terminal_reason(self, operation: LiveOperation) -> RetryReason | None:
        """Return what is known to be wrong for good with what an operation needs; None for nothing."""
        keyspace = operation.request.keyspace
        return self._terminal_states.reason_for(
            Service.KV, bucket=keyspace.bucket, scope=keyspace.scope, collection=keyspace.collection
        )

    def _lack_node(self, operation: LiveOperation, now: float) -> None:
        """Retry or fail an operation on a document, or a copy of it, that no node has."""
        request = operation.request
        if request.copy:
            # RFC 0053 §GetReplica Strategies: what the map lacks fails at once. The other copies are as good.
            text = f"vbucket {operation.vbucket} has no replica {request.copy} on any node now; read another copy"
            kept = self._keyspaces.replica_count(request.keyspace.bucket) or 0
            if request.copy > kept:
                text = f"there is no replica {request.copy}: the bucket keeps {kept} of each document"
            self._owner.fail(operation.token, DocumentUnretrievableException, text, now)
            return
        obstacle = self._keyspaces.obstacle(request, operation.vbucket)
        self._owner.feed(operation, facts.DispatchFailed(*obstacle), now)

    def _wait(self, operation: LiveOperation, node: NodeMachine, now: float) -> None:
        """Have an operation queue up for a connection, unless its queue is full (decision C37)."""
        if len(node.parked) >= WAITING_MAX:
            self.fail(operation, node, status_text(node), now, load=load_of(node))
            return
        self._waits_for[operation.token] = node
        node.parked.join(operation.token)

    def _send(self, operation: LiveOperation, node: NodeMachine, now: float) -> None:
        request = operation.request
        if self._keyspaces.is_crowded(request.keyspace):
            path = f"{request.keyspace.scope}.{request.keyspace.collection}"
            detail = f"{node.node}: {WAITING_MAX} operations wait for the id of collection {path} already"
            self.fail(operation, node, detail, now)
            return
        try:
            self._keyspaces.check_capability(request)
            prefix = self._keyspaces.prefix(node, request, operation.token, now)
            if prefix is None:
                self._waits_for[operation.token] = node
                return
            # Decision C29: every attempt is a new frame.
            opaque, stream = self._connections.send(
                node,
                operation.token,
                opcode_of(request, node.dialect),
                lambda opaque: encode_operation(
                    request,
                    node.dialect,
                    opaque=opaque,
                    vbucket=operation.vbucket,
                    prefix=prefix,
                    time_left=operation.deadline - now,
                ),
            )
        except FeatureNotAvailableException as error:
            self._owner.fail(operation.token, FeatureNotAvailableException, error.message, now)
            return
        operation.node, operation.sender = node.node, node.local_address
        operation.opaque, operation.stream = opaque, stream
        if operation.retry is not None:
            operation.retry.handle(facts.Dispatched(node.node, opaque, node.local_address), now)
