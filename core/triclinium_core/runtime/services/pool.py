"""The connections to all endpoints: one service of one node each.

An endpoint is where the newest topology of a bucket, or of the cluster, has a service. Its connections are opened as they
are needed, lent to one request at a time, and closed when they are idle.

Source: kv_engine ``docs/BinaryProtocol.md`` (0xb5), field ``nodesExt``; SDK-RFC 0059 "HTTP"; decision C24.
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
"""Requests that wait for a connection of one endpoint at most; the next one fails, and was not sent."""
NODES_NAMED_MAX = 8
"""In the text of an error."""

CREDENTIALS_EXPOSED = (
    "credentials are sent to it over plain HTTP, where anyone on the network can read them; connect with couchbases://"
)
"""Warning of a client that sends credentials without TLS to a host that is not loopback."""


class Endpoint:
    """The pool of connections to one service of one node.

    ``repr`` and errors call it by ``node``: host and port.
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
        """Tokens of the requests that wait for a connection, in order."""
        self.opening: dict[neutral.StreamId, neutral.TimerId] = {}
        """Streams that are not open yet; when each is given up."""
        self.connections: dict[neutral.StreamId, HttpConnection] = {}
        """Those that are open."""
        self.idle: dict[neutral.StreamId, neutral.TimerId] = {}
        """Of them, those that wait for a request, the one that was used last at the end; when each is closed."""
        self.newest_stream: neutral.StreamId | None = None
        """The one that was to be opened last, whatever became of it."""
        self.last_error: str | None = None
        """Reason why the newest stream could not be opened or was lost, or the defect that an answer revealed."""
        self.breaker_timer: neutral.TimerId | None = None
        """When an open breaker has slept long enough."""
        self._connections_max = connections_max

    @total_repr
    def __repr__(self) -> str:
        return (
            f"<Endpoint {self.service} {self.node}: {len(self.connections)} connections, {len(self.waiting)} waiting>"
        )

    @property
    def needs_stream(self) -> bool:
        """Whether one more stream should be opened: more requests wait than streams are on their way, and there is room."""
        count = len(self.opening) + len(self.connections)
        has_room = not self._connections_max or count < self._connections_max
        return len(self.waiting) > len(self.opening) + len(self.idle) and has_room

    @property
    def load(self) -> int:
        """How many requests it has, or keeps waiting."""
        return len(self.connections) - len(self.idle) + len(self.waiting)

    @property
    def is_used(self) -> bool:
        """Whether it has a stream, or anybody waits for one."""
        return bool(self.waiting or self.opening or self.connections)


def choose(endpoints: Iterable[Endpoint], *, avoided: Address | None) -> Endpoint | None:
    """Return the least busy endpoint of those whose breakers are closed; None if all are open.

    Args:
        avoided: where the attempt before failed; it is taken only where there is no other.
    """
    usable = [endpoint for endpoint in endpoints if endpoint.breaker.allows_operations]
    return min(usable, key=lambda endpoint: (endpoint.address == avoided, endpoint.load), default=None)


class LostConnection(NamedTuple):
    """A stream that is gone, or could not be opened."""

    endpoint: Endpoint
    connection: HttpConnection | None
    """None where it was never open."""
    detail: str
    """Which node, and why, in words."""


