"""How an operation goes under a Smithy strategy, as sentences to show."""

from __future__ import annotations

from collections.abc import Mapping

from triclinium._cli._telling import BAD, GOOD, OPEN, Telling
from triclinium_core.explain.smithy.explanation import Explanation, Outcome

STYLES: Mapping[Outcome, str] = {Outcome.COMPLETE: GOOD, Outcome.FAIL: BAD, Outcome.OPEN: OPEN}


def telling_of(explanation: Explanation, random: float) -> Telling:
    """Return how the operations go.

    Args:
        random: what every draw gives.
    """
    happened, *steps = explanation.sentences()
    ends = dict(
        zip(
            (step for step in steps if step.startswith("So ")),
            map(STYLES.__getitem__, explanation.outcomes),
            strict=True,
        )
    )
    return Telling(happened, circumstances(explanation, random), steps, explanation.clauses, ends)


def circumstances(explanation: Explanation, random: float) -> str:
    """Return what else goes into the decisions, as a sentence."""
    capacity = explanation.quota_capacity
    quota = "no quota" if capacity is None else f"a quota of {capacity}"
    return f"{explanation.strategy}: {explanation.max_attempts} attempts at most, {quota}; every draw gives {random:g}."
