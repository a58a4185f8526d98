"""Dispatch of key-value operations: finds the connection of an attempt, and sends or queues it.

An attempt is sent, waits for its connection or for a collection's id, or fails without having left the client.

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
"""Members that each dispatch needs. ``kv.wire.constants`` has the figure of such names."""


def load_of(connection: Connection) -> Load:
    """Return how much a connection has to do."""
    return Load(len(connection.in_flight), connection.waiting.peak if connection.waiting else 0)


def dispatch_report(token: int, connection: Connection, opaque: int, own_addresses: OwnAddresses) -> ReportDispatch:
    """Return what is told of an attempt that was just ordered to be sent on a connection."""
    link, server = connection.link, own_addresses.of(connection.address)
    attributes = dispatch_attributes(
        (server.host, server.port), peer=link.remote_address, local_id=link.local_id, operation_id=opaque
    )
    return ReportDispatch(Token(token), attributes, StreamId(link.stream))


class KeyValueDispatcher:
    """Sends operations, and knows which of them wait for what."""

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
        """By token, the connection that an operation waits for: to become ready, or to tell a collection's id."""

    def waits_for(self, token: int) -> Connection | None:
        """Return the connection that an operation waits for; None for one that does not wait."""
        return self._waits_for.get(token)

    def released(self, token: int) -> None:
        """Record that what an operation waited for has come, or will not."""
        self._waits_for.pop(token, None)

    def collection_outdated(self, keyspace: Keyspace) -> None:
        """Forget a collection id that a node has rejected (decision C9)."""
        self._collections.outdated(keyspace)

    def stop_waiting(self, operation: LiveOperation) -> None:
        """Have an operation wait no longer, if it does."""
        connection = self._waits_for.pop(operation.token, None)
        if connection is not None:
            self._collections.stop_waiting(operation.request.keyspace, operation.token)
            connection.waiting.leave(operation.token)

    def dispatch(
        self, operation: LiveOperation, now: float, *, turn_at: Connection | None = None
    ) -> Undispatched | None:
        """Send an operation to the node that has its document, now or as soon as that can be.

        Args:
            turn_at: the connection for which it has waited for longest; for any other it queues up.

        Returns:
            None where it was sent, or waits; otherwise why not.
        """
        request, found = operation.request, None
        # A vbucket of which a node said that it is not there is searched with all that is known.
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
            # Decision C29: every attempt is a new frame.
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
            operation.retry.handle(Dispatched(connection.node, opaque, connection.link.local_address), now)
        return None

    def lost(
        self, operation: LiveOperation, connection: Connection, detail: str, *, load: Load | None = None
    ) -> Undispatched:
        """Return why an operation cannot be sent to ``connection``, for which it waits no longer.

        Args:
            load: what the node had to do, where that is why.
        """
        self._waits_for.pop(operation.token, None)
        if connection.history.last_end.is_unsupported:
            return Refused(UnsupportedOperationException, detail)
        return DispatchFailed(self.reason_of_waiting(operation, connection), detail, node=connection.node, load=load)

    def reason_of_waiting(self, operation: LiveOperation, connection: Connection) -> RetryReason:
        """Return the reason of the failure if ``operation`` is not sent to ``connection`` in time."""
        # Decision C6: a terminal state says better than the socket what is wrong.
        return self.terminal_reason(operation) or connection.history.unavailable_reason

    def terminal_reason(self, operation: LiveOperation) -> RetryReason | None:
        """Return what is known to be wrong for good with what an operation needs; None for nothing."""
        keyspace = operation.request.keyspace
        return self._terminal_states.reason_for(
            Service.KV, bucket=keyspace.bucket, scope=keyspace.scope, collection=keyspace.collection
        )

    def _search(self, operation: LiveOperation, now: float) -> Destination | None:
        """Return where an operation goes by all that is known; None where no node has its document now."""
        request = operation.request
        bucket, copy = request.keyspace.bucket, request.copy
        known = self._maps.get(bucket)
        if known is not operation.map:
            operation.map, operation.wrong_node_count = known, 0
        # Decision C29: resolved again for every attempt.
        vbucket = operation.vbucket = self._vbucket(request)
        if known is None or not isinstance(request, DocumentOperation | VBucketOperation):
            return Destination(known, vbucket, self._connections.of_bucket(bucket, now))
        # Until a newer map arrives, attempts alternate between the maps from before and after the rebalance.
        address = known.next_holder(vbucket, copy) if operation.wrong_node_count % 2 == 1 else None
        address = address or known.holder(vbucket, copy)
        if address is None:
            return None
        return Destination(known, vbucket, self._connections.of_address(bucket, address, now))

    def _vbucket(self, request: Operation) -> int:
        """Return the vbucket of an operation or of its document; 0 if it has none."""
        if isinstance(request, VBucketOperation):
            return request.vbucket
        if not isinstance(request, DocumentOperation):
            return 0
        return vbucket_of(request.key.encode(), self._configs.vbucket_count(request.keyspace.bucket))

    def _lack_node(self, operation: LiveOperation) -> Undispatched:
        """Return the reason why no node has an operation's document, or the copy of it."""
        request, known, vbucket = operation.request, operation.map, operation.vbucket
        if request.copy:
            # RFC 0053 §GetReplica Strategies: what the map lacks fails at once. The other copies are as good.
            text = f"vbucket {vbucket} has no replica {request.copy} on any node now; read another copy"
            kept = self._configs.replica_count(request.keyspace.bucket) or 0
            if request.copy > kept:
                text = f"there is no replica {request.copy}: the bucket keeps {kept} of each document"
            return Refused(DocumentUnretrievableException, text)
        assert known is not None, "without a map any node of the bucket is a destination"
        reason = RetryReason.SERVICE_NOT_AVAILABLE if known.lacks_service(vbucket) else RetryReason.NODE_NOT_AVAILABLE
        return DispatchFailed(reason, known.obstacle(vbucket))

    def _hold(self, operation: LiveOperation, connection: Connection) -> Undispatched | None:
        """Have an operation wait for a connection that is on its way, or return why it cannot be sent."""
        if connection.dialect.bare:
            check_bare(operation.request)
        if connection.state.is_underway:
            return self._wait(operation, connection)
        if connection.state is ConnectionState.LOST:
            return self.lost(operation, connection, status_text(connection))
        detail = f"{connection.node}: the circuit breaker is {connection.breaker.state.value}"
        return DispatchFailed(RetryReason.CIRCUIT_BREAKER_OPEN, detail, node=connection.node)

    def _queue(self, operation: LiveOperation, connection: Connection, now: float) -> Undispatched | None:
        """Have an operation wait until a connection has room, behind those that do."""
        if connection.dialect.bare:
            check_bare(operation.request)
        if connection.in_flight.is_full:
            self._keep_alive.lacks_room(connection, now)
        return self._wait(operation, connection)

    def _wait(self, operation: LiveOperation, connection: Connection) -> Undispatched | None:
        """Have an operation wait in order for a connection, unless too many do (decision C37)."""
        if len(connection.waiting) >= WAITING_MAX:
            return self.lost(operation, connection, status_text(connection), load=load_of(connection))
        self._waits_for[operation.token] = connection
        connection.waiting.join(operation.token)
        return None

    def _prefix(self, operation: LiveOperation, connection: Connection) -> bytes | None:
        """Return the prefix of an operation's key, and cache the route; None if the collection id is not known.

        Raises:
            FeatureNotAvailableException: the bucket, or the connection, does not offer what the operation needs.
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

        A node may have negotiated a feature that the cluster, half upgraded, does not have yet.

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
        """Have an operation wait for the id of its collection, unless too many do (decision C37)."""
        keyspace = operation.request.keyspace
        if not self._collections.wait(connection, keyspace, operation.token, now):
            path = f"{keyspace.scope}.{keyspace.collection}"
            detail = f"{connection.node}: {WAITING_MAX} operations wait for the id of collection {path} already"
            return self.lost(operation, connection, detail)
        self._waits_for[operation.token] = connection
        return None
