"""Recorded decisions about Couchbase, Cassandra and Smithy, whose questions have the expected answers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.tools.vectors.questions import FAMILIES, answer, answer_lines

DATA = Path(__file__).parents[3] / "data"
DECISIONS = (DATA / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
"""Decisions from the RFCs and other clients."""
FAILURES = (DATA / "failures.jsonl").read_text(encoding="utf-8").splitlines()
"""This project's own decisions on the error with which a request fails."""
LINES = (*DECISIONS, *FAILURES)


def expected_part(expected: dict[str, object], actual: dict[str, object]) -> dict[str, object]:
    """Return the part of ``actual`` with the keys of ``expected``, without the keys that ``actual`` lacks."""
    return {key: actual[key] for key in expected if key in actual}


def test_recorded_decisions() -> None:
    """Each answer of a batch has the id of its question and all expected keys with the expected values."""
    questions, answers = [json.loads(line) for line in LINES], list(answer_lines(LINES))
    found = [json.loads(text) for text, _ in answers]

    assert [(answer(question), True) for question in questions] == [
        ({key: value for key, value in each.items() if key != "id"}, is_understood)
        for each, (_, is_understood) in zip(found, answers, strict=True)
    ]
    assert [(question["id"], question["expect"]) for question in questions] == [
        (each["id"], expected_part(question["expect"], each)) for question, each in zip(questions, found, strict=True)
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
