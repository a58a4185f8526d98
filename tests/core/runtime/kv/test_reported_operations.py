"""Telemetry of operations: durations, slow operations, traced attempts and orphans."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.core.runtime.kv.simulated import TIMEOUT, Recorded, client_options, found, get, ready, respond, upsert
from tests.rows import rows
from triclinium_core.contract import couchbase
from triclinium_core.contract.neutral import Token
from triclinium_core.kv.operation.document_operations import Keyspace, Operation
from triclinium_core.kv.operation.scan.scan_requests import RangeScanCreate
from triclinium_core.kv.operation.scan.scans import Bounds
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.couchbase import Status
from triclinium_core.telemetry.defaults import LoggingMeter, OrphanReporter, ThresholdLoggingTracer
from triclinium_core.telemetry.span_names import WrappingCall
from triclinium_core.testing.fakes.faults import delay, drop_response, temporary_failure
from triclinium_core.testing.simulation import Simulation

CREATE = RangeScanCreate(Keyspace("travel"), 0, Bounds())
INTERVAL = 600.0
ALL_ON = client_options(
    tracer=ThresholdLoggingTracer(emit_interval=INTERVAL),
    meter=LoggingMeter(emit_interval=INTERVAL),
    orphans=OrphanReporter(emit_interval=INTERVAL),
)


def recorded_by(simulation: Simulation) -> dict[couchbase.TelemetryKind, Any]:
    """Return the last reports of the client as parsed JSON."""
    return {report.kind: json.loads(report.text) for report in simulation.clients[0].last_reports()}


def test_a_slow_operation_its_duration_and_its_orphan() -> None:
    """If an operation times out, it counts as slow; its late response is an orphan with the node's processing time."""
    simulation = ready(options=ALL_ON)
    simulation.node.faults.next(Opcode.GET, delay(TIMEOUT + 1))
    simulation.submit(get())
    simulation.live(TIMEOUT + 2)
    reported = recorded_by(simulation)

    (slow,) = reported[couchbase.TelemetryKind.SLOW_OPERATIONS]["kv"]["top_requests"]
    (orphan,) = reported[couchbase.TelemetryKind.ORPHANS]["kv"]["top_requests"]
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
    assert 1 == reported[couchbase.TelemetryKind.DURATIONS]["operations"]["kv"]["get"]["total_count"]


@pytest.mark.parametrize("reason", [couchbase.AbandonReason.TIMEOUT, couchbase.AbandonReason.CANCELLED])
@pytest.mark.parametrize("retries", [0, 1])
def test_an_abandoned_operation_is_measured(reason: couchbase.AbandonReason, retries: int) -> None:
    """If a slow operation is abandoned, the threshold log has it with the reason, and the meter has it too."""
    simulation = ready(options=ALL_ON)
    if retries:
        simulation.node.faults.next(Opcode.GET, temporary_failure(), times=retries)
    simulation.node.faults.always(Opcode.GET, drop_response())
    token = simulation.submit(get())
    simulation.live(0.75)

    simulation.feed(couchbase.OperationAbandoned(token, reason=reason))
    recorded = recorded_by(simulation)

    (slow,) = recorded[couchbase.TelemetryKind.SLOW_OPERATIONS]["kv"]["top_requests"]
    assert ("get", 750_000, reason) == (slow["operation_name"], slow["total_duration_us"], slow["abandoned"])
    assert "last_remote_socket" in slow
    assert 1 == recorded[couchbase.TelemetryKind.DURATIONS]["operations"]["kv"]["get"]["total_count"]


def test_a_fast_abandoned_operation_is_only_counted() -> None:
    """If an operation is abandoned before the threshold, only the meter has it."""
    simulation = ready(options=ALL_ON)
    simulation.node.faults.always(Opcode.GET, drop_response())
    token = simulation.submit(get())
    simulation.live(0.25)

    simulation.feed(couchbase.OperationAbandoned(token))
    recorded = recorded_by(simulation)

    assert {couchbase.TelemetryKind.DURATIONS} == recorded.keys()
    assert 1 == recorded[couchbase.TelemetryKind.DURATIONS]["operations"]["kv"]["get"]["total_count"]


