"""Deadline, delays and error context of a request, and failures that are not retried."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.core.retry.couchbase.machine_answers import LOCKED, TEMPORARY, R, S
from tests.core.retry.couchbase.request_cases import NODE, Says, annotation, answer, error_of, hear, machine_of
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry import couchbase

DISPATCHED = couchbase.Dispatched("10.0.0.1:11210", 17)
LOCKED_ANSWER = couchbase.ResponseReceived(couchbase.KvResponse(0x09))
STALE_PLAN = b'{"errors": [{"code": 4040, "msg": "no such plan"}]}'
"""Response of the query service after which the client must prepare the statement again."""


def test_a_response_after_the_deadline() -> None:
    """A response after the deadline completes the request if the timeout event has not arrived yet."""
    machine = machine_of(annotation())
    machine.handle(couchbase.ResponseReceived(couchbase.KvResponse(0x00)), 103.0)

    assert S.COMPLETED is machine.state


def test_the_example_of_the_rfc() -> None:
    """If a retry after 1 s is permitted 2 s into a timeout of 2.5 s, the request waits 0.5 s and times out unsent."""
    machine = machine_of(annotation(Says(couchbase.RetryAction.after(1.0)), submitted_at=0.0, timeout=2.5))
    report, order = machine.handle(LOCKED_ANSWER, 2.0)

    assert couchbase.RetryAfter(0.5, dispatches=False) == order
    assert isinstance(report, couchbase.ReportRetry)
    assert (0.5, False) == (report.delay, report.dispatches)
    assert (S.EXPIRING, 2.5, 0) == (machine.state, machine.wakeup, machine.retry_attempts)
    assert [] == list(machine.handle(couchbase.WakeupReached(), 2.4999))

    error = error_of(machine.handle(couchbase.WakeupReached(), 2.5))

    assert errors.UnambiguousTimeoutException is type(error)
    assert (0, frozenset({"KV_LOCKED"})) == (error.context.retry_attempts, error.context.retry_reasons)


def test_a_retry_counts_when_its_delay_is_over() -> None:
    """A retry is counted only when its delay has ended."""
    machine = machine_of(annotation(Says(couchbase.RetryAction.after(0.25))))
    hear(machine, answer(LOCKED), 100.5)
    waiting = machine.error_context(100.6).retry_attempts
    hear(machine, couchbase.WakeupReached(), 100.75)
    hear(machine, couchbase.Dispatched(NODE, 18), 100.75)

    assert (0, 1) == (waiting, machine.error_context(100.8).retry_attempts)


@rows("now", [100.5, 102.5])
@rows("strategy", [couchbase.BestEffortRetryStrategy(), couchbase.FailFastRetryStrategy()])
def test_the_context_has_the_reason_of_every_failure(strategy: couchbase.AnyRetryStrategy, now: float) -> None:
    """The context has the failure's reason if the failure is refused, is at the deadline, or waits for a retry."""
    machine = machine_of(annotation(strategy))
    hear(machine, answer(TEMPORARY), now)

    assert frozenset({"KV_TEMPORARY_FAILURE"}) == machine.error_context(now).retry_reasons


@rows(
    ("event", "error", "reason"),
    [
        *(
            (
                couchbase.SocketClosed(handed_over, "reset", is_partial=True),
                errors.RequestCanceledException,
                R.SOCKET_CLOSED_WHILE_IN_FLIGHT,
            )
            for handed_over in couchbase.HandedOver
        ),
        (
            couchbase.ResponseReceived(
                couchbase.ServiceResponse(couchbase.Service.QUERY, 200, STALE_PLAN, is_partial=True)
            ),
            errors.PreparedStatementFailureException,
            R.QUERY_PREPARED_STATEMENT_FAILURE,
        ),
    ],
)
def test_a_failure_after_rows_is_refused(
    event: couchbase.SocketClosed | couchbase.ResponseReceived,
    error: type[errors.CouchbaseException],
    reason: couchbase.RetryReason,
) -> None:
    """If an idempotent request has delivered rows, its failure is not retried; report and context have the reason."""
    machine = machine_of(annotation(idempotent=True, service=couchbase.Service.QUERY, operation="query"))
    report, fail = hear(machine, event, 100.5)

    assert isinstance(report, couchbase.ReportRefusal)
    assert isinstance(fail, couchbase.Fail)
    assert (reason, error.__name__, error) == (report.reason, report.error, type(fail.error))
    assert (reason, frozenset({reason})) == (fail.error.context.refused_reason, fail.error.context.retry_reasons)
    assert (S.FAILED, math.inf, False) == (machine.state, machine.wakeup, machine.is_answered)


