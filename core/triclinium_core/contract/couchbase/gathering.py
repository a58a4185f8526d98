"""Collection of slow operations, late answers and durations, reported once an interval.

An interval begins with the first thing that there is to tell. So a client that does nothing has nothing to wake up for,
and no line is written that says nothing.
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
    """Gathers what the defaults of telemetry tell; each of them may be turned off.

    Args:
        tracer: which operations are slow; None to gather none.
        meter: None to measure none.
        orphans: None to gather none.
        timers: where the end of an interval is noted.
        emit: takes the reports.
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
        """The seconds from which an operation is slow; None to gather none."""
        self.takes_orphans: bool = orphans is not None
        self.durations: OperationDurations | None = None
        """None where nobody wants to know."""
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
        """Gather an operation that took its threshold or longer."""
        if not self._slow:
            self._begin(TelemetryKind.SLOW_OPERATIONS, now)
        self._slow.add(operation)

    def orphan(self, operation: OperationFacts, now: float) -> None:
        """Gather an operation whose answer came when nobody waited for it any more."""
        if not self._orphans:
            self._begin(TelemetryKind.ORPHANS, now)
        self._orphans.add(operation)

    def interval_over(self, kind: TelemetryKind, now: float) -> None:
        """Report and clear the entries of the interval that ends ``now``."""
        self._emit(self._report(kind, now))

    def rest(self, now: float) -> Sequence[ReportTelemetry]:
        """Return and clear the entries of all open intervals, which end ``now``: for a client that closes."""
        return [self._report(kind, now) for kind, gathered in self._gathered.items() if gathered]

    def _report(self, kind: TelemetryKind, now: float) -> ReportTelemetry:
        gathered = self._gathered[kind]
        text = gathered.take(now) if isinstance(gathered, OperationDurations) else gathered.take()
        return ReportTelemetry(kind, text)

    def _keep(self, kind: TelemetryKind, gathered: TopOperations | OperationDurations, interval: float) -> None:
        self._gathered[kind], self._intervals[kind] = gathered, interval

    def _begin(self, kind: TelemetryKind, now: float) -> None:
        self._timers.schedule(now + self._intervals[kind], TimerKind.TELEMETRY, kind)
