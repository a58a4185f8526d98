"""Reports on the health of a cluster: what ``ping`` and ``diagnostics`` return. Durations are seconds.

Source: SDK-RFC 0061.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique

import msgspec

from triclinium_core.retry.couchbase import Service
from triclinium_core.shown import json_text

REPORT_VERSION = 2
"""Of the JSON form (RFC 0061: "always 2")."""
JSON_NAMES: Mapping[Service, str] = {**{service: service.value for service in Service}, Service.MANAGEMENT: "mgmt"}
"""What the JSON form calls the services (RFC 0061 "ServiceType")."""


@unique
class ClusterState(Enum):
    """How much of a cluster can be reached."""

    ONLINE = "online"
    """Every node, over all its connections."""
    DEGRADED = "degraded"
    """At least one connection is ready."""
    OFFLINE = "offline"
    """None is."""


@unique
class EndpointState(Enum):
    """Where one connection stands."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    """Authentication and the choice of the bucket included."""
    CONNECTED = "connected"
    DISCONNECTING = "disconnecting"
    """Its node has left the cluster, and requests are still to be answered."""


@unique
class PingState(Enum):
    """What came of one ping."""

    OK = "ok"
    TIMEOUT = "timeout"
    """No answer within the timeout of its service in ``TimeoutOptions``, such as ``kv`` or ``query``."""
    ERROR = "error"
    """The connection could not be opened, or was lost; or a service over HTTP answered with an error, such as 401."""


class EndpointPingReport(msgspec.Struct, frozen=True, kw_only=True):
    """One key-value connection, or one service over HTTP of one node, that was pinged."""

    type: Service
    id: str
    """Of the stream that the ping took, or was to take; the same in ``EndpointDiagnostics``."""
    remote: str
    """``host:port``."""
    local: str | None
    """Our end; None where it never was connected."""
    namespace: str | None
    """The bucket; None for what belongs to none."""
    state: PingState
    latency: float
    """From what was sent, or from the call where nothing could be, to the answer or to the end of waiting."""
    error: str | None = None
    """What went wrong; None where the state is OK."""


class PingResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a ping of each service."""

    id: str
    """The name that the caller gave it, or one of its own."""
    sdk: str
    config_rev: int | None
    """Revision of the newest cluster config; None where no node has told any."""
    endpoints: Mapping[Service, tuple[EndpointPingReport, ...]]
    """Of each service that was asked for and that the cluster has. Key-value is there as well where no config has come: it
    says why nobody knows of other services."""
    version: int = REPORT_VERSION

    def as_json(self) -> str:
        """Return the report as RFC 0061 writes it, on one line; durations are whole microseconds."""
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
    """The state that was waited for is reached."""

    state: ClusterState
    """At least the desired one."""


class NodesServe(msgspec.Struct, frozen=True):
    """Every key-value node of a bucket serves it."""

    nodes: tuple[str, ...]
    """``host:port`` of each."""


class EndpointDiagnostics(msgspec.Struct, frozen=True, kw_only=True):
    """One connection, as the client knows it."""

    type: Service
    id: str
    remote: str
    """``host:port``."""
    local: str | None
    """Our end; None where it never was connected."""
    namespace: str | None
    """The bucket; None for a connection that belongs to none."""
    state: EndpointState
    last_activity: float | None
    """How long ago something was heard; None where nothing ever was."""
    details: str | None = None
    """Why it is not connected, where that is known."""


class DiagnosticsResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the client knows of its connections without asking anybody."""

    id: str
    """The name that the caller gave it, or one of its own."""
    sdk: str
    state: ClusterState
    """Of all key-value connections together; those over HTTP come and go with what is asked."""
    endpoints: Mapping[Service, tuple[EndpointDiagnostics, ...]]
    """Of key-value, and of each service over HTTP to which a connection is open, or is being opened."""
    version: int = REPORT_VERSION

    def as_json(self) -> str:
        """Return the report as RFC 0061 writes it, on one line; durations are whole microseconds."""
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
