"""Connections to all endpoints. An endpoint is one service of one node.

The newest topologies of the buckets and of the cluster list the endpoints. The client opens connections on demand,
sends one request at a time on each, and closes idle connections.

Source: kv_engine ``docs/BinaryProtocol.md`` (0xb5), field ``nodesExt``; SDK-RFC 0059 "Configuration"; decision C24.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import TimerKind
from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.topology import Topology
from triclinium_core.options import Authenticator
from triclinium_core.retry.couchbase import BreakerEvent, CircuitBreaker, CircuitBreakerOptions, RetryReason, Service
from triclinium_core.runtime.kv.known_configs import SERVICE_NAMES
from triclinium_core.runtime.services.connection import HttpConnection
from triclinium_core.runtime.services.credentials import has_credentials, headers_of
from triclinium_core.runtime.toolkit import Toolkit
from triclinium_core.services.service_request import HttpRequest
from triclinium_core.shown import one_line, total_repr

WAITING_MAX = 16_384
"""Maximum number of requests queued for a connection of one endpoint. The client does not send a further request: it is
retried or fails."""
NODES_NAMED_MAX = 8
"""Maximum number of nodes that an error names."""

CREDENTIALS_EXPOSED = (
    "credentials are sent to it over plain HTTP, where anyone on the network can read them; connect with couchbases://"
)
"""Warning that a client logs once, when it first sends credentials without TLS to a host that is not loopback."""


class Endpoint:
    """Pool of connections to one service of one node.

    ``repr`` and errors use the name ``node``: host and port.
    """

    def __init__(
        self, service: Service, address: Address, *, connections_max: int, circuit_breaker: CircuitBreakerOptions
    ) -> None:
        self.service: Service = service
        self.address: Address = address
        self.node: str = str(address)
        self.is_loopback: bool = address.is_loopback
        self.breaker: CircuitBreaker = CircuitBreaker(circuit_breaker)
        self.waiting: dict[int, None] = {}
        """Tokens of the requests queued for a connection, in order."""
        self.opening: dict[neutral.StreamId, neutral.TimerId] = {}
        """Streams that are not open yet, each with the timer at which the client abandons it."""
        self.connections: dict[neutral.StreamId, HttpConnection] = {}
        """Connections of the open streams."""
        self.idle: dict[neutral.StreamId, neutral.TimerId] = {}
        """Streams without a request, each with the timer at which the client closes it. The last used stream is at the
        end."""
        self.newest_stream: neutral.StreamId | None = None
        """Stream that the client ordered last, which may not be open; None before the first."""
        self.last_error: str | None = None
        """Reason why a stream last could not be opened, or the exception that a decoder last raised on a response. None
        before, and after a stream has opened."""
        self.breaker_timer: neutral.TimerId | None = None
        """Timer for the canary of an open breaker; None before the first event of the breaker."""
        self._connections_max = connections_max

    @total_repr
    def __repr__(self) -> str:
        return (
            f"<Endpoint {self.service} {self.node}: {len(self.connections)} connections, {len(self.waiting)} waiting>"
        )

    @property
    def needs_stream(self) -> bool:
        """Whether to open one more stream: the queued requests outnumber the idle streams and those being opened.

        False if the endpoint has its maximum number of connections.
        """
        count = len(self.opening) + len(self.connections)
        has_room = not self._connections_max or count < self._connections_max
        return len(self.waiting) > len(self.opening) + len(self.idle) and has_room

    @property
    def load(self) -> int:
        """Number of requests that are in flight or queued."""
        return len(self.connections) - len(self.idle) + len(self.waiting)

    @property
    def is_used(self) -> bool:
        """Whether the endpoint has a stream or a queued request."""
        return bool(self.waiting or self.opening or self.connections)


def choose(endpoints: Iterable[Endpoint], *, avoided: Address | None) -> Endpoint | None:
    """Return the endpoint with the lowest load among those whose breakers permit requests; None if no breaker does.

    Args:
        avoided: address at which the last attempt failed. Return its endpoint only if no other endpoint is usable.
    """
    usable = [endpoint for endpoint in endpoints if endpoint.breaker.allows_operations]
    return min(usable, key=lambda endpoint: (endpoint.address == avoided, endpoint.load), default=None)


class LostConnection(NamedTuple):
    """A stream that was lost, or could not be opened."""

    endpoint: Endpoint
    connection: HttpConnection | None
    """Connection on the stream; None if the stream was never open."""
    detail: str
    """Node and reason, in words."""


class Pool:
    """All endpoints of a client and their streams. ``HttpDispatcher`` records the request on each stream.

    Args:
        topologies: newest topology of each bucket, and of the cluster.
    """

    def __init__(
        self,
        topologies: Mapping[str | None, Topology],
        tools: Toolkit,
        *,
        tls: bool,
    ) -> None:
        options = tools.options
        self._options = options
        self._tls = tls
        self._topologies = topologies
        self._stream_ids = tools.stream_ids
        self._timers = tools.timers
        self._emit = tools.emit
        self._recorder = tools.recorder
        self._headers = headers_of(options.authenticator, options.user_agent)
        self._endpoints: dict[tuple[Service, Address], Endpoint] = {}
        self.endpoint_of: dict[neutral.StreamId, Endpoint] = {}
        """Endpoint of each stream, from the order to open the stream until the stream is lost or closed."""
        self.sending: list[neutral.SendBytes] = []
        """Requests that the current event has ordered to send."""
        self._has_warned = False
        """Whether the client has reported that it sends credentials over plain HTTP."""

    @property
    def knows_topology(self) -> bool:
        """Whether any cluster config, which lists the endpoints of the services, has arrived."""
        return bool(self._topologies)

    def endpoints_of(self, service: Service, bucket: str | None = None) -> list[Endpoint]:
        """Return the endpoints of a service in the newest topology, in the order of the config's nodes.

        Args:
            bucket: bucket whose nodes to use, if its topology is known; None to use all nodes of the cluster.
        """
        addresses = addresses_of(service, self._topologies, bucket=bucket, tls=self._tls)
        if any((service, address) not in self._endpoints for address in addresses):
            # A new node often replaces another one. Prune now, because the timers that prune belong to idle streams,
            # and a busy client may have none.
            self.prune()
        return [self._endpoint(service, address) for address in addresses]

    def obstacle_to(self, service: Service, bucket: str | None = None) -> tuple[RetryReason, str]:
        """Return the reason why ``endpoints_of`` finds no endpoint, as a retry reason and in words."""
        return obstacle_of(service, self._topologies, bucket=bucket, tls=self._tls)

    def outside(self, service: Service, bucket: str | None = None) -> tuple[tuple[Address, str], ...]:
        """Return the nodes that have a service but no address in the client's network, each with the reason."""
        return outside_of(service, self._topologies, bucket=bucket, tls=self._tls)

    def network_obstacle(self) -> str | None:
        """Return why no known node has an address in the client's network.

        Return None if a node has such an address, or if no node is known.
        """
        obstacles = [topology.obstacle for topology in self._topologies.values()]
        return obstacles[0] if obstacles and None not in obstacles else None

    @property
    def endpoints(self) -> Collection[Endpoint]:
        """All endpoints that the client has looked up or used, and has not pruned."""
        return self._endpoints.values()

    def connection(self, stream: neutral.StreamId) -> HttpConnection | None:
        """Return the connection on an open stream; None if the stream is not open."""
        endpoint = self.endpoint_of.get(stream)
        return endpoint.connections.get(stream) if endpoint is not None else None

    def pairs(self, endpoint: Endpoint, now: float) -> Iterator[tuple[int, neutral.StreamId]]:
        """Yield queued requests, each with an idle stream of the endpoint. Open streams for others, up to the limit."""
        while endpoint.waiting and endpoint.idle:
            stream, timer = endpoint.idle.popitem()
            self._timers.cancel(timer)
            token = next(iter(endpoint.waiting))
            del endpoint.waiting[token]
            yield token, stream
        while endpoint.needs_stream:
            stream, given_up_at = self._stream_ids(), now + self._options.timeouts.connect
            endpoint.newest_stream = stream
            endpoint.opening[stream] = self._timers.schedule(given_up_at, TimerKind.HTTP_CONNECT, stream)
            self.endpoint_of[stream] = endpoint
            if self._recorder is not None:
                self._recorder.connection("opening", stream, endpoint.node, None)
            self._emit(neutral.OpenStream(stream, endpoint.address.host, endpoint.address.port, self._tls))

    def opened(self, event: neutral.StreamOpened, now: float) -> Endpoint | None:
        """Record that a stream is open, and return its endpoint; None for an unknown stream."""
        endpoint = self.endpoint_of.get(event.stream)
        if endpoint is not None:
            self._timers.cancel(endpoint.opening.pop(event.stream, None))
            endpoint.last_error = None
            ends = event.local_address or None, event.remote_address or None
            connection = HttpConnection(endpoint.node, self._headers, *ends)
            endpoint.connections[event.stream] = connection
            if self._recorder is not None:
                self._recorder.connection("opened", event.stream, endpoint.node, None)
            self.release(event.stream, now)
        return endpoint

    def send(self, stream: neutral.StreamId, request: HttpRequest) -> HttpConnection:
        """Order a request to be sent on an idle stream, and return its connection."""
        endpoint = self.endpoint_of[stream]
        connection = endpoint.connections[stream]
        if not (self._tls or self._has_warned or endpoint.is_loopback) and request.carries_credentials:
            self._warn_of_exposure(endpoint, stream)
        # ``unless_readable``: HTTP matches responses only by order, so the client would take unread bytes for the
        # response (decision D64).
        self.sending.append(neutral.SendBytes(stream, connection.send(request), unless_readable=True))
        return connection

    def _warn_of_exposure(self, endpoint: Endpoint, stream: neutral.StreamId) -> None:
        """Report once that the client sends credentials over plain HTTP to a host that is not loopback."""
        if has_credentials(self._headers):
            self._has_warned = True
            self._emit(
                neutral.ReportConnection(stream, endpoint.node, CREDENTIALS_EXPOSED, neutral.ReportLevel.WARNING)
            )

    def take_sending(self) -> list[neutral.SendBytes]:
        """Return and clear the ordered requests. The client sends them after all other actions."""
        sending, self.sending = self.sending, []
        return sending

    def release(self, stream: neutral.StreamId, now: float) -> None:
        """Make a connection available for the next request, or close it if its credentials have been replaced."""
        endpoint = self.endpoint_of[stream]
        if endpoint.connections[stream].is_last:
            self.close(stream, "the authenticator changed")
        else:
            when = now + self._options.timeouts.idle_http_connection
            endpoint.idle[stream] = self._timers.schedule(when, TimerKind.HTTP_IDLE, stream)

    def close(self, stream: neutral.StreamId, reason: str) -> None:
        """Close a stream, and ignore its later events."""
        self._forget(self.endpoint_of.pop(stream), stream)
        self._emit(neutral.CloseStream(stream, reason))

    def close_needless(self, endpoint: Endpoint) -> None:
        """Close streams that are still being opened and that no queued request needs."""
        while len(endpoint.opening) > len(endpoint.waiting):
            self.close(next(reversed(endpoint.opening)), "no request waits for it any more")

    def lost(self, event: neutral.StreamLost) -> LostConnection | None:
        """Remove a lost stream, and return the facts about the loss. Return None for an unknown stream."""
        endpoint = self.endpoint_of.pop(event.stream, None)
        if endpoint is None:
            return None
        connection = self._forget(endpoint, event.stream)
        detail = f"{endpoint.node}: {event.cause.value}{f' ({one_line(event.text)})' if event.text else ''}"
        if connection is None:
            endpoint.last_error = detail
        return LostConnection(endpoint, connection, detail)

    def timer_passed(self, stream: neutral.StreamId) -> LostConnection | None:
        """Close a stream that was idle or did not open in time.

        Return the facts about a stream that did not open; None for an idle or unknown stream.
        """
        endpoint = self.endpoint_of.get(stream)
        if endpoint is None:
            return None
        if stream not in endpoint.opening:
            self.close(stream, "it was idle")
            return None
        endpoint.last_error = f"{endpoint.node}: no connection within {self._options.timeouts.connect:g} s"
        self.close(stream, "it took too long to open")
        return LostConnection(endpoint, None, endpoint.last_error)

    def authenticator_changed(self, authenticator: Authenticator) -> None:
        """Use other credentials for new connections. Close each busy connection after its request, all others now.

        Close streams that are being opened too, because they may already have presented the old certificate.
        """
        self._headers = headers_of(authenticator, self._options.user_agent)
        for stream, endpoint in list(self.endpoint_of.items()):
            if stream in endpoint.connections and stream not in endpoint.idle:
                endpoint.connections[stream].is_last = True
            else:
                self.close(stream, "the authenticator changed")

    def feed_breaker(self, endpoint: Endpoint, event: BreakerEvent, now: float) -> bool:
        """Pass an event to an endpoint's breaker. Return whether the client must send the canary of the breaker now."""
        before = endpoint.breaker.state
        sends_canary = endpoint.breaker.handle(event, now)
        if self._recorder is not None and endpoint.breaker.state is not before:
            self._recorder.breaker(endpoint.breaker.state, endpoint.node, None)
        self._timers.cancel(endpoint.breaker_timer)
        endpoint.breaker_timer = self._timers.schedule(endpoint.breaker.wakeup, TimerKind.HTTP_BREAKER, endpoint)
        return sends_canary

    def all_waited_for(self) -> list[Endpoint]:
        """Return the endpoints with queued requests."""
        return [endpoint for endpoint in self._endpoints.values() if endpoint.waiting]

    def prune(self) -> None:
        """Remove the endpoints that are in no topology, and have neither a stream nor a request."""
        known = {
            Address(node.host, port)
            for topology in self._topologies.values()
            for node in topology.nodes
            for port in node.ports.values()
        }
        for place, endpoint in list(self._endpoints.items()):
            if endpoint.address not in known and not endpoint.is_used:
                self._timers.cancel(endpoint.breaker_timer)
                del self._endpoints[place]

    def has(self, endpoint: Endpoint) -> bool:
        """Return whether an endpoint is still in the pool."""
        return self._endpoints.get((endpoint.service, endpoint.address)) is endpoint

    def _forget(self, endpoint: Endpoint, stream: neutral.StreamId) -> HttpConnection | None:
        self._timers.cancel(endpoint.opening.pop(stream, None))
        self._timers.cancel(endpoint.idle.pop(stream, None))
        return endpoint.connections.pop(stream, None)

    def _endpoint(self, service: Service, address: Address) -> Endpoint:
        endpoint = self._endpoints.get((service, address))
        if endpoint is None:
            endpoint = self._endpoints[service, address] = Endpoint(
                service,
                address,
                connections_max=self._options.max_http_connections,
                circuit_breaker=self._options.circuit_breaker,
            )
        return endpoint


