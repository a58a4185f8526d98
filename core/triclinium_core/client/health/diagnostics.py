"""Report on the states of connections, made without sending a request.

Source: SDK-RFC 0061 "Summary", "The Diagnostics Command".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from triclinium_core.contract.neutral import StreamId
from triclinium_core.kv.operation.inquiries import check_report_id
from triclinium_core.kv.operation.reports import ClusterState, DiagnosticsResult, EndpointDiagnostics, EndpointState
from triclinium_core.retry.couchbase import Service
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.pool.connections import Connections
from triclinium_core.runtime.services.pool import Endpoint, Pool

ENDPOINT_STATES: Mapping[ConnectionState, EndpointState] = {
    ConnectionState.CONNECTING: EndpointState.CONNECTING,
    ConnectionState.NEGOTIATING: EndpointState.CONNECTING,
    ConnectionState.AUTHENTICATING: EndpointState.CONNECTING,
    ConnectionState.JOINING: EndpointState.CONNECTING,
    ConnectionState.READY: EndpointState.CONNECTED,
    ConnectionState.LOST: EndpointState.DISCONNECTED,
}
"""State in reports for each state of a connection.

A READY connection whose node has left the map is reported as DISCONNECTING instead.
"""


def cluster_state(ready: int, count: int) -> ClusterState:
    """Return the state of a cluster with ``count`` connections, of which ``ready`` are ready."""
    if ready == 0:
        return ClusterState.OFFLINE
    return ClusterState.ONLINE if ready == count else ClusterState.DEGRADED


def endpoint_id(connection: Connection) -> str:
    """Return the id of a connection's current or last stream; ``0x0`` before the first stream."""
    return stream_id(connection.stream_number)


def stream_id(number: int) -> str:
    """Return the id of a stream in reports."""
    return f"0x{number:x}"


def diagnostics_of(connections: Connections, pool: Pool, *, report_id: str, sdk: str, now: float) -> DiagnosticsResult:
    """Return the states of all connections, key-value and HTTP.

    Args:
        sdk: name of this client in the report.

    Raises:
        InvalidArgumentException: ``report_id`` is invalid.
    """
    present = tuple(connections.all)
    endpoints: dict[Service, tuple[EndpointDiagnostics, ...]] = {
        Service.KV: tuple(diagnose(connection, now) for connection in (*present, *connections.draining))
    }
    for endpoint in pool.endpoints:
        found = tuple(diagnose_endpoint(endpoint, now))
        if found:
            endpoints[endpoint.service] = (*endpoints.get(endpoint.service, ()), *found)
    return DiagnosticsResult(
        id=check_report_id(report_id),
        sdk=sdk,
        state=cluster_state(sum(connection.state is ConnectionState.READY for connection in present), len(present)),
        endpoints=endpoints,
    )


def diagnose(connection: Connection, now: float) -> EndpointDiagnostics:
    """Return the report on one key-value connection."""
    state = ENDPOINT_STATES[connection.state]
    if connection.is_leaving and state is EndpointState.CONNECTED:
        state = EndpointState.DISCONNECTING
    return EndpointDiagnostics(
        type=Service.KV,
        id=endpoint_id(connection),
        remote=connection.node,
        local=connection.link.local_address,
        namespace=connection.bucket,
        state=state,
        last_activity=now - connection.received.at if connection.received.at > -math.inf else None,
        details=connection.history.last_end.error,
    )


def diagnose_endpoint(endpoint: Endpoint, now: float) -> Iterator[EndpointDiagnostics]:
    """Yield a report on each connection of an HTTP endpoint: first the open connections, then those being opened."""
    for stream, http in endpoint.connections.items():
        last_activity = now - http.last_received_at if http.last_received_at > -math.inf else None
        yield _of_stream(endpoint, stream, EndpointState.CONNECTED, http.local_address, last_activity)
    for stream in endpoint.opening:
        yield _of_stream(endpoint, stream, EndpointState.CONNECTING, None, None)


def _of_stream(
    endpoint: Endpoint, stream: StreamId, state: EndpointState, local: str | None, last_activity: float | None
) -> EndpointDiagnostics:
    return EndpointDiagnostics(
        type=endpoint.service,
        id=stream_id(stream),
        remote=endpoint.node,
        local=local,
        namespace=None,
        state=state,
        last_activity=last_activity,
        details=endpoint.last_error if state is EndpointState.CONNECTING else None,
    )
