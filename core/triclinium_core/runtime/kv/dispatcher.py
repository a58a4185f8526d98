"""Dispatch of key-value operations: find the connection for an attempt, and send or queue the attempt.

The dispatcher sends an attempt, queues it for its connection or for a collection id, or fails it before any byte is
sent.

Source: SDK-RFC 0049 "Client Dispatch"; decisions C6, C29, C33, C37.
"""

from __future__ import annotations

from collections.abc import Callable

from triclinium_core.contract.couchbase import Action, ReportDispatch
from triclinium_core.contract.neutral import StreamId, Token
from triclinium_core.errors import (
    DocumentUnretrievableException,
    FeatureNotAvailableException,
    UnsupportedOperationException,
)
from triclinium_core.kv.operation.document_operations import DocumentOperation, Keyspace, Operation
from triclinium_core.kv.operation.operation_codec import check_bare, encode_operation
from triclinium_core.kv.operation.scan.scan_requests import VBucketOperation
from triclinium_core.kv.topology.own_addresses import OwnAddresses
from triclinium_core.retry.couchbase import Dispatched, DispatchFailed, Load, RetryReason, Service
from triclinium_core.runtime.kv.collection_lookups import CollectionLookups
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.connection.waiting_line import WAITING_MAX
from triclinium_core.runtime.kv.destinations import Destination, vbucket_of
from triclinium_core.runtime.kv.known_cluster import KnownCluster
from triclinium_core.runtime.kv.live_operation import LiveOperation
from triclinium_core.runtime.kv.pool.connection_texts import status_text
from triclinium_core.runtime.kv.pool.connections import Connections
from triclinium_core.runtime.kv.pool.keepalive import KeepAlive
from triclinium_core.runtime.lifecycle.carrier import Refused, Undispatched
from triclinium_core.runtime.lifecycle.stages import Stage
from triclinium_core.telemetry.attributes import dispatch_attributes

_READY, _IN_FLIGHT = ConnectionState.READY, Stage.IN_FLIGHT
"""Aliases of enum members used in each dispatch; ``kv.wire.constants`` documents the cost of a lookup."""


def load_of(connection: Connection) -> Load:
    """Return the load of a connection: its unanswered requests, and the peak of its queue or 0 for an empty queue."""
    return Load(len(connection.in_flight), connection.waiting.peak if connection.waiting else 0)


def dispatch_report(token: int, connection: Connection, opaque: int, own_addresses: OwnAddresses) -> ReportDispatch:
    """Return the action that reports to a tracer that the client has ordered the frame of a request."""
    link, server = connection.link, own_addresses.of(connection.address)
    attributes = dispatch_attributes(
        (server.host, server.port), peer=link.remote_address, local_id=link.local_id, operation_id=opaque
    )
    return ReportDispatch(Token(token), attributes, StreamId(link.stream))


