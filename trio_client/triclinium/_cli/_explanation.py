"""What happened to a Couchbase request, and why it would be retried or not, as sentences to show."""

from __future__ import annotations

import math
from collections.abc import Mapping

from triclinium._cli._telling import BAD, GOOD, OPEN, Telling
from triclinium_core.explain.couchbase.explain import Case
from triclinium_core.explain.couchbase.explanation import Explanation, Outcome, milliseconds

STYLES: Mapping[Outcome, str] = {
    Outcome.RETRY: GOOD,
    Outcome.FAIL: BAD,
    Outcome.COMPLETE: GOOD,
    Outcome.CONSULT: OPEN,
}


def telling_of(case: Case, explanation: Explanation) -> Telling:
    """Return why a request would be retried, or not."""
    happened, *steps = explanation.sentences()
    _, _, _, outcome, *_ = steps
    style = BAD if explanation.dispatches is False else STYLES[explanation.outcome]
    return Telling(happened, circumstances(case), steps, explanation.clauses, {outcome: style})


def circumstances(case: Case) -> str:
    """Return how far the request had come, as a sentence."""
    retries = {0: "no retry", 1: "1 retry"}.get(case.attempt, f"{case.attempt} retries")
    elapsed = milliseconds(case.elapsed)
    if math.isinf(case.timeout):
        return f"Until then: {retries}, and {elapsed} ms have passed; no timeout ends it."
    return f"Until then: {retries}, and {elapsed} ms of {milliseconds(case.timeout)} ms have passed."