def test_an_operation_that_was_never_sent_is_measured() -> None:
    """If an operation is abandoned while it waits for its connection, its duration starts at its submission."""
    simulation = Recorded(options=ALL_ON)
    token = simulation.submit(get())
    simulation.now += 0.75

    simulation.feed(couchbase.OperationAbandoned(token, reason=couchbase.AbandonReason.TIMEOUT))

    (slow,) = recorded_by(simulation)[couchbase.TelemetryKind.SLOW_OPERATIONS]["kv"]["top_requests"]
    assert ("timeout", False) == (slow["abandoned"], "last_remote_socket" in slow)


def test_an_unneeded_operation_is_not_measured() -> None:
    """If the result of an operation is not needed, no report has the operation."""
    simulation = ready(options=ALL_ON)
    simulation.node.faults.always(Opcode.GET, drop_response())
    token = simulation.submit(get())
    simulation.live(0.75)

    simulation.feed(couchbase.OperationAbandoned(token, reason=couchbase.AbandonReason.NOT_NEEDED))
    recorded = recorded_by(simulation)

    assert {couchbase.TelemetryKind.DURATIONS} == recorded.keys()
    assert {"noop"} == recorded[couchbase.TelemetryKind.DURATIONS]["operations"]["kv"].keys()


@pytest.mark.parametrize(
    ("reason", "orphans"), [(couchbase.AbandonReason.NOT_NEEDED, 0), (couchbase.AbandonReason.TIMEOUT, 1)]
)
@pytest.mark.parametrize("operation", [get(), CREATE])
def test_late_unneeded_responses_are_not_orphans(
    operation: Operation, reason: couchbase.AbandonReason, orphans: int
) -> None:
    """A late response is an orphan if its operation timed out, but not if the result was not needed."""
    simulation = ready(options=ALL_ON)
    simulation.node.faults.next(operation.opcode, delay(0.5))
    token = simulation.submit(operation)
    simulation.flow()
    simulation.feed(couchbase.OperationAbandoned(token, reason=reason))
    simulation.live(1)

    assert (orphans, 0) == (simulation.machine.statistics().orphans, simulation.machine.statistics().in_flight)
    assert bool(orphans) == (couchbase.TelemetryKind.ORPHANS in recorded_by(simulation))


@pytest.mark.parametrize("is_late", [False, True])
def test_parts_of_a_call_count_once(is_late: bool) -> None:
    """If a call consists of several operations, the meter has one value for the call, however the operations end."""
    simulation = ready(options=ALL_ON)
    for number, operation in enumerate((get(), get("b"), upsert("c"), CREATE)):
        if is_late:
            simulation.node.faults.next(operation.opcode, drop_response())
        simulation.feed(couchbase.OperationSubmitted(Token(101 + number), operation, is_part=True))
    simulation.live(1)
    simulation.feed(couchbase.OperationAbandoned(Token(102)))
    simulation.live(TIMEOUT)
    simulation.feed(couchbase.CallEnded(WrappingCall.GET_ALL_REPLICAS, 0.25))
    counted = recorded_by(simulation)[couchbase.TelemetryKind.DURATIONS]["operations"]["kv"]

    assert {"get_all_replicas"} == counted.keys() - {"noop"}
    assert 1 == counted["get_all_replicas"]["total_count"]
    assert 250_000 == counted["get_all_replicas"]["percentiles_us"]["100.0"]


def test_a_call_is_not_counted_without_a_meter() -> None:
    """If the client has no meter, it reports nothing at the end of a call."""
    simulation = ready()
    simulation.feed(couchbase.CallEnded(WrappingCall.RANGE_SCAN, 0.25))

    assert {} == recorded_by(simulation)


def test_an_abandoned_operation_is_measured_once() -> None:
    """An operation that is abandoned after its end, or twice, counts once."""
    simulation = ready(options=ALL_ON)
    answered = simulation.submit(get())
    simulation.live(0.1)
    simulation.node.faults.always(Opcode.GET, drop_response())
    left = simulation.submit(get())
    for token in (answered, left, left):
        simulation.feed(couchbase.OperationAbandoned(token))

    assert 2 == recorded_by(simulation)[couchbase.TelemetryKind.DURATIONS]["operations"]["kv"]["get"]["total_count"]


