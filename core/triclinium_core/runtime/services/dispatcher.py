"""Dispatch of HTTP requests: choose the endpoint for an attempt, and send or queue the attempt.

A dispatched request is in one of three states. It is unplaced until the first cluster config lists the endpoints. Then
it is queued at an endpoint for a connection. Then it is in flight on a stream until its response is complete. If a
request can enter none of these states, ``dispatch`` returns the reason.

Source: SDK-RFC 0049 "Client Dispatch"; SDK-RFC 0059 "Configuration"; decisions C6 and C24.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from triclinium_core import errors
from triclinium_core.contract.couchbase import Action, ReportDispatch
from triclinium_core.contract.neutral import StreamId
from triclinium_core.retry import couchbase
from triclinium_core.runtime.kv.known_cluster import KnownCluster
from triclinium_core.runtime.lifecycle.carrier import Refused, Undispatched
from triclinium_core.runtime.lifecycle.link import Link
from triclinium_core.runtime.lifecycle.stages import Stage
from triclinium_core.runtime.services.live_request import LiveRequest, bounded_operation_id, waits_for
from triclinium_core.runtime.services.pool import NODES_NAMED_MAX, WAITING_MAX, Endpoint, Pool, choose
from triclinium_core.runtime.services.prepared_statements import PreparedStatements
from triclinium_core.services.service_request import IdentifiedRequest
from triclinium_core.telemetry.attributes import dispatch_attributes

SECONDS_LEFT_MIN = 0.001
"""Minimum timeout in seconds that the client sends to a service. Some services treat 0 as no limit."""


class HttpDispatcher:
    """Sender of requests. It records the endpoint or stream on which each request is queued or in flight."""

    def __init__(
        self,
        pool: Pool,
        statements: PreparedStatements,
        cluster: KnownCluster,
        *,
        emit: Callable[[Action], None],
    ) -> None:
        self._pool = pool
        self._statements = statements
        self._configs = cluster.configs
        self._own_addresses = cluster.own_addresses
        self._terminal_states = cluster.terminal_states
        self._emit = emit
        self.last_loss: str | None = None
        """Reason why the client last lost a connection while it waited for the first cluster config; None otherwise."""
        self.unplaced: dict[int, LiveRequest] = {}
        """Requests that wait for the first cluster config."""
        self._waiting: dict[int, LiveRequest] = {}
        """Requests queued for a connection, by token. ``Endpoint.waiting`` has the order of the tokens."""
        self.travelling: dict[StreamId, LiveRequest] = {}
        """Request in flight on each stream."""

    def dispatch(self, live: LiveRequest, now: float) -> Undispatched | None:
        """Send or queue a request. Return None, or the reason why neither is possible."""
        request = live.request
        service, bucket = request.service, request.bucket
        endpoints = self._pool.endpoints_of(service, bucket)
        if not endpoints and not self._pool.knows_topology:
            self.unplaced[live.token] = live
            return None
        endpoint = live.pinned or choose(endpoints, avoided=live.failed_at)
        required = request.required_capabilities
        if required and (missing := required - self._configs.capabilities_of(service)):
            text = f"the cluster does not support the request, because it lacks {', '.join(sorted(missing))}"
            return Refused(errors.FeatureNotAvailableException, text)
        if not endpoints and endpoint is None:
            return self.give_up(live, *self._pool.obstacle_to(service, bucket))
        if endpoint is None:
            detail = f"the circuit breakers of {', '.join(each.node for each in endpoints[:NODES_NAMED_MAX])} are open"
            return self.give_up(live, couchbase.RetryReason.CIRCUIT_BREAKER_OPEN, detail)
        if len(endpoint.waiting) >= WAITING_MAX:
            detail = f"{WAITING_MAX} requests already wait for a connection to {endpoint.node}"
            return self.give_up(live, couchbase.RetryReason.SOCKET_NOT_AVAILABLE, detail)
        live.endpoint = endpoint
        self._waiting[live.token] = live
        endpoint.waiting[live.token] = None
        self.serve(endpoint, now)
        return None

    def serve(self, endpoint: Endpoint, now: float) -> None:
        """Send queued requests of an endpoint on its idle connections, and open streams for others, up to the limit."""
        if not endpoint.waiting:
            return
        for token, stream in self._pool.pairs(endpoint, now):
            self._send(self._waiting.pop(token), endpoint, stream, now)

    def take_unplaced(self) -> Collection[LiveRequest]:
        """Remove and return the requests that waited for the first cluster config."""
        unplaced = list(self.unplaced.values())
        self.unplaced.clear()
        return unplaced

    def next_refused(self, endpoint: Endpoint) -> LiveRequest | None:
        """Return one more request that must leave the queue, because no stream to its endpoint could be opened.

        If the endpoint has connections, the first requests in the queue stay and wait for them. Each further request
        would open one more stream immediately, which the node would refuse again. Return None if all requests can stay.
        """
        if not (endpoint.needs_stream or (endpoint.waiting and not endpoint.connections)):
            return None
        return self._waiting[next(reversed(endpoint.waiting) if endpoint.connections else iter(endpoint.waiting))]

    def give_up(
        self, live: LiveRequest, reason: couchbase.RetryReason, detail: str
    ) -> couchbase.DispatchFailed | couchbase.SocketClosed:
        """Remove a request from its queue, and return the reason why it was not sent."""
        endpoint = live.endpoint
        self._stop_waiting(live)
        live.leave_endpoint()
        # Decision C6: a terminal state replaces ``reason``, because it is more specific.
        reason = self._terminal_states.reason_for(live.request.service) or reason
        if live.retry is not None and live.retry.state is couchbase.RetryState.IN_FLIGHT:
            # The service has prepared the statement, but the client cannot send the execution. Both are one attempt.
            return couchbase.SocketClosed(couchbase.HandedOver.NOTHING, detail, reason)
        return couchbase.DispatchFailed(reason, detail, node=endpoint.node if endpoint is not None else None)

    def reason_of_waiting(self, live: LiveRequest) -> couchbase.RetryReason | None:
        """Return the retry reason of a waiting request that is not sent in time; None if the request does not wait."""
        if live.token in self.unplaced:
            reason = couchbase.RetryReason.NODE_NOT_AVAILABLE
        elif live.stage is Stage.WAITING and live.endpoint is not None:
            reason = couchbase.RetryReason.SOCKET_NOT_AVAILABLE
        else:
            return None
        # Decision C6: a terminal state replaces ``reason``, because it is more specific.
        return self._terminal_states.reason_for(live.request.service) or reason

    def give_up_waiting(self, live: LiveRequest) -> couchbase.DispatchFailed | couchbase.SocketClosed | None:
        """End the wait of a request, and return the reason why it was not sent. Return None if it does not wait."""
        if live.token in self.unplaced:
            return self.give_up(
                live, couchbase.RetryReason.NODE_NOT_AVAILABLE, waits_for(None, last_loss=self.last_loss)
            )
        if live.stage is Stage.WAITING and live.endpoint is not None:
            return self.give_up(live, couchbase.RetryReason.SOCKET_NOT_AVAILABLE, waits_for(live.endpoint))
        return None

    def take_off(self, stream: StreamId) -> LiveRequest | None:
        """Remove and return the request in flight on a stream, or return None."""
        live = self.travelling.pop(stream, None)
        if live is not None:
            live.stream = None
        return live

    def close(self, stream: StreamId, reason: str) -> None:
        """Close a stream, and remove the request in flight on it."""
        self.take_off(stream)
        self._pool.close(stream, reason)

    def leave(self, live: LiveRequest, reason: str, now: float) -> None:
        """Remove a request from its queue, or close the connection on which its response is incomplete."""
        self._stop_waiting(live)
        endpoint, live.endpoint = live.endpoint, None
        if live.stream is not None:
            self.close(live.stream, reason)
        if endpoint is not None:
            self.serve(endpoint, now)

    def _stop_waiting(self, live: LiveRequest) -> None:
        self.unplaced.pop(live.token, None)
        self._waiting.pop(live.token, None)
        if live.endpoint is not None:
            live.endpoint.waiting.pop(live.token, None)

    def _send(self, live: LiveRequest, endpoint: Endpoint, stream: StreamId, now: float) -> None:
        live.message = message = self._statements.message(live.request)
        context_id = live.answer.context_id = live.next_context_id()
        live.answer.status = 0
        remaining = max(live.deadline - now, SECONDS_LEFT_MIN)
        if context_id is not None and isinstance(message, IdentifiedRequest):
            encode = partial(message.encode, remaining, context_id)
        else:
            encode = partial(message.encode, remaining)
        if live.encoding is None or not message.has_body:
            encoded = encode()
        else:
            encoded, seconds = live.encoding(encode)
            live.encode_seconds = (live.encode_seconds or 0.0) + seconds
        connection = self._pool.send(stream, encoded)
        self.travelling[stream] = live
        live.stream, live.secrets = stream, connection.secrets
        if message.service is couchbase.Service.MANAGEMENT:
            live.secrets = live.secrets.with_passwords(message.passwords)
        live.link = Link(stream, endpoint.node, connection.local_address, connection.remote_address)
        live.dispatched_at, live.stage = now, Stage.IN_FLIGHT
        if live.traced_as is not None:
            own = self._own_addresses.of(endpoint.address)
            attributes = dispatch_attributes(
                (own.host, own.port), peer=connection.remote_address, operation_id=bounded_operation_id(context_id)
            )
            self._emit(ReportDispatch(live.traced_as, attributes, stream))
        if live.permit is not None:
            live.permit.begin()
        if live.retry is not None and live.retry.state is couchbase.RetryState.PENDING:
            live.retry.handle(couchbase.Dispatched(endpoint.node, None, connection.local_address, stream), now)
