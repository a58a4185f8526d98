"""What a client gathers of its operations: durations of all, and what was slow or came too late."""

from __future__ import annotations

import json

from tests.core.kv.simulated import TIMEOUT, client_options, get, ready, upsert
from triclinium_core.client.actions import ReportAnswer, ReportDispatch, TelemetryKind
from triclinium_core.client.events import OperationSubmitted, Token
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.telemetry.defaults import LoggingMeter, OrphanReporter, ThresholdLoggingTracer
from triclinium_core.testing.fakes.faults import delay

INTERVAL = 600.0
ALL_ON = client_options(
    tracer=ThresholdLoggingTracer(emit_interval=INTERVAL),
    meter=LoggingMeter(emit_interval=INTERVAL),
    orphans=OrphanReporter(emit_interval=INTERVAL),
)


def test_a_slow_operation_its_duration_and_its_orphan() -> None:
    """An operation that ran out of time is slow; its late answer is an orphan, with what the node says of its work."""
    simulation = ready(options=ALL_ON)
    simulation.node.faults.next(Opcode.GET, delay(TIMEOUT + 1))
    simulation.submit(get())
    simulation.live(TIMEOUT + 2)
    told = {report.kind: json.loads(report.text) for report in simulation.clients[0].last_reports()}

    (slow,) = told[TelemetryKind.SLOW_OPERATIONS]["kv"]["top_requests"]
    (orphan,) = told[TelemetryKind.ORPHANS]["kv"]["top_requests"]
    assert ("get", 2_500_000, 2_500_000, 2_500) == (
        slow["operation_name"],
        slow["total_duration_us"],
        slow["total_dispatch_duration_us"],
        slow["timeout_ms"],
    )
    assert "last_server_duration_us" not in slow
    assert (slow["operation_id"], slow["last_local_id"]) == (orphan["operation_id"], orphan["last_local_id"])
    assert 3_500_000 == orphan["total_duration_us"]
    assert orphan["last_server_duration_us"] > 3_000_000
    assert 1 == told[TelemetryKind.DURATIONS]["operations"]["kv"]["get"]["total_count"]


def test_what_is_fast_is_only_counted() -> None:
    """Nothing is slow, nothing is late, and every kind of operation has its count."""
    simulation = ready(options=ALL_ON)
    for operation in (get(), upsert(), upsert()):
        simulation.submit(operation)
    simulation.live(1)
    (report,) = simulation.clients[0].last_reports()
    operations = json.loads(report.text)["operations"]["kv"]

    assert TelemetryKind.DURATIONS is report.kind
    assert (1, 2) == (operations["get"]["total_count"], operations["upsert"]["total_count"])


def test_attempts_are_told_where_that_is_asked_for() -> None:
    """One operation of two is traced: its attempt is told before it is sent and when it is answered, the other's is not."""
    simulation = ready()
    simulation.feed(OperationSubmitted(Token(101), get(), is_traced=True))
    simulation.feed(OperationSubmitted(Token(102), get("other")))
    simulation.live(1)
    reports = [action for action in simulation.actions if isinstance(action, ReportDispatch | ReportAnswer)]

    assert [ReportDispatch, ReportAnswer] == [type(report) for report in reports]
    assert {101} == {report.token for report in reports}
