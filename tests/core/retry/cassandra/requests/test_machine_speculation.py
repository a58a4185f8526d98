"""Executions beside each other: when they start, what they share, and how they end together."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.core.retry.cassandra.requests.request_cases import (
    CLOSED,
    SERVER,
    START,
    UNPREPARED,
    error_of,
    hear,
    request,
    sends,
    submitted,
)
from tests.rows import rows
from triclinium_core.retry.cassandra import errors as e
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel as Level
from triclinium_core.retry.cassandra.errors import ExecutionInfo
from triclinium_core.retry.cassandra.requests.actions import (
    Cancel,
    Complete,
    Ignore,
    ReportSpeculation,
    Send,
)
from triclinium_core.retry.cassandra.requests.events import (
    AttemptAborted,
    ConnectionMissed,
    ErrorReceived,
    RequestWritten,
    ResultReceived,
    StatementPrepared,
    TimerFired,
)
from triclinium_core.retry.cassandra.requests.request_machine import RequestMachine
from triclinium_core.retry.cassandra.requests.speculation import (
    ConstantSpeculativeExecutionPolicy,
    SpeculativeExecutionPolicy,
)
from triclinium_core.retry.cassandra.requests.states import RequestState
from triclinium_core.retry.cassandra.verdicts import (
    RETRY_NEXT,
    RETRY_SAME,
    RetryDecision,
    RetryVerdict,
)

THREE = ConstantSpeculativeExecutionPolicy(max_executions=3, delay=0.1)
SOON = START + 0.1
DEADLINE = START + 2.0


class Says:
    """A policy that answers the same always, or raises it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[Hashable, int]] = []

    def next_execution(self, *, node: Hashable, running: int) -> float | None:
        """Answer."""
        self.asked.append((node, running))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


def two_running(verdict: object = RETRY_NEXT, plan: tuple[str, ...] = ("n1", "n2", "n3")) -> RequestMachine:
    """Return a request with two executions that wait: attempt 0 on n1 and attempt 1 on n2."""
    machine = submitted(request(Always(verdict), speculation=THREE), plan)
    hear(machine, RequestWritten(0))
    hear(machine, TimerFired(), at=SOON)
    hear(machine, RequestWritten(1), at=SOON)
    return machine


def test_starts_after_the_write() -> None:
    """The clock starts when the first attempt is written, and the next node of the plan gets the request as well."""
    machine = submitted(request(speculation=THREE, consistency=Level.TWO))
    assert DEADLINE == machine.wakeup
    hear(machine, RequestWritten(0), at=START + 0.5)
    assert START + 0.6 == machine.wakeup
    assert [] == hear(machine, TimerFired(), at=START + 0.59)
    actions = hear(machine, TimerFired(), at=START + 0.6)

    assert [ReportSpeculation(1, "n1"), Send(1, 1, "n2", Level.TWO)] == actions
    assert DEADLINE == machine.wakeup


def test_one_at_a_time() -> None:
    """Each execution that was written schedules the next, until there are enough."""
    policy = Says(0.1)
    machine = submitted(request(speculation=policy), ["n1", "n2", "n3", "n4"])
    hear(machine, RequestWritten(0))
    hear(machine, TimerFired(), at=SOON)
    hear(machine, RequestWritten(1), at=SOON)
    assert [Send(2, 2, "n3", None)] == sends(hear(machine, TimerFired(), at=START + 0.2))
    hear(machine, RequestWritten(2), at=START + 0.2)

    assert [("n1", 1), ("n2", 2), ("n3", 3)] == policy.asked


def test_unsent_keeps_the_right() -> None:
    """The first attempt that is written starts the clock, wherever it is."""
    machine = submitted(request(speculation=THREE))
    hear(machine, ConnectionMissed(0), AttemptAborted(1, CLOSED, 0))
    assert DEADLINE == machine.wakeup
    hear(machine, RequestWritten(2))

    assert SOON == machine.wakeup


