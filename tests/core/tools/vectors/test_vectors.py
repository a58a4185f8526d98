"""Recorded decisions about Couchbase, Cassandra and Smithy, whose questions have the expected answers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.rows import rows
from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.tools.vectors.questions import FAMILIES, answer, answer_lines

DATA = Path(__file__).parents[3] / "data"
DECISIONS = (DATA / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
"""Decisions that the RFCs and other clients give."""
FAILURES = (DATA / "failures.jsonl").read_text(encoding="utf-8").splitlines()
"""This project's own decisions on the error with which a request fails."""
LINES = (*DECISIONS, *FAILURES)


def expected_part(expected: dict[str, object], actual: dict[str, object]) -> dict[str, object]:
    """Return the part of ``actual`` with the keys of ``expected``, without the keys that ``actual`` lacks."""
    return {key: actual[key] for key in expected if key in actual}


@rows("line", LINES)
def test_recorded_decision(line: str) -> None:
    """The answer has all expected keys with the expected values."""
    question = json.loads(line)

    actual = answer(question)

    assert question["expect"] == expected_part(question["expect"], actual)


def test_recorded_decisions_as_a_batch() -> None:
    """The batch gives the same answers line by line, each with its question's id."""
    questions = [json.loads(line) for line in LINES]

    answers = list(answer_lines(LINES))

    assert [({"id": question["id"], **answer(question)}, True) for question in questions] == [
        (json.loads(text), understood) for text, understood in answers
    ]


def test_every_kind_of_question_is_recorded() -> None:
    """The files have the expected number of questions of each kind, and no kind is missing."""
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
    """For each retry reason, the files have the error of a refusal, if there is one, and of early and late timeouts."""
    ends: dict[str, set[str]] = {"refused": set(), "late": set(), "cut": set(), "timeout": set()}
    for question in map(json.loads, FAILURES):
        end = question["id"].partition("-")[0]
        if end in ends and "error" in question["expect"] and "reason" in question:
            ends[end].add(question["reason"])
    reasons = set(map(str, RetryReason))

    assert {reason for reason in RetryReason if not reason.always_retry} == ends.pop("refused")
    assert dict.fromkeys(ends, reasons) == ends