def test_a_late_wakeup() -> None:
    """If the wakeup is late, the due retry is sent before the deadline, but not after the deadline."""
    late, too_late = (machine_of(annotation(Says(couchbase.RetryAction.after(0.1)))) for _ in range(2))
    for machine in (late, too_late):
        machine.handle(LOCKED_ANSWER, 102.0)

    assert [couchbase.Dispatch()] == list(late.handle(couchbase.WakeupReached(), 102.49))
    assert [couchbase.Fail] == [type(action) for action in too_late.handle(couchbase.WakeupReached(), 102.5)]


def test_large_clock_values() -> None:
    """Retries and deadlines work even if the clock value is so large that floats have a coarse resolution."""
    start = 1e9
    machine = machine_of(annotation(Says(couchbase.RetryAction.after(0.1)), submitted_at=start, timeout=0.35))
    now, dispatches = start, 0
    while machine.state is not S.FAILED:
        if machine.state is S.IN_FLIGHT:
            machine.handle(LOCKED_ANSWER, now)
        now = machine.wakeup
        for action in machine.handle(couchbase.WakeupReached(), now):
            if isinstance(action, couchbase.Dispatch):
                dispatches += 1
                machine.handle(DISPATCHED, now)

    assert 3 == dispatches
    assert start + 0.35 == now


def test_the_machine_overrides_the_owners_context() -> None:
    """In the error context, the machine's operation, times and service replace those that the owner has set."""
    request = replace(
        annotation(idempotent=True, submitted_at=0.0, timeout=1.0),
        error_context=ErrorContext(operation="other", idempotent=False, timeout=99.0, service="query"),
    )
    context = machine_of(request).error_context(0.5)

    assert ("get", True, 1.0, "kv", 0.5) == (
        context.operation,
        context.idempotent,
        context.timeout,
        context.service,
        context.elapsed,
    )


def test_a_request_without_a_deadline() -> None:
    """If a request has no deadline, only retries wake its machine, and the error context has no timeout."""
    machine = machine_of(annotation(timeout=math.inf))

    assert math.inf == machine.wakeup
    assert machine.error_context(100.0).timeout is None

    machine.handle(LOCKED_ANSWER, 1e6)

    assert 1e6 + 0.001 == machine.wakeup
    assert [couchbase.Dispatch()] == list(machine.handle(couchbase.WakeupReached(), 1e6 + 0.001))
    assert math.inf == machine.wakeup


def test_an_early_wakeup() -> None:
    """If a wakeup is before the end of a delay, the machine does not send the retry."""
    machine = machine_of(annotation())
    machine.handle(LOCKED_ANSWER, 100.0)

    assert [] == list(machine.handle(couchbase.WakeupReached(), 100.0009))
    assert (S.WAITING, 100.001) == (machine.state, machine.wakeup)
    assert [couchbase.Dispatch()] == list(machine.handle(couchbase.WakeupReached(), 100.001))
    assert (S.PENDING, 102.5) == (machine.state, machine.wakeup)


@rows("handed_over", [couchbase.HandedOver.PART, couchbase.HandedOver.ALL])
def test_a_socket_that_closed_under_a_write(handed_over: couchbase.HandedOver) -> None:
    """If the socket closes after part or all of a write was handed over, the write fails (decision C24)."""
    machine = machine_of(annotation(), state=S.PENDING)
    machine.handle(DISPATCHED, 100.0)
    error = error_of(machine.handle(couchbase.SocketClosed(handed_over, "reset", R.AUTHENTICATION_ERROR), 100.0))

    assert errors.RequestCanceledException is type(error)
    assert ("SOCKET_CLOSED_WHILE_IN_FLIGHT", "reset") == (
        error.context.refused_reason,
        error.context.last_dispatch_error,
    )


@rows("asked", [0.0, 0.0005])
def test_the_minimum_delay(asked: float) -> None:
    """If a strategy permits a retry with a shorter delay, the delay is one millisecond."""
    machine = machine_of(annotation(Says(couchbase.RetryAction.after(asked))))
    *_, order = machine.handle(LOCKED_ANSWER, 100.0)

    assert couchbase.RetryAfter(0.001, dispatches=True) == order
    assert 100.001 == pytest.approx(machine.wakeup)
