"""Collector of slow operations, orphans and durations, which the client logs once per interval.

An interval begins with its first entry, so that an idle client has no timer and no report is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from triclinium_core.contract.couchbase.actions import Action, ReportTelemetry, TelemetryKind
from triclinium_core.contract.couchbase.timer_kinds import TimerKind
from triclinium_core.contract.neutral import Timers
from triclinium_core.retry.couchbase import Service
from triclinium_core.telemetry.defaults import LoggingMeter, OrphanReporter, ThresholdLoggingTracer
from triclinium_core.telemetry.durations import OperationDurations
from triclinium_core.telemetry.facts import OperationFacts
from triclinium_core.telemetry.top_operations import TopOperations


class Gathering:
    """Collector of the entries of the default telemetry. Each kind of entry can be turned off.

    Args:
        tracer: thresholds of slow operations; None to collect no slow operations.
        meter: settings of the durations; None to measure no durations.
        orphans: settings of the orphans; None to collect no orphans.
        timers: timers of the client, to which this object adds one at the start of each interval.
        emit: function that receives the reports.
    """

    def __init__(
        self,
        tracer: ThresholdLoggingTracer | None,
        meter: LoggingMeter | None,
        orphans: OrphanReporter | None,
        *,
        timers: Timers[TimerKind],
        emit: Callable[[Action], None],
    ) -> None:
        self.thresholds: Mapping[Service, float] | None = None if tracer is None else tracer.thresholds
        """Duration in seconds from which an operation is slow, by service; None if slow operations are not logged."""
        self.takes_orphans: bool = orphans is not None
        self.durations: OperationDurations | None = None
        """Durations of the current interval; None if durations are not measured."""
        self._timers = timers
        self._emit = emit
        self._intervals: dict[TelemetryKind, float] = {}
        self._gathered: dict[TelemetryKind, TopOperations | OperationDurations] = {}
        self._slow, self._orphans = TopOperations(0), TopOperations(0)
        if tracer is not None:
            self._slow = TopOperations(tracer.sample_size)
            self._keep(TelemetryKind.SLOW_OPERATIONS, self._slow, tracer.emit_interval)
        if orphans is not None:
            self._orphans = TopOperations(orphans.sample_size)
            self._keep(TelemetryKind.ORPHANS, self._orphans, orphans.emit_interval)
        if meter is not None:
            begin = partial(self._begin, TelemetryKind.DURATIONS)
            self.durations = OperationDurations(begin)
            self._keep(TelemetryKind.DURATIONS, self.durations, meter.emit_interval)

    def slow(self, operation: OperationFacts, now: float) -> None:
        """Add an operation that took its threshold or longer."""
        if not self._slow:
            self._begin(TelemetryKind.SLOW_OPERATIONS, now)
        self._slow.add(operation)

    def orphan(self, operation: OperationFacts, now: float) -> None:
        """Add an operation that ended before its response arrived."""
        if not self._orphans:
            self._begin(TelemetryKind.ORPHANS, now)
        self._orphans.add(operation)

    def interval_over(self, kind: TelemetryKind, now: float) -> None:
        """Report and clear the entries of the interval that ends ``now``."""
        self._emit(self._report(kind, now))

    def rest(self, now: float) -> Sequence[ReportTelemetry]:
        """Return reports on all intervals that have not ended, and clear their entries, because the client closes."""
        return [self._report(kind, now) for kind, gathered in self._gathered.items() if gathered]

    def _report(self, kind: TelemetryKind, now: float) -> ReportTelemetry:
        gathered = self._gathered[kind]
        text = gathered.take(now) if isinstance(gathered, OperationDurations) else gathered.take()
        return ReportTelemetry(kind, text)

    def _keep(self, kind: TelemetryKind, gathered: TopOperations | OperationDurations, interval: float) -> None:
        self._gathered[kind], self._intervals[kind] = gathered, interval

    def _begin(self, kind: TelemetryKind, now: float) -> None:
        self._timers.schedule(now + self._intervals[kind], TimerKind.TELEMETRY, kind)