class KeyValueDispatcher:
    """Sender of operations. It records the connection for which each queued operation waits."""

    def __init__(
        self,
        connections: Connections,
        keep_alive: KeepAlive,
        collections: CollectionLookups,
        cluster: KnownCluster,
        *,
        emit: Callable[[Action], None],
    ) -> None:
        self._connections = connections
        self._keep_alive = keep_alive
        self._collections = collections
        self._configs = cluster.configs
        self._maps = cluster.maps
        self._own_addresses = cluster.own_addresses
        self._terminal_states = cluster.terminal_states
        self._destinations = cluster.destinations
        self._emit = emit
        self._waits_for: dict[int, Connection] = {}
        """Connection for which each queued operation waits, by token. The operation waits until the connection is ready
        and has capacity, or has sent a collection id."""

    def waits_for(self, token: int) -> Connection | None:
        """Return the connection for which an operation waits; None if it does not wait."""
        return self._waits_for.get(token)

    def released(self, token: int) -> None:
        """Record that the wait of an operation is over."""
        self._waits_for.pop(token, None)

    def collection_outdated(self, keyspace: Keyspace) -> None:
        """Forget a collection id that a node has rejected (decision C9)."""
        self._collections.outdated(keyspace)

    def stop_waiting(self, operation: LiveOperation) -> None:
        """End the wait of an operation, if it waits."""
        connection = self._waits_for.pop(operation.token, None)
        if connection is not None:
            self._collections.stop_waiting(operation.request.keyspace, operation.token)
            connection.waiting.leave(operation.token)

    def dispatch(
        self, operation: LiveOperation, now: float, *, turn_at: Connection | None = None
    ) -> Undispatched | None:
        """Send an operation to a node, or queue the operation until it can be sent.

        Args:
            turn_at: connection whose queue the operation has just left as the first one. On any other connection, the
                operation goes to the end of the queue if other operations are queued there.

        Returns:
            None if the operation was sent or queued, otherwise the reason why it was neither.
        """
        request, found = operation.request, None
        # After a node has refused the vbucket, the cached route may be wrong, so search for the node again.
        if not operation.wrong_node_count:
            found = self._destinations.recall(request)
        if found is None:
            found = self._search(operation, now)
            if found is None:
                return self._lack_node(operation)
        connection, prefix = found.connection, found.prefixes.get(request.keyspace)
        in_flight = connection.in_flight
        operation.map, operation.vbucket = found.map, found.vbucket
        try:
            if connection.state is not _READY or not connection.breaker.allows_operations:
                return self._hold(operation, connection)
            if in_flight.is_full or (connection.waiting.tokens and turn_at is not connection):
                return self._queue(operation, connection, now)
            if prefix is None:
                prefix = self._prefix(operation, connection)
                if prefix is None:
                    return self._wait_for_collection(operation, connection, now)
            opaque = in_flight.next_opaque
            # Decision C29: encode a new frame for every attempt.
            frame = encode_operation(
                request,
                connection.dialect,
                opaque=opaque,
                vbucket=operation.vbucket,
                prefix=prefix,
                time_left=operation.deadline - now,
            )
        except FeatureNotAvailableException as error:
            return Refused(FeatureNotAvailableException, error.message)
        operation.opaque, operation.link, operation.dispatched_at = opaque, connection.link, now
        operation.stage = _IN_FLIGHT
        if operation.permit is not None:
            operation.permit.begin()
        in_flight.send(operation, frame)
        if operation.is_traced:
            self._emit(dispatch_report(operation.token, connection, opaque, self._own_addresses))
        if operation.retry is not None:
            link = connection.link
            operation.retry.handle(Dispatched(connection.node, opaque, link.local_address, link.stream), now)
        return None

    def lost(
        self, operation: LiveOperation, connection: Connection, detail: str, *, load: Load | None = None
    ) -> Undispatched:
        """End the wait of an operation for ``connection``. Return why the operation cannot be sent on the connection.

        Args:
            load: load of the connection, for the error; None to leave it out.
        """
        self._waits_for.pop(operation.token, None)
        if connection.history.last_end.is_unsupported:
            return Refused(UnsupportedOperationException, detail)
        return DispatchFailed(self.reason_of_waiting(operation, connection), detail, node=connection.node, load=load)

    def reason_of_waiting(self, operation: LiveOperation, connection: Connection) -> RetryReason:
        """Return the retry reason of an operation that the client could not send on ``connection``."""
        # Decision C6: prefer a terminal state, because it is more specific than the state of the socket.
        return self.terminal_reason(operation) or connection.history.unavailable_reason

    def terminal_reason(self, operation: LiveOperation) -> RetryReason | None:
        """Return the retry reason for the terminal state that prevents an operation; None if no state prevents it."""
        keyspace = operation.request.keyspace
        return self._terminal_states.reason_for(
            Service.KV, bucket=keyspace.bucket, scope=keyspace.scope, collection=keyspace.collection
        )

    def _search(self, operation: LiveOperation, now: float) -> Destination | None:
        """Return the route of an operation in the newest map. Return None if no known node has the requested copy."""
        request = operation.request
        bucket, copy = request.keyspace.bucket, request.copy
        known = self._maps.get(bucket)
        if known is not operation.map:
            operation.map, operation.wrong_node_count = known, 0
        # Decision C29: compute the vbucket again, because the map may have changed.
        vbucket = operation.vbucket = self._vbucket(request)
        if known is None or not isinstance(request, DocumentOperation | VBucketOperation):
            return Destination(known, vbucket, self._connections.of_bucket(bucket, now))
        # If a node refuses the vbucket during a rebalance, alternate between the maps from before and after it, until a
        # newer map arrives.
        address = known.next_holder(vbucket, copy) if operation.wrong_node_count % 2 == 1 else None
        address = address or known.holder(vbucket, copy)
        if address is None:
            return None
        return Destination(known, vbucket, self._connections.of_address(bucket, address, now))

    def _vbucket(self, request: Operation) -> int:
        """Return the vbucket of an operation or of its document; 0 for an operation without a vbucket."""
        if isinstance(request, VBucketOperation):
            return request.vbucket
        if not isinstance(request, DocumentOperation):
            return 0
        return vbucket_of(request.key.encode(), self._configs.vbucket_count(request.keyspace.bucket))

    def _lack_node(self, operation: LiveOperation) -> Undispatched:
        """Return the reason why no known node has the operation's vbucket, or the requested copy of it."""
        request, known, vbucket = operation.request, operation.map, operation.vbucket
        if request.copy:
            # RFC 0053 §GetReplica Strategies: the read of a copy that the map lacks fails immediately, because the
            # caller can read another copy.
            text = f"vbucket {vbucket} has no replica {request.copy} on any node; read another copy"
            kept = self._configs.replica_count(request.keyspace.bucket) or 0
            if request.copy > kept:
                text = f"there is no replica {request.copy}: the bucket keeps {kept} of each document"
            return Refused(DocumentUnretrievableException, text)
        assert known is not None, "without a map, an operation may go to any node of the bucket"
        reason = RetryReason.SERVICE_NOT_AVAILABLE if known.lacks_service(vbucket) else RetryReason.NODE_NOT_AVAILABLE
        return DispatchFailed(reason, known.obstacle(vbucket))

    def _hold(self, operation: LiveOperation, connection: Connection) -> Undispatched | None:
        """Queue an operation if its connection is being established or reauthenticates.

        Return None if the operation was queued, otherwise the reason why it cannot be sent.
        """
        if connection.dialect.bare:
            check_bare(operation.request)
        if connection.state.is_underway:
            return self._wait(operation, connection)
        if connection.state is ConnectionState.LOST:
            return self.lost(operation, connection, status_text(connection))
        detail = f"{connection.node}: the circuit breaker is {connection.breaker.state.value}"
        return DispatchFailed(RetryReason.CIRCUIT_BREAKER_OPEN, detail, node=connection.node)

    def _queue(self, operation: LiveOperation, connection: Connection, now: float) -> Undispatched | None:
        """Queue an operation until a connection has capacity. Return the reason if the queue is full, else None."""
        if connection.dialect.bare:
            check_bare(operation.request)
        if connection.in_flight.is_full:
            self._keep_alive.lacks_room(connection, now)
        return self._wait(operation, connection)

    def _wait(self, operation: LiveOperation, connection: Connection) -> Undispatched | None:
        """Add an operation to the queue of a connection.

        Return the reason if the queue is full, else None (decision C37).
        """
        if len(connection.waiting) >= WAITING_MAX:
            return self.lost(operation, connection, status_text(connection), load=load_of(connection))
        self._waits_for[operation.token] = connection
        connection.waiting.join(operation.token)
        return None

    def _prefix(self, operation: LiveOperation, connection: Connection) -> bytes | None:
        """Return the collection prefix of an operation, and cache the route to an active copy.

        Return None if the collection id is not known.

        Raises:
            FeatureNotAvailableException: the bucket or the connection lacks a feature that the operation needs.
        """
        request = operation.request
        self._check_capability(request)
        prefix = self._collections.prefix(connection, request)
        if prefix is not None and request.is_for_active_copy and not operation.wrong_node_count:
            bucket = request.keyspace.bucket
            found = Destination(operation.map, operation.vbucket, connection, self._collections.prefixes(connection))
            self._destinations.remember(bucket, self._configs.vbucket_count(bucket), found)
        return prefix

    def _check_capability(self, request: Operation) -> None:
        """Check the newest config of the bucket for the capability that an operation needs.

        During an upgrade of the cluster, a node may negotiate a feature that the bucket does not support yet.

        Raises:
            FeatureNotAvailableException: the bucket lacks the capability.
        """
        config = self._configs.get(request.keyspace.bucket)
        if request.capability is not None and config and request.capability not in config.can:
            raise FeatureNotAvailableException(
                f"{request.name} needs the capability {request.capability}, which bucket "
                f"{request.keyspace.bucket!r} does not have; its servers may be too old"
            )

    def _wait_for_collection(self, operation: LiveOperation, connection: Connection, now: float) -> Undispatched | None:
        """Queue an operation until its collection id is known.

        Return the reason if the queue is full, else None (decision C37).
        """
        keyspace = operation.request.keyspace
        if not self._collections.wait(connection, keyspace, operation.token, now):
            path = f"{keyspace.scope}.{keyspace.collection}"
            detail = f"{connection.node}: {WAITING_MAX} operations already wait for the id of collection {path}"
            return self.lost(operation, connection, detail)
        self._waits_for[operation.token] = connection
        return None
