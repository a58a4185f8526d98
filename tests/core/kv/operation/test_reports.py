"""Health reports, and their JSON according to RFC 0061."""

from __future__ import annotations

import json

from triclinium_core.kv.operation import reports
from triclinium_core.retry.couchbase import Service


def test_a_ping_as_json() -> None:
    """The JSON of a ping has durations in microseconds and omits unknown values, also the revision before any config."""
    local = {"id": "0x1415F12", "remote": "node:11210", "local": "127.0.0.1:54670", "namespace": "bucketname"}
    unknown = {"id": "0x1", "remote": "node:11212", "error": "silence"}
    ok = reports.EndpointPingReport(type=Service.KV, state=reports.PingState.OK, latency=1.182, **local)
    silent = reports.EndpointPingReport(
        type=Service.KV, state=reports.PingState.TIMEOUT, latency=2.4999996, local=None, namespace=None, **unknown
    )
    endpoints = [
        {**local, "latency_us": 1182000, "state": "ok"},
        {**unknown, "latency_us": 2500000, "state": "timeout"},
    ]
    for revision in (53, None):
        result = reports.PingResult(id="i", sdk="s", config_rev=revision, endpoints={Service.KV: (ok, silent)})
        expected = {"version": 2, "id": "i", "config_rev": revision, "sdk": "s", "services": {"kv": endpoints}}

        assert {name: value for name, value in expected.items() if value is not None} == json.loads(result.as_json())
        assert "\n" not in result.as_json()


def test_services_as_json() -> None:
    """In JSON, services have the names that RFC 0061 gives them."""
    result = reports.PingResult(id="i", sdk="s", config_rev=1, endpoints=dict.fromkeys(Service, ()))

    assert ["kv", "query", "analytics", "search", "views", "mgmt"] == list(json.loads(result.as_json())["services"])


def test_diagnostics_as_json() -> None:
    """In JSON, an endpoint that was never active has no last activity; ``details`` gives the error of a lost one."""
    lost = {"id": "0x2", "remote": "[::1]:11210", "details": "connection refused"}
    connected = {"id": "0x3", "remote": "node:11210", "local": "here:1", "namespace": "travel"}
    never = reports.EndpointDiagnostics(
        type=Service.KV,
        state=reports.EndpointState.DISCONNECTED,
        last_activity=None,
        local=None,
        namespace=None,
        **lost,
    )
    lately = reports.EndpointDiagnostics(
        type=Service.KV, state=reports.EndpointState.CONNECTED, last_activity=0.0, **connected
    )
    result = reports.DiagnosticsResult(
        id="i", sdk="s", state=reports.ClusterState.DEGRADED, endpoints={Service.KV: (never, lately)}
    )
    endpoints = [{**lost, "state": "disconnected"}, {**connected, "state": "connected", "last_activity_us": 0}]

    assert {"version": 2, "id": "i", "sdk": "s", "services": {"kv": endpoints}} == json.loads(result.as_json())


def test_states_are_those_of_the_rfc() -> None:
    """The states of clusters, endpoints and pings are those that RFC 0061 defines."""
    assert ["online", "degraded", "offline"] == [state.value for state in reports.ClusterState]
    assert ["disconnected", "connecting", "connected", "disconnecting"] == [
        state.value for state in reports.EndpointState
    ]
    assert ["ok", "timeout", "error"] == [state.value for state in reports.PingState]
