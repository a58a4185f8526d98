"""Reports of gathered telemetry: after each interval and at the end, and only if there is something to report."""

from __future__ import annotations

import json
import math

from triclinium_core.contract.couchbase import Action, Gathering, ReportTelemetry, TelemetryKind, TimerKind
from triclinium_core.contract.neutral import Timers
from triclinium_core.retry.couchbase import Service
from triclinium_core.telemetry.defaults import LoggingMeter, OrphanReporter, ThresholdLoggingTracer
from triclinium_core.telemetry.facts import OperationFacts

SLOW = OperationFacts(service=Service.KV, operation_name="get", total_duration_us=600_000)


class Bench:
    """Telemetry gathering with its own timers."""

    def __init__(
        self,
        tracer: ThresholdLoggingTracer | None = None,
        meter: LoggingMeter | None = None,
        orphans: OrphanReporter | None = None,
    ) -> None:
        self.actions: list[Action] = []
        self.timers: Timers[TimerKind] = Timers()
        self.gathering = Gathering(tracer, meter, orphans, timers=self.timers, emit=self.actions.append)

    def pass_time(self, now: float) -> list[ReportTelemetry]:
        """Fire the timers that are due by ``now``, and return the reports that follow."""
        while (due := self.timers.pop_due(now, self.timers.newest)) is not None:
            assert isinstance(due[1], TelemetryKind)
            self.gathering.interval_over(due[1], now)
        reported = [action for action in self.actions if isinstance(action, ReportTelemetry)]
        self.actions.clear()
        return reported


def kinds(reports: list[ReportTelemetry]) -> list[TelemetryKind]:
    """Return the kind of each report."""
    return [report.kind for report in reports]


def test_an_idle_client_has_no_timer() -> None:
    """While there is no telemetry to report, no timer runs; a timer that has reported does not run again."""
    bench = Bench(ThresholdLoggingTracer(), LoggingMeter(), OrphanReporter())

    assert math.inf == bench.timers.wakeup

    bench.gathering.slow(SLOW, 5.0)

    assert [TelemetryKind.SLOW_OPERATIONS] == kinds(bench.pass_time(100.0))
    assert (math.inf, []) == (bench.timers.wakeup, bench.pass_time(1e6))


def test_an_interval_starts_with_its_first_fact() -> None:
    """The first slow operation starts an interval, and the report at its end counts all slow operations since then."""
    bench = Bench(ThresholdLoggingTracer(emit_interval=10))
    bench.gathering.slow(SLOW, 5.0)
    bench.gathering.slow(SLOW, 14.9)

    assert [] == bench.pass_time(14.999)

    (report,) = bench.pass_time(15.0)

    assert 2 == json.loads(report.text)["kv"]["total_count"]


def test_each_kind_has_its_interval() -> None:
    """Slow operations, orphans and durations are each reported at their own interval."""
    bench = Bench(
        ThresholdLoggingTracer(emit_interval=3), LoggingMeter(emit_interval=2), OrphanReporter(emit_interval=1)
    )
    bench.gathering.slow(SLOW, 0.0)
    bench.gathering.orphan(SLOW, 0.0)
    durations = bench.gathering.durations
    assert durations is not None
    durations.begin(Service.KV, "get", 0.0).add(600_000)

    reported = [kinds(bench.pass_time(now)) for now in (1.0, 2.0, 3.0)]

    assert [[TelemetryKind.ORPHANS], [TelemetryKind.DURATIONS], [TelemetryKind.SLOW_OPERATIONS]] == reported


def test_disabled_telemetry_gathers_nothing() -> None:
    """A disabled kind of telemetry has None as ``thresholds`` or ``durations``, or False as ``takes_orphans``."""
    off, on = Bench().gathering, Bench(ThresholdLoggingTracer(), LoggingMeter(), OrphanReporter()).gathering

    assert (None, None, False) == (off.thresholds, off.durations, off.takes_orphans)
    assert on.durations is not None
    assert (0.5, True) == (on.thresholds[Service.KV] if on.thresholds else None, on.takes_orphans)


def test_the_rest_is_reported_at_the_end() -> None:
    """When the client ends, each kind that has something to report is reported once."""
    bench = Bench(ThresholdLoggingTracer(), LoggingMeter(), OrphanReporter())
    bench.gathering.slow(SLOW, 5.0)

    assert [TelemetryKind.SLOW_OPERATIONS] == kinds(list(bench.gathering.rest(6.0)))
    assert [] == list(bench.gathering.rest(6.0))
