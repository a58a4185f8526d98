"""When a client tells what it gathered: once an interval, and only where there is something to tell."""

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
    """A gathering with a clock of its own."""

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
        """Return what is told by ``now``."""
        while (due := self.timers.pop_due(now, self.timers.newest)) is not None:
            assert isinstance(due[1], TelemetryKind)
            self.gathering.interval_over(due[1], now)
        told = [action for action in self.actions if isinstance(action, ReportTelemetry)]
        self.actions.clear()
        return told


def kinds(reports: list[ReportTelemetry]) -> list[TelemetryKind]:
    """Return what the reports are about."""
    return [report.kind for report in reports]


def test_a_client_that_does_nothing_has_nothing_to_wake_up_for() -> None:
    """No timer runs before there is something to tell, and none after it is told."""
    bench = Bench(ThresholdLoggingTracer(), LoggingMeter(), OrphanReporter())

    assert math.inf == bench.timers.wakeup

    bench.gathering.slow(SLOW, 5.0)

    assert [TelemetryKind.SLOW_OPERATIONS] == kinds(bench.pass_time(100.0))
    assert (math.inf, []) == (bench.timers.wakeup, bench.pass_time(1e6))


def test_an_interval_begins_with_what_there_is_to_tell() -> None:
    """What follows within it is told with it, and not before it is over."""
    bench = Bench(ThresholdLoggingTracer(emit_interval=10))
    bench.gathering.slow(SLOW, 5.0)
    bench.gathering.slow(SLOW, 14.9)

    assert [] == bench.pass_time(14.999)

    (report,) = bench.pass_time(15.0)

    assert 2 == json.loads(report.text)["kv"]["total_count"]


def test_each_kind_has_its_interval() -> None:
    """Slow operations, orphans and durations do not wait for each other."""
    bench = Bench(
        ThresholdLoggingTracer(emit_interval=3), LoggingMeter(emit_interval=2), OrphanReporter(emit_interval=1)
    )
    bench.gathering.slow(SLOW, 0.0)
    bench.gathering.orphan(SLOW, 0.0)
    durations = bench.gathering.durations
    assert durations is not None
    durations.begin(Service.KV, "get", 0.0).add(600_000)

    told = [kinds(bench.pass_time(now)) for now in (1.0, 2.0, 3.0)]

    assert [[TelemetryKind.ORPHANS], [TelemetryKind.DURATIONS], [TelemetryKind.SLOW_OPERATIONS]] == told


def test_what_is_turned_off_gathers_nothing() -> None:
    """The core sees by three attributes that nobody wants to know."""
    off, on = Bench().gathering, Bench(ThresholdLoggingTracer(), LoggingMeter(), OrphanReporter()).gathering

    assert (None, None, False) == (off.thresholds, off.durations, off.takes_orphans)
    assert on.durations is not None
    assert (0.5, True) == (on.thresholds[Service.KV] if on.thresholds else None, on.takes_orphans)


def test_the_rest_is_told_at_the_end() -> None:
    """What was gathered is not lost with the client; it is told once, and nothing is told of what has nothing."""
    bench = Bench(ThresholdLoggingTracer(), LoggingMeter(), OrphanReporter())
    bench.gathering.slow(SLOW, 5.0)

    assert [TelemetryKind.SLOW_OPERATIONS] == kinds(list(bench.gathering.rest(6.0)))
    assert [] == list(bench.gathering.rest(6.0))
