"""Replay of the operations on a tape by retry machines of this version."""

from __future__ import annotations

import msgspec
import pytest

from tests.core.decision_tape.recorded import RecordedSimulation
from tests.core.runtime.kv.simulated import upsert
from triclinium_core import errors
from triclinium_core.decision_tape import lines
from triclinium_core.decision_tape.replay import replay
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import (
    BestEffortRetryStrategy,
    RetryAction,
    RetryReason,
    RetryRequest,
    strategy,
)
from triclinium_core.retry.couchbase.tables import kv_responses
from triclinium_core.testing import hang_up, temporary_failure


def retried(retry_strategy: strategy.AnyRetryStrategy | None = None) -> lines.Operation:
    """Return a recorded write. The node responds with a temporary failure, and closes the connection on the retry."""
    simulation = RecordedSimulation()
    simulation.node.faults.next(Opcode.SET, temporary_failure())
    simulation.node.faults.next(Opcode.SET, hang_up())
    simulation.submit(upsert(), retry_strategy=retry_strategy)
    simulation.run(5.0)
    (operation,) = simulation.operations()
    return operation


@pytest.mark.parametrize(
    ("rules", "name", "rule"),
    [
        (strategy.BestEffortRetryStrategy, "retry_after", lambda *_: RetryAction.after(1)),
        (RetryReason.KV_TEMPORARY_FAILURE, "allows_non_idempotent_retry", False),
        (kv_responses, "RETRYABLE_STATUSES", {}),
    ],
    ids=["strategy", "reason", "status"],
)
def test_a_changed_rule_is_the_first_difference(
    monkeypatch: pytest.MonkeyPatch, rules: object, name: str, rule: object
) -> None:
    """After a change of a rule, the replay returns the first event that it concerns, with both decisions."""
    operation = retried()
    assert replay(operation) is None
    monkeypatch.setattr(rules, name, rule)

    difference = replay(operation)

    assert difference is not None
    assert (operation.token, 1, operation.steps[1]) == (difference.token, difference.step, difference.recorded)
    assert isinstance(difference.replayed, lines.Responded)
    assert difference.replayed.decision != operation.steps[1].decision  # type: ignore[union-attr]


class Moody:
    """Strategy of a user, with answers that no strategy of the package gives."""

    def __init__(self) -> None:
        self.answers = [RetryAction.after(0.125, within=9), RetryAction.no_retry(errors.RateLimitedException)]

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return the next answer; raise after the last one."""
        return self.answers.pop(0)


class MoodyError(errors.CouchbaseException):
    """Exception class of a user."""


def test_answers_of_a_user_come_from_the_tape() -> None:
    """A user's strategy is not called by a replay: its answers, exceptions and classes are on the tape."""
    moody = Moody()
    operation = retried(moody)
    answered = [step for step in operation.steps if isinstance(step, lines.Responded)]
    raising = retried(Moody.__new__(Moody))
    moody.answers = [RetryAction.no_retry(MoodyError)]
    of_user = retried(moody)

    assert lines.StrategyFacts("Moody") == operation.strategy
    assert lines.Answer(delay=0.125, within=9) == answered[0].answer
    assert lines.Answer(raised="AttributeError") == raising.steps[1].answer  # type: ignore[union-attr]
    assert "MoodyError" == of_user.error
    assert [None] * 3 == [replay(each) for each in (operation, raising, of_user)]


def test_an_impossible_event_is_a_difference() -> None:
    """An event that cannot happen at its place is a difference without a decision."""
    operation = retried()
    reordered = msgspec.structs.replace(operation, steps=(operation.steps[0], *operation.steps[:0:-1]))

    difference = replay(reordered)

    assert difference is not None
    assert difference.replayed is None


def test_decisions_name_their_clauses() -> None:
    """A retry has the clauses for its response and its decision, a failure has a clause, and a dispatch has none."""
    operation = retried(BestEffortRetryStrategy())
    decisions = [step.decision for step in operation.steps if not isinstance(step, lines.Sent)]

    assert ["retry", "dispatch", "fail"] == [decision.kind for decision in decisions]
    assert "Response Code Retry List" in str(decisions[0].clause)
    assert "Retry Orchestration" in str(decisions[0].clause)
    assert "Network Time" in str(decisions[2].clause)
    assert decisions[1].clause is None
