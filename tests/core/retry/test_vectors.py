"""The decisions that are laid down as data: every question of the couchbase family is answered as expected."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from triclinium_core.retry.questions import answer, answer_lines

DECISIONS = Path(__file__).parents[2] / "data" / "decisions.jsonl"
LINES = [
    line for line in DECISIONS.read_text(encoding="utf-8").splitlines() if json.loads(line)["family"] == "couchbase"
]


def expected_part(expected: dict[str, object], actual: dict[str, object]) -> dict[str, object]:
    """Return what ``actual`` says of the keys of ``expected``; a key that it lacks stays away."""
    return {key: actual[key] for key in expected if key in actual}


@pytest.mark.parametrize("line", [pytest.param(line, id=json.loads(line)["id"]) for line in LINES])
def test_couchbase_decision(line: str) -> None:
    """The answer has every key that is expected, with the expected value."""
    question = json.loads(line)

    actual = answer(question)

    assert question["expect"] == expected_part(question["expect"], actual)


def test_couchbase_decisions_as_a_batch() -> None:
    """Line by line, the batch gives the same answers, each with its question's id."""
    questions = [json.loads(line) for line in LINES]

    answers = list(answer_lines(LINES))

    assert [({"id": question["id"], **answer(question)}, True) for question in questions] == [
        (json.loads(text), understood) for text, understood in answers
    ]


def test_every_kind_of_question_is_there() -> None:
    """The file has not shrunk: this many questions of each kind are asked."""
    asked = Counter(json.loads(line)["ask"] for line in LINES)

    assert {"decide": 351, "reason": 137, "idempotent": 38, "terminal": 10, "cap": 5} == asked
