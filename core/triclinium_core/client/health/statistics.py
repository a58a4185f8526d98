"""Snapshots of a client, for users and for tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from triclinium_core.kv.topology.topology import Topology
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.retry.couchbase import BreakerStatistics, RetryReason, Service
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.services.pool import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTimeStatistics:
    """Durations, in seconds, that the server reported for the requests on one connection, over all its streams."""

    answers: int
    """Number of responses with a duration, including the responses to the client's own requests."""
    total: float
    longest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionStatistics:
    """One key-value connection, and the results of its bootstrap."""

    node: str
    """Host and port: ``host:port``."""
    bucket: str | None
    state: str
    """Name of the connection's ``ConnectionState``."""
    features: tuple[str, ...] = ()
    """Names of the granted HELLO features, sorted."""
    sasl_mechanisms: tuple[str, ...] = ()
    """Mechanisms that the server offers."""
    sasl_mechanism: str | None = None
    """Mechanism in use; None without SASL."""
    error_map_version: int | None = None
    error_map_revision: int | None = None
    config_revision: tuple[int, int] | None = None
    """Epoch and revision of the newest config for ``bucket``; None before the first config."""
    in_flight: int = 0
    waiting: int = 0
    """Operations queued until the connection is ready and has capacity."""
    last_error: str | None = None
    """Reason why the newest attempt to connect failed, or the connection was lost; None once it is ready."""
    circuit_breaker: BreakerStatistics | None = None
    server_time: ServerTimeStatistics | None = None
    """Durations that the server measured; None before the first response with a duration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointStatistics:
    """One HTTP service of one node. It is listed once a request, a ping or a wait has needed the service."""

    service: Service
    node: str
    """Host and port: ``host:port``."""
    open: int = 0
    """Open connections: the sum of ``idle`` and ``in_flight``."""
    opening: int = 0
    idle: int = 0
    in_flight: int = 0
    """Connections with a request in flight. Each carries one request at a time."""
    waiting: int = 0
    """Requests queued for a connection."""
    last_error: str | None = None
    """Reason why the newest attempt to connect failed, or the exception that a decoder raised on a response. None once
    another connection has opened."""
    circuit_breaker: BreakerStatistics | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStatistics:
    """Snapshot of one client."""

    connections: tuple[ConnectionStatistics, ...] = ()
    """Key-value connections, except those to nodes that have left the map."""
    endpoints: tuple[EndpointStatistics, ...] = ()
    """HTTP endpoints."""
    open_operations: int = 0
    in_flight: int = 0
    """Requests in flight on the key-value connections."""
    orphans: int = 0
    """Number of responses without a recipient: late, duplicate and unsolicited responses."""
    retries_by_reason: Mapping[RetryReason, int] = field(default_factory=dict)
    topologies: tuple[Topology, ...] = ()
    """Newest known topologies of the cluster and of opened buckets."""


def describe_connection(connection: Connection, config_revision: tuple[int, int] | None) -> ConnectionStatistics:
    """Return the snapshot of one connection."""
    error_map = connection.negotiated.error_map
    server_time = connection.received.server_time
    return ConnectionStatistics(
        node=connection.node,
        bucket=connection.bucket,
        state=connection.state.name,
        features=tuple(sorted(_FEATURE_NAMES.get(code, f"0x{code:02x}") for code in connection.negotiated.features)),
        sasl_mechanisms=connection.negotiated.offered_mechanisms,
        sasl_mechanism=connection.negotiated.mechanism,
        error_map_version=error_map.version if error_map is not None else None,
        error_map_revision=error_map.revision if error_map is not None else None,
        config_revision=config_revision,
        in_flight=len(connection.in_flight),
        waiting=len(connection.waiting),
        last_error=connection.history.last_end.error,
        circuit_breaker=connection.breaker.statistics(),
        server_time=ServerTimeStatistics(
            answers=server_time.answers, total=server_time.total, longest=server_time.longest
        )
        if server_time.answers
        else None,
    )


def describe_endpoint(endpoint: Endpoint) -> EndpointStatistics:
    """Return the snapshot of one HTTP service of one node."""
    return EndpointStatistics(
        service=endpoint.service,
        node=endpoint.node,
        open=len(endpoint.connections),
        opening=len(endpoint.opening),
        idle=len(endpoint.idle),
        in_flight=len(endpoint.connections) - len(endpoint.idle),
        waiting=len(endpoint.waiting),
        last_error=endpoint.last_error,
        circuit_breaker=endpoint.breaker.statistics(),
    )


_FEATURE_NAMES: Mapping[int, str] = {int(feature): feature.name for feature in HelloFeature}
