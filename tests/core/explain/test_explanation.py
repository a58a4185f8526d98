"""Explanations: the result type for Couchbase, Cassandra and Smithy, and its numbers."""

from __future__ import annotations

from tests.rows import rows
from triclinium_core.explain.explanation import Explanation, Outcome, Sentence, milliseconds, plain_seconds


def test_explanation_as_json_sentences_and_outcomes() -> None:
    """An explanation has its facts and clauses as JSON, sentences for people, and the outcome of each request."""
    steps = (
        Sentence("It failed."),
        Sentence("So it is sent again.", Outcome.RETRY),
        Sentence("So it ends.", Outcome.FAIL),
    )
    explanation = Explanation(facts={"happened": "it failed"}, steps=steps, clauses=("a rule",))

    assert {"happened": "it failed", "clauses": ["a rule"]} == explanation.to_json()
    assert ["It failed.", "So it is sent again.", "So it ends."] == explanation.sentences()
    assert (Outcome.RETRY, Outcome.FAIL) == explanation.outcomes


@rows(
    ("seconds", "expected"),
    [
        (0.0, 0),
        (2, 2000),
        (0.001, 1),
        (0.5, 500),
        (2.4 - 2.3, 100),
        (0.0005, 0.5),
        (1e-9, 1e-6),
        (4e-10, 0),
        (86400.0, 86400000),
    ],
)
def test_milliseconds(seconds: float, expected: float) -> None:
    """Whole milliseconds are given as ints and fractions as floats, without binary rounding errors."""
    actual = milliseconds(seconds)

    assert (expected, type(expected)) == (actual, type(actual))
    assert plain_seconds(seconds) * 1000 == actual or seconds < 1e-8
