"""What befell a Cassandra statement, and why it would be retried or not, as sentences to show."""

from __future__ import annotations

from collections.abc import Mapping

from triclinium._cli._telling import BAD, GOOD, OPEN, Telling
from triclinium_core.explain.cassandra.explanation import Explanation, Outcome

STYLES: Mapping[Outcome, str] = {
    Outcome.SAME_NODE: GOOD,
    Outcome.NEXT_NODE: GOOD,
    Outcome.PREPARE: GOOD,
    Outcome.EMPTY: OPEN,
    Outcome.FAIL: BAD,
}


def telling_of(explanation: Explanation) -> Telling:
    """Return why a statement would be retried, or not."""
    happened, *steps = explanation.sentences()
    return Telling(
        happened, circumstances(explanation), steps, explanation.clauses, {steps[-1]: STYLES[explanation.outcome]}
    )


def circumstances(explanation: Explanation) -> str:
    """Return what else goes into the decision, as a sentence."""
    retries = {0: "no retry", 1: "1 retry"}.get(explanation.retry_count, f"{explanation.retry_count} retries")
    idempotent = "idempotent" if explanation.idempotent else "not idempotent"
    return f"Until then: {retries}. The statement is {idempotent}; its policy is {explanation.policy}."
