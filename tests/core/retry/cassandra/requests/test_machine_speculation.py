"""Speculative executions of one request: when they start, the state that they share, and how the request ends."""

from __future__ import annotations

import math

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.core.retry.cassandra.requests import request_cases
from tests.rows import rows
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import ConsistencyLevel as Level, errors

THREE = cassandra.ConstantSpeculativeExecutionPolicy(max_executions=3, delay=0.1)
SOON = request_cases.START + 0.1
DEADLINE = request_cases.START + 2.0


def two_running(
    verdict: object = cassandra.RETRY_NEXT, plan: tuple[str, ...] = ("n1", "n2", "n3")
) -> cassandra.RequestMachine:
    """Return the machine of a request with two executions in flight: attempt 0 on n1 and attempt 1 on n2."""
    machine = request_cases.submitted(request_cases.request(Always(verdict), speculation=THREE), plan)
    request_cases.hear(machine, cassandra.RequestWritten(0))
    request_cases.hear(machine, cassandra.TimerFired(), at=SOON)
    request_cases.hear(machine, cassandra.RequestWritten(1), at=SOON)
    return machine


def test_the_delay_starts_with_the_write() -> None:
    """The delay starts when the first attempt is written; after the delay the request is also sent to the next node."""
    machine = request_cases.submitted(request_cases.request(speculation=THREE, consistency=Level.TWO))
    assert DEADLINE == machine.wakeup
    request_cases.hear(machine, cassandra.RequestWritten(0), at=request_cases.START + 0.5)
    assert request_cases.START + 0.6 == machine.wakeup
    assert [] == request_cases.hear(machine, cassandra.TimerFired(), at=request_cases.START + 0.59)
    actions = request_cases.hear(machine, cassandra.TimerFired(), at=request_cases.START + 0.6)

    assert [cassandra.ReportSpeculation(1, "n1"), cassandra.Send(1, 1, "n2", Level.TWO)] == actions
    assert DEADLINE == machine.wakeup


def test_one_at_a_time() -> None:
    """After each execution is written, the policy is called for the next one, until it returns no delay."""
    policy = request_cases.Says(0.1)
    machine = request_cases.submitted(request_cases.request(speculation=policy), ["n1", "n2", "n3", "n4"])
    request_cases.hear(machine, cassandra.RequestWritten(0))
    request_cases.hear(machine, cassandra.TimerFired(), at=SOON)
    request_cases.hear(machine, cassandra.RequestWritten(1), at=SOON)
    assert [cassandra.Send(2, 2, "n3", None)] == request_cases.sends(
        request_cases.hear(machine, cassandra.TimerFired(), at=request_cases.START + 0.2)
    )
    request_cases.hear(machine, cassandra.RequestWritten(2), at=request_cases.START + 0.2)

    assert [("n1", 1), ("n2", 2), ("n3", 3)] == policy.asked


def test_an_unsent_attempt_schedules_nothing() -> None:
    """The delay starts with the first attempt that is written, even if earlier attempts were not sent."""
    machine = request_cases.submitted(request_cases.request(speculation=THREE))
    request_cases.hear(machine, cassandra.ConnectionMissed(0), cassandra.AttemptAborted(1, request_cases.CLOSED, 0))
    assert DEADLINE == machine.wakeup
    request_cases.hear(machine, cassandra.RequestWritten(2))

    assert SOON == machine.wakeup


def test_retries_schedule_nothing() -> None:
    """An execution calls the policy once, however often the execution is retried."""
    policy = request_cases.Says(None)
    machine = request_cases.submitted(request_cases.request(Always(cassandra.RETRY_SAME), speculation=policy))
    request_cases.hear(
        machine,
        cassandra.RequestWritten(0),
        cassandra.ErrorReceived(0, request_cases.SERVER),
        cassandra.RequestWritten(1),
        cassandra.ErrorReceived(1, request_cases.SERVER),
    )
    request_cases.hear(
        machine,
        cassandra.RequestWritten(2),
        cassandra.ErrorReceived(2, request_cases.UNPREPARED),
        cassandra.RequestWritten(3),
        cassandra.StatementPrepared(3, b"id"),
    )
    request_cases.hear(machine, cassandra.RequestWritten(4))

    assert [("n1", 1)] == policy.asked