def addresses_of(
    service: Service, topologies: Mapping[str | None, Topology], *, bucket: str | None, tls: bool
) -> tuple[Address, ...]:
    """Return the addresses of a service, in the order of the config's nodes; empty without an address.

    Skip a node without an address in the client's network, as key-value does.

    Args:
        topologies: newest topology of each bucket, and of the cluster.
        bucket: bucket whose nodes to use, if its topology is known; None for the whole cluster, from any topology.
    """
    topology = _topology(topologies, bucket)
    port = _port(service, tls=tls)
    nodes = topology.nodes if topology is not None else ()
    return tuple(Address(node.host, node.ports[port]) for node in nodes if node.is_reached and port in node.ports)


def outside_of(
    service: Service, topologies: Mapping[str | None, Topology], *, bucket: str | None, tls: bool
) -> tuple[tuple[Address, str], ...]:
    """Return the nodes that have a service but no address in the client's network, each with the reason.

    The returned addresses are in another network. The client sends nothing to them (decision D14).
    """
    topology = _topology(topologies, bucket)
    if topology is None:
        return ()
    port, why = _port(service, tls=tls), f"the node has no address in network {topology.network!r}"
    outside = (node for node in topology.nodes if not node.is_reached and port in node.ports)
    return tuple(
        (address, f"{address}: {why}") for address in (Address(node.host, node.ports[port]) for node in outside)
    )


