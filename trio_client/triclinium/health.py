"""Reports on connections and services."""

from __future__ import annotations

from triclinium_core.client.health.statistics import (
    ClientStatistics,
    ConnectionStatistics,
    EndpointStatistics,
    ServerTimeStatistics,
)
from triclinium_core.kv.operation.reports import (
    ClusterState,
    DiagnosticsResult,
    EndpointDiagnostics,
    EndpointPingReport,
    EndpointState,
    PingResult,
    PingState,
)
from triclinium_core.retry.couchbase import BreakerStatistics

__all__ = [
    "BreakerStatistics",
    "ClientStatistics",
    "ClusterState",
    "ConnectionStatistics",
    "DiagnosticsResult",
    "EndpointDiagnostics",
    "EndpointPingReport",
    "EndpointState",
    "EndpointStatistics",
    "PingResult",
    "PingState",
    "ServerTimeStatistics",
]