def test_a_partial_write_schedules_nothing() -> None:
    """If an attempt was written only in part, neither it nor its retry starts another execution."""
    policy = request_cases.Says(0.1)
    machine = request_cases.submitted(request_cases.request(Always(cassandra.RETRY_SAME), speculation=policy))
    request_cases.hear(machine, cassandra.AttemptAborted(0, request_cases.CLOSED, 1), cassandra.RequestWritten(1))

    assert [] == policy.asked


def test_a_new_execution_keeps_the_original_level() -> None:
    """A new execution has the consistency level at the time it was scheduled, not the level of a later retry."""
    machine = request_cases.submitted(
        request_cases.request(
            Always(cassandra.RetryVerdict(cassandra.RetryDecision.RETRY_SAME, Level.ONE)),
            consistency=Level.ALL,
            speculation=THREE,
        )
    )
    request_cases.hear(machine, cassandra.RequestWritten(0), cassandra.ErrorReceived(0, request_cases.SERVER))

    assert [cassandra.Send(2, 1, "n2", Level.ALL)] == request_cases.sends(
        request_cases.hear(machine, cassandra.TimerFired(), at=SOON)
    )


@rows(("winner", "loser", "node"), [(0, 1, "n1"), (1, 0, "n2")])
def test_the_faster_one_wins(winner: int, loser: int, node: str) -> None:
    """The first result completes the request and cancels the other attempt, whose late response is ignored."""
    machine = two_running()
    actions = request_cases.hear(machine, cassandra.ResultReceived(winner, "rows"), at=SOON)

    assert [
        cassandra.Cancel(loser),
        cassandra.Complete("rows", cassandra.ExecutionInfo(node, (), winner, 1, None, 0)),
    ] == actions
    assert [cassandra.Ignore()] == request_cases.hear(machine, cassandra.ResultReceived(loser, "late"), at=SOON)
    assert math.inf == machine.wakeup


CLOSED_ANSWER = errors.Overloaded("busy")


def test_the_last_execution_fails_the_request() -> None:
    """An execution without a node ends silently; the last execution fails the request with all errors in order."""
    machine = two_running(plan=("n1", "n2"))
    first = request_cases.hear(machine, cassandra.ErrorReceived(1, CLOSED_ANSWER), at=SOON)
    assert machine.state is cassandra.RequestState.RUNNING
    error = request_cases.error_of(
        request_cases.hear(machine, cassandra.ErrorReceived(0, request_cases.SERVER), at=SOON)
    )

    assert [] == first[1:]
    assert isinstance(error, errors.AllNodesFailed)
    assert (
        cassandra.ExecutionInfo(None, (("n2", CLOSED_ANSWER), ("n1", request_cases.SERVER)), -1, 1, None, 2)
        == error.execution_info
    )


def test_a_new_execution_without_a_node() -> None:
    """If there is no node for a new execution, that execution ends immediately, and the first one continues."""
    machine = request_cases.submitted(request_cases.request(speculation=THREE), ["n1"])
    request_cases.hear(machine, cassandra.RequestWritten(0))
    actions = request_cases.hear(machine, cassandra.TimerFired(), at=SOON)
    (complete,) = request_cases.hear(machine, cassandra.ResultReceived(0), at=SOON)

    assert [cassandra.ReportSpeculation(1, "n1")] == actions
    assert isinstance(complete, cassandra.Complete)
    assert (0, 1) == (complete.info.successful_execution_index, complete.info.speculative_executions)


@rows("answer", [ZeroDivisionError("raise me"), -1.0, math.nan, "soon"])
def test_a_policy_that_fails(answer: object) -> None:
    """If a speculation policy raises or returns an invalid value, the request fails and the attempt is cancelled."""
    speculation: cassandra.SpeculativeExecutionPolicy = request_cases.Says(answer)
    actions = request_cases.hear(
        request_cases.submitted(request_cases.request(speculation=speculation)), cassandra.RequestWritten(0)
    )
    error = request_cases.error_of(actions)

    assert [cassandra.Cancel(0)] == actions[:-1]
    assert isinstance(error, errors.PolicyFailed)
    assert "the speculative execution policy failed: " in str(error)
    assert isinstance(error.__cause__, ZeroDivisionError if isinstance(answer, Exception) else TypeError)


def test_a_failing_policy_with_an_early_response() -> None:
    """If a response arrives before the write is reported, an invalid speculative delay still fails the request."""
    machine = request_cases.submitted(request_cases.request(speculation=request_cases.Says(-1)))

    assert isinstance(
        request_cases.error_of(request_cases.hear(machine, cassandra.ErrorReceived(0, request_cases.SERVER))),
        errors.PolicyFailed,
    )
