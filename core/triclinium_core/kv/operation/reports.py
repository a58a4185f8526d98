"""Reports on the health of a cluster: results of pings, waits and diagnostics. Durations are seconds.

Source: SDK-RFC 0061.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique

import msgspec

from triclinium_core.retry.couchbase import Service
from triclinium_core.shown import json_text

REPORT_VERSION = 2
"""Version of the reports in JSON (RFC 0061: "always 2")."""
JSON_NAMES: Mapping[Service, str] = {**{service: service.value for service in Service}, Service.MANAGEMENT: "mgmt"}
"""Names of the services in the JSON form (RFC 0061 "ServiceType (type: any)")."""


@unique
class ClusterState(Enum):
    """Reachability of a cluster. In a wait, the endpoints of HTTP services count too."""

    ONLINE = "online"
    """All connections to every node are ready."""
    DEGRADED = "degraded"
    """At least one connection is ready, but not all."""
    OFFLINE = "offline"
    """No connection is ready or, in a wait, none of the endpoints of a service has responded."""


@unique
class EndpointState(Enum):
    """State of one connection."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    """The stream is being opened, or the connection bootstraps or reauthenticates."""
    CONNECTED = "connected"
    DISCONNECTING = "disconnecting"
    """The node has left the cluster map, and requests on the connection are still pending."""


@unique
class PingState(Enum):
    """Result of one ping."""

    OK = "ok"
    TIMEOUT = "timeout"
    """No response within the timeout of the service in ``TimeoutOptions``, such as ``kv`` or ``query``."""
    ERROR = "error"
    """Another failure: for example, the connection was lost or could not be opened, or a service sent an HTTP error."""


class EndpointPingReport(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a ping of one key-value connection, or of one HTTP service of one node."""

    type: Service
    id: str
    """Id of the stream that the ping used; ``0x0`` without one. ``EndpointDiagnostics`` has the same id for it."""
    remote: str
    """``host:port``."""
    local: str | None
    """Local ``host:port``; None if it is unknown."""
    namespace: str | None
    """Bucket name; None without a bucket."""
    state: PingState
    latency: float
    """Time to the response or to the end of the wait. It starts when the request is sent or, if none could be
    sent, when the ping begins to wait."""
    error: str | None = None
    """Reason for the failure; None if the state is OK."""


class PingResult(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a ping, by service."""

    id: str
    """Report id that the caller gave, or a generated one."""
    sdk: str
    config_rev: int | None
    """Revision of the newest cluster config; None if no node has sent one."""
    endpoints: Mapping[Service, tuple[EndpointPingReport, ...]]
    """Reports by service, for each requested service of the cluster. Without a cluster config, the reports on key-value
    are always included, because they explain why the client has found no other service."""
    version: int = REPORT_VERSION

    def as_json(self) -> str:
        """Return the report as one line of JSON in the form of RFC 0061; durations are whole microseconds."""
        return _as_json(
            self.id,
            self.sdk,
            self.config_rev,
            {
                JSON_NAMES[service]: [_ping_as_json(found) for found in reports]
                for service, reports in self.endpoints.items()
            },
        )


class Ready(msgspec.Struct, frozen=True):
    """Result of ``WaitUntilReady``: the cluster has reached the desired state."""

    state: ClusterState
    """State of the cluster: the desired state or a better one."""


class NodesServe(msgspec.Struct, frozen=True):
    """Result of ``WaitForNodes``: every key-value node in the map of a bucket serves the bucket."""

    nodes: tuple[str, ...]
    """``host:port`` of each node."""


class EndpointDiagnostics(msgspec.Struct, frozen=True, kw_only=True):
    """State of one connection."""

    type: Service
    id: str
    remote: str
    """``host:port``."""
    local: str | None
    """Local ``host:port``; None if the connection was never open."""
    namespace: str | None
    """Bucket name; None for a connection without a bucket."""
    state: EndpointState
    last_activity: float | None
    """Seconds since data last arrived or, for key-value, since the stream opened; None if neither has happened."""
    details: str | None = None
    """Reason why the connection is not open; None if it is open, or if the reason is unknown."""


class DiagnosticsResult(msgspec.Struct, frozen=True, kw_only=True):
    """States of the client's connections. The client sends no request for this report."""

    id: str
    """Report id that the caller gave, or a generated one."""
    sdk: str
    state: ClusterState
    """State of all key-value connections together. HTTP connections do not count, because the client opens and closes
    them on demand."""
    endpoints: Mapping[Service, tuple[EndpointDiagnostics, ...]]
    """Connections by service: all key-value connections, and the HTTP connections that are open or being opened."""
    version: int = REPORT_VERSION

    def as_json(self) -> str:
        """Return the report as one line of JSON in the form of RFC 0061; durations are whole microseconds."""
        return _as_json(
            self.id,
            self.sdk,
            None,
            {
                JSON_NAMES[service]: [_endpoint_as_json(found) for found in reports]
                for service, reports in self.endpoints.items()
            },
        )


def _as_json(report_id: str, sdk: str, config_rev: int | None, services: Mapping[str, list[dict[str, object]]]) -> str:
    report = {"version": REPORT_VERSION, "id": report_id, "config_rev": config_rev, "sdk": sdk, "services": services}
    return json_text(_without_none(report))


def _ping_as_json(found: EndpointPingReport) -> dict[str, object]:
    return _without_none(
        {
            "id": found.id,
            "latency_us": _microseconds(found.latency),
            "remote": found.remote,
            "local": found.local,
            "state": found.state.value,
            "namespace": found.namespace,
            "error": found.error,
        }
    )


def _endpoint_as_json(found: EndpointDiagnostics) -> dict[str, object]:
    return _without_none(
        {
            "id": found.id,
            "last_activity_us": None if found.last_activity is None else _microseconds(found.last_activity),
            "remote": found.remote,
            "local": found.local,
            "state": found.state.value,
            "namespace": found.namespace,
            "details": found.details,
        }
    )


def _without_none(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _microseconds(seconds: float) -> int:
    return round(seconds * 1_000_000)
