"""Abandoned requests: their reports, and the error context, which shows whether a request may have been applied."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv.test_reported_operations import recorded_by
from tests.core.runtime.services.asking import ROWS, STATEMENT, Asking, asking
from tests.rows import rows
from triclinium_core.contract import couchbase, neutral
from triclinium_core.contract.couchbase import RequestSubmitted
from triclinium_core.contract.neutral import Token
from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.telemetry.defaults import LoggingMeter, ThresholdLoggingTracer
from triclinium_core.testing.fakes.services.answers import FakeAnswer


def test_an_abandoned_request_names_its_obstacle() -> None:
    """While a request has no connection, its error context names the missing connection."""
    simulation = Asking()
    simulation.run()
    simulation.feed(RequestSubmitted(Token(1), asking()))

    context = simulation.machine.error_context(Token(1), simulation.now)
    assert context is not None
    assert "no connection to" in str(context.last_dispatch_error)
    assert {str(RetryReason.SOCKET_NOT_AVAILABLE)} == context.retry_reasons


def test_the_caller_leaves_in_the_middle() -> None:
    """If a request in flight is abandoned, its connection closes, so the service notices; others continue."""
    simulation = Asking()
    simulation.nodes.script.answer("SELECT slow", FakeAnswer(rows=[1] * 10, seconds_between_rows=1.0))
    token, other = simulation.request(asking("SELECT slow")), simulation.request(asking())
    simulation.run(2.5)

    simulation.feed(couchbase.OperationAbandoned(token))
    simulation.run(2.0)

    assert [True] == [each.client_hung_up for each in simulation.asked if each.statement == "SELECT slow"]
    assert ROWS == simulation.rows[other]
    assert 0 == simulation.open_operations


@pytest.mark.parametrize("readonly", [True, False])
def test_request_with_unread_rows_may_be_applied(readonly: bool) -> None:
    """While rows are unread, a request that is not read-only counts as ambiguous, even if its response is complete."""
    simulation = Asking()
    simulation.takes_rows = False
    token = simulation.request(asking(readonly=readonly))
    simulation.run(0.5)

    assert ROWS == simulation.rows[token]
    assert (not readonly) is simulation.machine.is_ambiguous(token)


@rows(
    ("answer", "takes_rows"),
    [
        (FakeAnswer(rows=[1], seconds=60.0), True),
        (FakeAnswer(rows=[1] * 10, seconds_between_rows=1.0), True),
        (FakeAnswer(rows=[1] * 10, seconds_between_rows=1.0), False),
    ],
)
@pytest.mark.parametrize("reason", couchbase.AbandonReason)
def test_an_abandoned_request_is_measured(
    answer: FakeAnswer, *, takes_rows: bool, reason: couchbase.AbandonReason
) -> None:
    """If a slow request is abandoned, both reports have it; the threshold log has the reason, except NOT_NEEDED."""
    simulation = Asking(tracer=ThresholdLoggingTracer(), meter=LoggingMeter())
    simulation.takes_rows = takes_rows
    simulation.nodes.script.answer("SELECT slow", answer)
    token = simulation.request(asking("SELECT slow"))
    simulation.live(2.5)

    simulation.feed(couchbase.OperationAbandoned(token, reason=reason))
    recorded = recorded_by(simulation)

    (slow,) = recorded[couchbase.TelemetryKind.SLOW_OPERATIONS]["query"]["top_requests"]
    reported = None if reason is couchbase.AbandonReason.NOT_NEEDED else reason.value
    assert ("query", 2_500_000, reported) == (slow["operation_name"], slow["total_duration_us"], slow.get("abandoned"))
    assert slow["total_dispatch_duration_us"] > 2_000_000
    assert 1 == recorded[couchbase.TelemetryKind.DURATIONS]["operations"]["query"]["query"]["total_count"]


def test_time_of_a_reader_is_not_measured() -> None:
    """The duration of a request excludes the time after its complete response, even if it is abandoned later."""
    simulation = Asking(tracer=ThresholdLoggingTracer(), meter=LoggingMeter())
    simulation.takes_rows = False
    token = simulation.request(asking())
    simulation.live(2.5)

    simulation.feed(couchbase.OperationAbandoned(token))
    recorded = recorded_by(simulation)

    assert {couchbase.TelemetryKind.DURATIONS} == recorded.keys()
    assert 1 == recorded[couchbase.TelemetryKind.DURATIONS]["operations"]["query"]["query"]["total_count"]


def test_abandoning_a_complete_response_keeps_the_connection() -> None:
    """If a request is abandoned after its complete response, its connection stays open."""
    simulation = Asking()
    simulation.takes_rows = False
    token = simulation.request(asking())
    simulation.run(0.5)

    simulation.feed(couchbase.OperationAbandoned(token))

    assert 0 == simulation.count(neutral.CloseStream)
    assert 0 == simulation.open_operations


def test_error_context_of_a_running_request() -> None:
    """The context of an open request has its state and its obstacle; a request that waits is not ambiguous."""
    simulation = Asking(max_http_connections=1)
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1], seconds=60.0))
    early = simulation.request(asking())
    unplaced = simulation.machine.error_context(early, simulation.now)
    simulation.flow()
    waiting = simulation.request(asking())
    contexts = [simulation.machine.error_context(token, simulation.now) for token in (early, waiting)]

    assert unplaced is not None
    assert ["pending", "in_flight", "pending"] == [each and each.state for each in (unplaced, *contexts)]
    assert [["NODE_NOT_AVAILABLE"], [], ["SOCKET_NOT_AVAILABLE"]] == [
        each and [*each.retry_reasons] for each in (unplaced, *contexts)
    ]
    assert [True, False] == [simulation.machine.is_ambiguous(token) for token in (early, waiting)]
