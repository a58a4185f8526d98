"""Health reports, and their JSON according to RFC 0061."""

from __future__ import annotations

import json

from triclinium_core.kv.operation import reports
from triclinium_core.retry.couchbase import Service

PINGED = reports.EndpointPingReport(
    type=Service.KV,
    id="0x1415F12",
    remote="node:11210",
    local="127.0.0.1:54670",
    namespace="bucketname",
    state=reports.PingState.OK,
    latency=1.182,
)
SILENT = reports.EndpointPingReport(
    type=Service.KV,
    id="0x1",
    remote="node:11212",
    local=None,
    namespace=None,
    state=reports.PingState.TIMEOUT,
    latency=2.4999996,
    error="silence",
)


def test_a_ping_as_json() -> None:
    """The JSON of a ping has durations in microseconds and omits unknown values."""
    result = reports.PingResult(
        id="0xdeadbeef", sdk="triclinium/1", config_rev=53, endpoints={Service.KV: (PINGED, SILENT)}
    )

    assert {
        "version": 2,
        "id": "0xdeadbeef",
        "config_rev": 53,
        "sdk": "triclinium/1",
        "services": {
            "kv": [
                {
                    "id": "0x1415F12",
                    "latency_us": 1182000,
                    "remote": "node:11210",
                    "local": "127.0.0.1:54670",
                    "state": "ok",
                    "namespace": "bucketname",
                },
                {"id": "0x1", "latency_us": 2500000, "remote": "node:11212", "state": "timeout", "error": "silence"},
            ]
        },
    } == json.loads(result.as_json())
    assert "\n" not in result.as_json()


def test_services_as_json() -> None:
    """In JSON, services have the names that RFC 0061 gives them."""
    result = reports.PingResult(id="i", sdk="s", config_rev=1, endpoints=dict.fromkeys(Service, ()))

    assert ["kv", "query", "analytics", "search", "views", "mgmt"] == list(json.loads(result.as_json())["services"])


def test_a_ping_before_any_config() -> None:
    """If the client has no config, the JSON of a ping omits the revision."""
    result = reports.PingResult(id="i", sdk="s", config_rev=None, endpoints={})

    assert {"version": 2, "id": "i", "sdk": "s", "services": {}} == json.loads(result.as_json())


def test_diagnostics_as_json() -> None:
    """In JSON, an endpoint that was never active has no last activity; ``details`` gives the error of a lost one."""
    never = reports.EndpointDiagnostics(
        type=Service.KV,
        id="0x2",
        remote="[::1]:11210",
        local=None,
        namespace=None,
        state=reports.EndpointState.DISCONNECTED,
        last_activity=None,
        details="connection refused",
    )
    lately = reports.EndpointDiagnostics(
        type=Service.KV,
        id="0x3",
        remote="node:11210",
        local="here:1",
        namespace="travel",
        state=reports.EndpointState.CONNECTED,
        last_activity=0.0,
    )
    result = reports.DiagnosticsResult(
        id="i", sdk="s", state=reports.ClusterState.DEGRADED, endpoints={Service.KV: (never, lately)}
    )

    assert {
        "version": 2,
        "id": "i",
        "sdk": "s",
        "services": {
            "kv": [
                {"id": "0x2", "remote": "[::1]:11210", "state": "disconnected", "details": "connection refused"},
                {
                    "id": "0x3",
                    "last_activity_us": 0,
                    "remote": "node:11210",
                    "local": "here:1",
                    "state": "connected",
                    "namespace": "travel",
                },
            ]
        },
    } == json.loads(result.as_json())


def test_states_are_those_of_the_rfc() -> None:
    """The states of clusters, endpoints and pings are those that RFC 0061 defines."""
    assert ["online", "degraded", "offline"] == [state.value for state in reports.ClusterState]
    assert ["disconnected", "connecting", "connected", "disconnecting"] == [
        state.value for state in reports.EndpointState
    ]
    assert ["ok", "timeout", "error"] == [state.value for state in reports.PingState]
