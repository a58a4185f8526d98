"""Interface of the client machine for its driver, so that a test may replace the machine."""

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
    """Methods of ``ClientMachine`` that a driver calls, in addition to those of every ``Machine``."""

    def check_authenticator(self, authenticator: Authenticator) -> None:
        """Check that an authenticator may replace the current one."""
        ...

    def is_ambiguous(self, token: Token) -> bool:
        """Return whether the operation, if abandoned now, may have been or may still be applied."""
        ...

    def error_context(self, token: Token, now: float) -> ErrorContext | None:
        """Return the error context of a call that is abandoned now; None for an unknown token."""
        ...

    def statistics(self) -> ClientStatistics:
        """Return a snapshot of the client's connections, endpoints, topologies and counts."""
        ...

    def last_reports(self, now: float | None = None) -> Sequence[ReportTelemetry]:
        """Return and clear the reports of all open intervals, which end ``now`` or at the time of the newest event."""
        ...

    def diagnostics(self, report_id: str, now: float) -> DiagnosticsResult:
        """Return the states of the connections, without sending a request."""
        ...

    @property
    def topologies(self) -> Sequence[Topology]:
        """Current topologies; ``PublishTopology`` reports their changes."""
        ...

    def vbucket_count(self, bucket: str | None) -> int:
        """Return the number of vbuckets of a bucket; 0 if it is unknown."""
        ...

    def replica_count(self, bucket: str | None) -> int | None:
        """Return the number of replicas of each document of a bucket; None if it is unknown."""
        ...