def obstacle_of(
    service: Service, topologies: Mapping[str | None, Topology], *, bucket: str | None, tls: bool
) -> tuple[RetryReason, str]:
    """Return the reason why ``addresses_of`` finds no address, as a retry reason and in words."""
    topology = _topology(topologies, bucket)
    nodes = topology.nodes if topology is not None else ()
    outside = [str(address) for address, _ in outside_of(service, topologies, bucket=bucket, tls=tls)]
    if topology is not None and outside:
        # Decision D14: use the retry reason that key-value uses for nodes outside the client's network.
        more = len(outside) - NODES_NAMED_MAX
        named = one_line(", ".join([*outside[:NODES_NAMED_MAX], *([f"{more} more"] if more > 0 else [])]))
        why = topology.obstacle or f"none of them has an address in network {topology.network!r}"
        return RetryReason.NODE_NOT_AVAILABLE, f"the {service} service is on {named}, and {why}"
    where = f"no node{f' of bucket {bucket}' if bucket is not None else ''}"
    if tls and any(_port(service, tls=False) in node.ports for node in nodes):
        text = f"{where} has the {service} service over TLS, and some have it without: check their configuration"
        return RetryReason.SERVICE_NOT_AVAILABLE, text
    return RetryReason.SERVICE_NOT_AVAILABLE, f"{where} has the {service} service"


def _port(service: Service, *, tls: bool) -> str:
    """Return the name of a service's port in configs."""
    return SERVICE_NAMES[service] + ("SSL" if tls else "")


def _topology(topologies: Mapping[str | None, Topology], bucket: str | None) -> Topology | None:
    # Before the client has a topology of the bucket, use any node of the cluster: a node without the bucket refuses the
    # request. A server before 6.5 lists the nodes of the cluster only in the configs of buckets.
    return (
        topologies.get(bucket)
        or topologies.get(None)
        or max(topologies.values(), key=lambda topology: topology.revision, default=None)
    )
