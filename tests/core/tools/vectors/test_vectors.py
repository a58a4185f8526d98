"""The decisions that are laid down as data: every question, of all three families, is answered as expected."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.rows import rows
from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.tools.vectors.questions import FAMILIES, answer, answer_lines

DATA = Path(__file__).parents[3] / "data"
DECISIONS = (DATA / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
"""What is decided; given from outside."""
FAILURES = (DATA / "failures.jsonl").read_text(encoding="utf-8").splitlines()
"""What a request fails with; this project's own."""
LINES = (*DECISIONS, *FAILURES)


def expected_part(expected: dict[str, object], actual: dict[str, object]) -> dict[str, object]:
    """Return what ``actual`` says of the keys of ``expected``; a key that it lacks stays away."""
    return {key: actual[key] for key in expected if key in actual}


@rows("line", LINES)
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
    """The files have not shrunk: this many questions of each kind are asked, and no kind goes unasked."""
    asked = Counter((question["family"], question["ask"]) for question in map(json.loads, LINES))

    assert {
        ("couchbase", "decide"): 351 + 251,
        ("couchbase", "timeout"): 100,
        ("couchbase", "reason"): 141,
        ("couchbase", "idempotent"): 38,
        ("couchbase", "terminal"): 10,
        ("couchbase", "cap"): 5,
        ("cassandra", "verdict"): 78,
        ("cassandra", "request"): 16,
        ("smithy", "backoff"): 8,
        ("smithy", "sequence"): 4,
    } == asked
    assert asked.keys() == {(family, ask) for family, asks in FAMILIES.items() for ask in asks}


def test_every_reason_has_each_end() -> None:
    """For each reason the class is laid down of a refusal, unless none is possible, and of a timeout, early and late."""
    ends: dict[str, set[str]] = {"refused": set(), "late": set(), "cut": set(), "timeout": set()}
    for question in map(json.loads, FAILURES):
        end = question["id"].partition("-")[0]
        if end in ends and "error" in question["expect"] and "reason" in question:
            ends[end].add(question["reason"])
    reasons = set(map(str, RetryReason))

    assert {reason for reason in RetryReason if not reason.always_retry} == ends.pop("refused")
    assert dict.fromkeys(ends, reasons) == ends