def test_retries_schedule_nothing() -> None:
    """One execution starts the clock once, however often it is retried."""
    policy = Says(None)
    machine = submitted(request(Always(RETRY_SAME), speculation=policy))
    hear(machine, RequestWritten(0), ErrorReceived(0, SERVER), RequestWritten(1), ErrorReceived(1, SERVER))
    hear(machine, RequestWritten(2), ErrorReceived(2, UNPREPARED), RequestWritten(3), StatementPrepared(3, b"id"))
    hear(machine, RequestWritten(4))

    assert [("n1", 1)] == policy.asked


def test_a_write_that_broke_off_schedules_nothing() -> None:
    """Neither does the retry of an attempt of which only a part was handed over."""
    policy = Says(0.1)
    machine = submitted(request(Always(RETRY_SAME), speculation=policy))
    hear(machine, AttemptAborted(0, CLOSED, 1), RequestWritten(1))

    assert [] == policy.asked


def test_the_statement_is_that_of_the_attempt_that_scheduled_it() -> None:
    """A level that a verdict changed in between is not taken over."""
    machine = submitted(
        request(Always(RetryVerdict(RetryDecision.RETRY_SAME, Level.ONE)), consistency=Level.ALL, speculation=THREE)
    )
    hear(machine, RequestWritten(0), ErrorReceived(0, SERVER))

    assert [Send(2, 1, "n2", Level.ALL)] == sends(hear(machine, TimerFired(), at=SOON))


@rows(("winner", "loser", "node"), [(0, 1, "n1"), (1, 0, "n2")])
def test_the_faster_one_wins(winner: int, loser: int, node: str) -> None:
    """Its result is the request's; the other attempt is called off, and its late answer is ignored."""
    machine = two_running()
    actions = hear(machine, ResultReceived(winner, "rows"), at=SOON)

    assert [Cancel(loser), Complete("rows", ExecutionInfo(node, (), winner, 1, None, 0))] == actions
    assert [Ignore()] == hear(machine, ResultReceived(loser, "late"), at=SOON)
    assert math.inf == machine.wakeup


CLOSED_ANSWER = e.Overloaded("busy")


def test_the_last_one_tells() -> None:
    """An execution that finds the plan empty ends in silence; the last one fails the request, with all errors in order."""
    machine = two_running(plan=("n1", "n2"))
    first = hear(machine, ErrorReceived(1, CLOSED_ANSWER), at=SOON)
    assert machine.state is RequestState.RUNNING
    error = error_of(hear(machine, ErrorReceived(0, SERVER), at=SOON))

    assert [] == first[1:]
    assert isinstance(error, e.AllNodesFailed)
    assert ExecutionInfo(None, (("n2", CLOSED_ANSWER), ("n1", SERVER)), -1, 1, None, 2) == error.execution_info


def test_nothing_left_for_a_new_one() -> None:
    """It was started and ends at once; the first goes on."""
    machine = submitted(request(speculation=THREE), ["n1"])
    hear(machine, RequestWritten(0))
    actions = hear(machine, TimerFired(), at=SOON)
    (complete,) = hear(machine, ResultReceived(0), at=SOON)

    assert [ReportSpeculation(1, "n1")] == actions
    assert isinstance(complete, Complete)
    assert (0, 1) == (complete.info.successful_execution_index, complete.info.speculative_executions)


@rows("answer", [ZeroDivisionError("raise me"), -1.0, math.nan, "soon"])
def test_a_policy_that_fails(answer: object) -> None:
    """The request fails with what the policy did as the cause, and what was written is called off."""
    speculation: SpeculativeExecutionPolicy = Says(answer)
    actions = hear(submitted(request(speculation=speculation)), RequestWritten(0))
    error = error_of(actions)

    assert [Cancel(0)] == actions[:-1]
    assert isinstance(error, e.PolicyFailed)
    assert "the speculative execution policy failed: " in str(error)
    assert isinstance(error.__cause__, ZeroDivisionError if isinstance(answer, Exception) else TypeError)


def test_a_policy_that_fails_when_the_answer_comes_first() -> None:
    """It was the same write, so it is the same failure."""
    machine = submitted(request(speculation=Says(-1)))

    assert isinstance(error_of(hear(machine, ErrorReceived(0, SERVER))), e.PolicyFailed)
