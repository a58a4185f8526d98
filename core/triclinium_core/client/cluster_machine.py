"""Surface of the client machine that its driver uses, so that a test may put another machine in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from triclinium_core.client.health.statistics import ClientStatistics
from triclinium_core.contract.couchbase import Action, Event, ReportTelemetry
from triclinium_core.contract.neutral import Machine, Token
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.reports import DiagnosticsResult
from triclinium_core.kv.topology.topology import Topology
from triclinium_core.options import Authenticator


class ClusterMachine(Machine[Event, Action], Protocol):
    """Surface of ``ClientMachine`` that a driver uses, beyond that of any machine."""

    def check_authenticator(self, authenticator: Authenticator) -> None:
        """Check that this one may replace the present one."""
        ...

    def is_ambiguous(self, token: Token) -> bool:
        """Return whether the operation, if it is given up now, may have been applied."""
        ...

    def error_context(self, token: Token, now: float) -> ErrorContext | None:
        """Return the context of an error of the operation, if it is given up now."""
        ...

    def statistics(self) -> ClientStatistics:
        """Return a snapshot."""
        ...

    def last_reports(self, now: float | None = None) -> Sequence[ReportTelemetry]:
        """Return the reports of the intervals that end ``now``, by default with the newest event."""
        ...

    def diagnostics(self, report_id: str, now: float) -> DiagnosticsResult:
        """Return how the connections stand."""
        ...

    @property
    def topologies(self) -> Sequence[Topology]:
        """Topologies as they are now; ``PublishTopology`` brings the changes."""
        ...

    def vbucket_count(self, bucket: str | None) -> int:
        """Return how many vbuckets a bucket has; 0 as long as that is not known."""
        ...

    def replica_count(self, bucket: str | None) -> int | None:
        """Return how many replicas a bucket keeps of each document; None as long as that is not known."""
        ...