class Pool:
    """All endpoints of a client and their streams; who travels on them is not its business.

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
        self._headers = headers_of(options.authenticator, options.user_agent)
        self._endpoints: dict[tuple[Service, Address], Endpoint] = {}
        self.endpoint_of: dict[neutral.StreamId, Endpoint] = {}
        """Endpoint of each stream, from the order to open it until it is gone."""
        self.sending: list[neutral.SendBytes] = []
        """Requests that were ordered to be sent by the current event."""
        self._has_warned = False
        """Whether the client has reported that it sends credentials over plain HTTP."""

    @property
    def knows_topology(self) -> bool:
        """Whether a cluster config has come, which tells where the services are."""
        return bool(self._topologies)

    def endpoints_of(self, service: Service, bucket: str | None = None) -> list[Endpoint]:
        """Return the endpoints that have a service by the newest topology, in the order of the config's nodes.

        Args:
            bucket: whose nodes are meant; None for those of the cluster.
        """
        addresses = addresses_of(service, self._topologies, bucket=bucket, tls=self._tls)
        if any((service, address) not in self._endpoints for address in addresses):
            # New nodes often replace others, and a busy client may have no idle stream whose timer prunes.
            self.prune()
        return [self._endpoint(service, address) for address in addresses]

    def obstacle_to(self, service: Service, bucket: str | None = None) -> tuple[RetryReason, str]:
        """Return why ``endpoints_of`` finds none."""
        return obstacle_of(service, self._topologies, bucket=bucket, tls=self._tls)

    def outside(self, service: Service, bucket: str | None = None) -> tuple[tuple[Address, str], ...]:
        """Return the nodes that have a service where the client does not reach it, and why in words."""
        return outside_of(service, self._topologies, bucket=bucket, tls=self._tls)

    def network_obstacle(self) -> str | None:
        """Return in words why no node of the cluster can be reached where it says that its nodes are; None where one can."""
        obstacles = [topology.obstacle for topology in self._topologies.values()]
        return obstacles[0] if obstacles and None not in obstacles else None

    @property
    def endpoints(self) -> Collection[Endpoint]:
        """All that anything was ever sent to, or looked for."""
        return self._endpoints.values()

    def connection(self, stream: neutral.StreamId) -> HttpConnection | None:
        """Return what is open on a stream."""
        endpoint = self.endpoint_of.get(stream)
        return endpoint.connections.get(stream) if endpoint is not None else None

    def pairs(self, endpoint: Endpoint, now: float) -> Iterator[tuple[int, neutral.StreamId]]:
        """Yield who waits for an endpoint with a stream that is free, and have as many more opened as are needed."""
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
            self._emit(neutral.OpenStream(stream, endpoint.address.host, endpoint.address.port, self._tls))

    def opened(self, event: neutral.StreamOpened, now: float) -> Endpoint | None:
        """Take a stream that is open, and return its endpoint; None for an unknown one."""
        endpoint = self.endpoint_of.get(event.stream)
        if endpoint is not None:
            self._timers.cancel(endpoint.opening.pop(event.stream, None))
            endpoint.last_error = None
            ends = event.local_address or None, event.remote_address or None
            connection = HttpConnection(endpoint.node, self._headers, *ends)
            endpoint.connections[event.stream] = connection
            self.release(event.stream, now)
        return endpoint

    def send(self, stream: neutral.StreamId, request: HttpRequest) -> HttpConnection:
        """Order a request to be sent on a stream that is free, and return its connection."""
        endpoint = self.endpoint_of[stream]
        connection = endpoint.connections[stream]
        if not (self._tls or self._has_warned or endpoint.is_loopback) and request.carries_credentials:
            self._warn_of_exposure(endpoint, stream)
        # HTTP matches responses by order only: bytes that wait to be read would become the answer (decision D64).
        self.sending.append(neutral.SendBytes(stream, connection.send(request), unless_readable=True))
        return connection

    def _warn_of_exposure(self, endpoint: Endpoint, stream: neutral.StreamId) -> None:
        """Report, once for each client, that credentials are sent over plain HTTP to a host that is not loopback."""
        if has_credentials(self._headers):
            self._has_warned = True
            self._emit(
                neutral.ReportConnection(stream, endpoint.node, CREDENTIALS_EXPOSED, neutral.ReportLevel.WARNING)
            )

    def take_sending(self) -> list[neutral.SendBytes]:
        """Return what was ordered to be sent, once; it goes last."""
        sending, self.sending = self.sending, []
        return sending

    def release(self, stream: neutral.StreamId, now: float) -> None:
        """Take a connection back that can carry the next request; close it if it has other credentials."""
        endpoint = self.endpoint_of[stream]
        if endpoint.connections[stream].is_last:
            self.close(stream, "the authenticator has changed")
        else:
            when = now + self._options.timeouts.idle_http_connection
            endpoint.idle[stream] = self._timers.schedule(when, TimerKind.HTTP_IDLE, stream)

    def close(self, stream: neutral.StreamId, reason: str) -> None:
        """Close a stream; nothing of it is heard any more."""
        self._forget(self.endpoint_of.pop(stream), stream)
        self._emit(neutral.CloseStream(stream, reason))

    def close_needless(self, endpoint: Endpoint) -> None:
        """Close streams that are still being opened and for which no request waits any more."""
        while len(endpoint.opening) > len(endpoint.waiting):
            self.close(next(reversed(endpoint.opening)), "no request waits for it any more")

    def lost(self, event: neutral.StreamLost) -> LostConnection | None:
        """Forget a stream that is gone, and return what it was; None for an unknown one."""
        endpoint = self.endpoint_of.pop(event.stream, None)
        if endpoint is None:
            return None
        connection = self._forget(endpoint, event.stream)
        detail = f"{endpoint.node}: {event.cause.value}{f' ({one_line(event.text)})' if event.text else ''}"
        if connection is None:
            endpoint.last_error = detail
        return LostConnection(endpoint, connection, detail)

    def timer_passed(self, stream: neutral.StreamId) -> LostConnection | None:
        """Close a stream that was idle, or did not open in time; return the latter."""
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
        """Use other credentials on new connections. Close a connection that carries a request after it, and any other now.

        One that is being opened may have shown the certificate that is replaced.
        """
        self._headers = headers_of(authenticator, self._options.user_agent)
        for stream, endpoint in list(self.endpoint_of.items()):
            if stream in endpoint.connections and stream not in endpoint.idle:
                endpoint.connections[stream].is_last = True
            else:
                self.close(stream, "the authenticator has changed")

    def feed_breaker(self, endpoint: Endpoint, event: BreakerEvent, now: float) -> bool:
        """Tell an endpoint's breaker what happened, and return whether its canary has to be sent now."""
        sends_canary = endpoint.breaker.handle(event, now)
        self._timers.cancel(endpoint.breaker_timer)
        endpoint.breaker_timer = self._timers.schedule(endpoint.breaker.wakeup, TimerKind.HTTP_BREAKER, endpoint)
        return sends_canary

    def all_waited_for(self) -> list[Endpoint]:
        """Return the endpoints for which requests wait."""
        return [endpoint for endpoint in self._endpoints.values() if endpoint.waiting]

    def prune(self) -> None:
        """Forget the endpoints that no topology has any more, and that have no stream and no request."""
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
        """Tell whether an endpoint was not forgotten."""
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
    """Return where a service is reached, in the order of the config's nodes; nothing where no node has it.

    A node that is not in the network that the client keeps to is passed over, as for key-value.

    Args:
        topologies: the newest of each bucket, and of the cluster.
        bucket: whose nodes are meant, as far as they are known; None for the whole cluster, which any topology tells.
    """
    topology = _topology(topologies, bucket)
    port = _port(service, tls=tls)
    nodes = topology.nodes if topology is not None else ()
    return tuple(Address(node.host, node.ports[port]) for node in nodes if node.is_reached and port in node.ports)


def outside_of(
    service: Service, topologies: Mapping[str | None, Topology], *, bucket: str | None, tls: bool
) -> tuple[tuple[Address, str], ...]:
    """Return the nodes that have a service and are not in the client's network: where they say they are, and why not there.

    Nothing is sent to those addresses (decision D14).
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
    """Return why a service is reached nowhere, where ``addresses_of`` finds nothing: as a reason, and in words."""
    topology = _topology(topologies, bucket)
    nodes = topology.nodes if topology is not None else ()
    outside = [str(address) for address, _ in outside_of(service, topologies, bucket=bucket, tls=tls)]
    if topology is not None and outside:
        # Decision D14: as for key-value.
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
    """Return what nodes call the port of a service."""
    return SERVICE_NAMES[service] + ("SSL" if tls else "")


def _topology(topologies: Mapping[str | None, Topology], bucket: str | None) -> Topology | None:
    # Before a bucket is opened, any node of the cluster may be asked: a node without the bucket refuses. A server
    # before 6.5 tells the nodes of the cluster with those of a bucket alone.
    return (
        topologies.get(bucket)
        or topologies.get(None)
        or max(topologies.values(), key=lambda topology: topology.revision, default=None)
    )
