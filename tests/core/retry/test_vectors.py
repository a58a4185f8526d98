"""The decisions that are laid down as data: every question, of all three families, is answered as expected."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from triclinium_core.retry.questions import FAMILIES, answer, answer_lines

DECISIONS = Path(__file__).parents[2] / "data" / "decisions.jsonl"
LINES = DECISIONS.read_text(encoding="utf-8").splitlines()


def expected_part(expected: dict[str, object], actual: dict[str, object]) -> dict[str, object]:
    """Return what ``actual`` says of the keys of ``expected``; a key that it lacks stays away."""
    return {key: actual[key] for key in expected if key in actual}


@pytest.mark.parametrize("line", [pytest.param(line, id=json.loads(line)["id"]) for line in LINES])
def test_decision(line: str) -> None:
    """The answer has every key that is expected, with the expected value."""
    question = json.loads(line)

    actual = answer(question)

    assert question["expect"] == expected_part(question["expect"], actual)


def test_decisions_as_a_batch() -> None:
    """Line by line, the batch gives the same answers, each with its question's id."""
    questions = [json.loads(line) for line in LINES]

    answers = list(answer_lines(LINES))

    assert [({"id": question["id"], **answer(question)}, True) for question in questions] == [
        (json.loads(text), understood) for text, understood in answers
    ]


def test_every_kind_of_question_is_there() -> None:
    """The file has not shrunk: this many questions of each kind are asked, and no kind goes unasked."""
    asked = Counter((question["family"], question["ask"]) for question in map(json.loads, LINES))

    assert {
        ("couchbase", "decide"): 351,
        ("couchbase", "reason"): 137,
        ("couchbase", "idempotent"): 38,
        ("couchbase", "terminal"): 10,
        ("couchbase", "cap"): 5,
        ("cassandra", "verdict"): 78,
        ("cassandra", "request"): 16,
        ("smithy", "backoff"): 8,
        ("smithy", "sequence"): 4,
    } == asked
    assert asked.keys() == {(family, ask) for family, asks in FAMILIES.items() for ask in asks}
