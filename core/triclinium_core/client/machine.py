"""What a driver needs of the core: the surface of ``ClientMachine``, so that a test may put another machine there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from triclinium_core.client.health.statistics import ClientStatistics
from triclinium_core.contract.couchbase import Action, Event, ReportTelemetry
from triclinium_core.contract.neutral import Token
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.reports import DiagnosticsResult
from triclinium_core.kv.topology.topology import Topology
from triclinium_core.options import Authenticator


class Machine(Protocol):
    """What a driver needs of ``ClientMachine``."""

    @property
    def wakeup(self) -> float:
        """When ``TimePassed`` is due."""
        ...

    @property
    def work(self) -> int:
        """Units of work on received bytes so far."""
        ...

    def handle(self, event: Event, now: float) -> Sequence[Action]:
        """Return what to do about ``event``, in order."""
        ...

    def check_authenticator(self, authenticator: Authenticator) -> None:
        """Check that this one may replace the present one."""
        ...

    def is_ambiguous(self, token: Token) -> bool:
        """Tell whether the operation, given up now, may have been applied."""
        ...

    def error_context(self, token: Token, now: float) -> ErrorContext | None:
        """Return what an error can tell of the operation, given up now."""
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
        """From where ``PublishTopology`` goes on."""
        ...

    def vbucket_count(self, bucket: str | None) -> int:
        """Return how many vbuckets a bucket has; 0 as long as that is not known."""
        ...

    def replica_count(self, bucket: str | None) -> int | None:
        """Return how many replicas a bucket keeps of each document; None as long as that is not known."""
        ...
