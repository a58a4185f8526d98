"""Verdicts that a policy returns: a decision, and for a retry possibly a new consistency level."""

from __future__ import annotations

from typing import Any

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.retry import cassandra


def test_the_four_decisions() -> None:
    """There are the driver's four decisions; two of them retry, and each has a verdict without a new level."""
    assert ["RETRY_SAME", "RETRY_NEXT", "RETHROW", "IGNORE"] == [decision.value for decision in cassandra.RetryDecision]
    assert ["RETRY_SAME", "RETRY_NEXT"] == [decision.name for decision in cassandra.RetryDecision if decision.retries]
    assert [cassandra.RetryVerdict(decision) for decision in cassandra.RetryDecision] == [
        cassandra.RETRY_SAME,
        cassandra.RETRY_NEXT,
        cassandra.RETHROW,
        cassandra.IGNORE,
    ]


@rows("level", cassandra.ConsistencyLevel)
@rows("decision", cassandra.RetryDecision)
def test_a_level_goes_with_a_retry(decision: cassandra.RetryDecision, level: cassandra.ConsistencyLevel) -> None:
    """Only a decision to retry may have a consistency level."""
    if decision.retries:
        assert level is cassandra.RetryVerdict(decision, level).consistency
        return
    with refusal_of("consistency") as caught:
        cassandra.RetryVerdict(decision, level)

    assert str(caught.value).startswith(f"consistency={level.name} ")


@rows("decision", [None, "RETRY_SAME", "retry", 1, True, cassandra.RETRY_SAME])
def test_an_invalid_decision(decision: Any) -> None:
    """An invalid decision raises an error that lists the four valid decisions."""
    with refusal_of("decision") as caught:
        cassandra.RetryVerdict(decision)

    names = ", ".join(f"RetryDecision.{name}" for name in ("RETRY_SAME", "RETRY_NEXT", "RETHROW", "IGNORE"))
    assert f"decision={decision!r} must be one of {names}" == str(caught.value)


@rows("consistency", ["ONE", 1, 0, False])
def test_an_invalid_level(consistency: Any) -> None:
    """A consistency level is refused if it is not a ConsistencyLevel."""
    with refusal_of("consistency", said=f"consistency={consistency!r} must be one of ConsistencyLevel.ANY, "):
        cassandra.RetryVerdict(cassandra.RetryDecision.RETRY_SAME, consistency)
