"""Scripted machine with the interface of ``ClientMachine``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triclinium_core.client.health.statistics import ClientStatistics
from triclinium_core.contract import couchbase
from triclinium_core.contract.neutral import Token
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.reports import ClusterState, DiagnosticsResult
from triclinium_core.kv.topology.topology import Topology
from triclinium_core.options import Authenticator
from triclinium_core.testing.driver_laws.neutral.scripted_machine import ScriptedMachine, nothing


class ScriptedClusterMachine(ScriptedMachine[couchbase.Event, couchbase.Action]):
    """Replacement for the ``ClientMachine`` that a driver runs. It returns only the actions that a law prescribes.

    Args:
        answer: returns the actions for an event. A law may replace ``answer`` and ``wakeup`` at any time.
    """

    def __init__(self, answer: Callable[[couchbase.Event], Sequence[couchbase.Action]] = nothing) -> None:
        super().__init__(answer)
        self.ambiguous: set[Token] = set()
        """Operations that ``is_ambiguous`` reports as possibly applied."""
        self.contexts: dict[Token, ErrorContext] = {}
        """Contexts that ``error_context`` returns, by token."""
        self.topologies: Sequence[Topology] = ()
        self.reports: Sequence[couchbase.ReportTelemetry] = ()
        """Reports that ``last_reports`` returns."""

    def handle(self, event: couchbase.Event, now: float) -> Sequence[couchbase.Action]:
        """Return the actions from ``answer``; for a batch, those of all submissions in order. Exceptions propagate."""
        if not isinstance(event, couchbase.OperationsSubmitted):
            return super().handle(event, now)
        self._begin(event, now)
        try:
            actions = [action for each in event.submissions for action in self.answer(each)]
            for each in event.submissions:
                self._note(each, now)
            return actions
        finally:
            self.is_busy = False

    def check_authenticator(self, authenticator: Authenticator) -> None:
        """Accept any authenticator."""

    def is_ambiguous(self, token: Token) -> bool:
        """Return whether the token is in ``ambiguous``."""
        return token in self.ambiguous

    def error_context(self, token: Token, now: float) -> ErrorContext | None:
        """Return the context of the token in ``contexts``, or None."""
        return self.contexts.get(token)

    def statistics(self) -> ClientStatistics:
        """Return a recognizable snapshot."""
        return ClientStatistics(open_operations=42)

    def last_reports(self, now: float | None = None) -> Sequence[couchbase.ReportTelemetry]:
        """Return the reports that the test has set, once."""
        reports, self.reports = self.reports, ()
        return reports

    def diagnostics(self, report_id: str, now: float) -> DiagnosticsResult:
        """Return a recognizable report."""
        return DiagnosticsResult(id=report_id, sdk=f"at {now:g}", state=ClusterState.DEGRADED, endpoints={})

    def vbucket_count(self, bucket: str | None) -> int:
        """Return a recognizable number."""
        return 4

    def replica_count(self, bucket: str | None) -> int | None:
        """Return a recognizable number."""
        return 2

    @property
    def submitted(self) -> list[couchbase.OperationSubmitted]:
        """Submitted operations among the events."""
        return [event for event in self.events if isinstance(event, couchbase.OperationSubmitted)]

    @property
    def requested(self) -> list[couchbase.RequestSubmitted]:
        """Service requests among the events."""
        return [event for event in self.events if isinstance(event, couchbase.RequestSubmitted)]