def test_fast_operations_are_only_counted() -> None:
    """Fast operations are counted by their kind and do not appear in the other reports."""
    simulation = ready(options=ALL_ON)
    for operation in (get(), upsert(), upsert()):
        simulation.submit(operation)
    simulation.live(1)
    recorded = recorded_by(simulation)
    operations = recorded[couchbase.TelemetryKind.DURATIONS]["operations"]["kv"]

    assert {couchbase.TelemetryKind.DURATIONS} == recorded.keys()
    assert (1, 2) == (operations["get"]["total_count"], operations["upsert"]["total_count"])


def test_only_traced_attempts_are_reported() -> None:
    """An attempt is reported before it is sent and at its response, but only if its operation is traced."""
    simulation = ready()
    simulation.feed(couchbase.OperationSubmitted(Token(101), get(), is_traced=True))
    simulation.feed(couchbase.OperationSubmitted(Token(102), get("other")))
    simulation.live(1)
    reports = [
        action for action in simulation.actions if isinstance(action, couchbase.ReportDispatch | couchbase.ReportAnswer)
    ]

    assert [couchbase.ReportDispatch, couchbase.ReportAnswer] == [type(report) for report in reports]
    assert {101} == {report.token for report in reports}


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("operation", [get(), CREATE])
def test_late_answer_to_traced_operation_counts_once(operation: Operation, leaves: bool) -> None:
    """The late response of a traced slow operation is one orphan in statistics and log, and ends no traced attempt."""
    simulation = ready(options=replace(ALL_ON, timeouts=TimeoutOptions(kv_scan=TIMEOUT)))
    simulation.node.faults.next(operation.opcode, delay(TIMEOUT + 1))
    simulation.feed(couchbase.OperationSubmitted(Token(101), operation, is_traced=True))
    simulation.live(TIMEOUT - 1)
    if leaves:
        simulation.feed(couchbase.OperationAbandoned(Token(101)))
    simulation.live(3)
    recorded = recorded_by(simulation)
    reports = [
        action for action in simulation.actions if isinstance(action, couchbase.ReportDispatch | couchbase.ReportAnswer)
    ]

    (orphan,) = recorded[couchbase.TelemetryKind.ORPHANS]["kv"]["top_requests"]
    (slow,) = recorded[couchbase.TelemetryKind.SLOW_OPERATIONS]["kv"]["top_requests"]
    assert (1, 1) == (
        simulation.machine.statistics().orphans,
        recorded[couchbase.TelemetryKind.ORPHANS]["kv"]["total_count"],
    )
    assert (3_500_000, 3_500_000) == (orphan["total_duration_us"], orphan["total_dispatch_duration_us"])
    assert (1_500_000 if leaves else 2_500_000) == slow["total_dispatch_duration_us"]
    assert [couchbase.ReportDispatch] == [type(report) for report in reports]


ENDS: Mapping[str, Callable[[Recorded, Frame], object]] = {
    "success": lambda simulation, request: simulation.inject(found(request)),
    "failure": lambda simulation, request: simulation.inject(respond(request, Status.KEY_NOT_FOUND)),
    "refused for now": lambda simulation, request: simulation.inject(respond(request, Status.TEMPORARY_FAILURE)),
    "nonsense": lambda simulation, request: simulation.inject(respond(request, extras=b"12345")),
    "lost": lambda simulation, request: simulation.lose(simulation.newest),
    "abandoned": lambda simulation, request: simulation.abandon(Token(2)),
    "deadline": lambda simulation, request: simulation.advance(TIMEOUT),
}
"""Functions that end an attempt, its operation or both."""


@rows("end", sorted(ENDS))
def test_an_attempt_ends_with_its_answer(end: str) -> None:
    """A response or a lost stream ends a traced attempt; a deadline or an abandonment of its operation does not."""
    simulation = ready()
    simulation.is_traced = True
    token, request = simulation.submit_in_flight(get())
    ENDS[end](simulation, request)
    ended = [action.token for action in simulation.actions if isinstance(action, couchbase.ReportAnswer)]

    assert [token] * (end not in ("abandoned", "deadline")) == ended
    assert (end in ("refused for now", "lost")) == bool(simulation.open_operations)
