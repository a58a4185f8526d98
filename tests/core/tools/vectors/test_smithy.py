"""Questions about Smithy: each has an answer, or an error that names the invalid field."""

from __future__ import annotations

import pytest

from tests.core.tools.vectors.sample_questions import BACKOFF, SEQUENCE
from tests.rows import rows
from triclinium_core.tools.vectors.fields import MalformedQuestion
from triclinium_core.tools.vectors.questions import answer


@rows(
    ("changes", "expected"),
    [
        ({}, [0, 1, 2, 10, 10]),
        ({"jitter": "DEFAULT", "base_s": 23.4, "max_s": 76.5, "attempts": [1]}, [17.55]),
        ({"random": 0, "attempts": [3]}, [0]),
        ({"attempts": []}, []),
    ],
)
def test_backoffs(changes: dict[str, object], expected: list[float]) -> None:
    """The answer lists the delays without binary rounding errors."""
    assert {"delays_s": expected} == answer(BACKOFF | changes)


def operation(result: str, attempts: int, *delays: float) -> dict[str, object]:
    """Return the answer for one operation."""
    return {"result": result, "attempts": attempts, "delays_s": list(delays)}


@rows(
    ("changes", "available", "operations"),
    [
        ({}, 486, [operation("ok", 3, 0.05, 2), operation("N", 1)]),
        ({"operations": []}, 500, []),
        ({"numbers": 2026}, 486, [operation("ok", 3, 0.05, 2), operation("N", 1)]),
        ({"numbers": "2020"}, 495, [operation("ok", 3, 1, 2), operation("N", 1)]),
        (
            {"operations": [{"responses": ["TO", "TO", "TO", "ok"]}], "numbers": "2020", "random": 0.5},
            480,
            [operation("TO", 3, 0.5, 1)],
        ),
        ({"quota_capacity": 18, "operations": [{"responses": ["E", "T", "ok"]}]}, 4, [operation("T", 2, 0.05)]),
        ({"quota_capacity": 0, "operations": [{"responses": ["E"]}]}, 0, [operation("E", 1)]),
        ({"max_attempts": 0, "operations": [{"responses": ["E"]}]}, 500, [operation("E", 1)]),
        (
            {"strategy": "adaptive", "operations": [{"responses": ["E", "T", "ok"]}]},
            486,
            [operation("ok", 3, 0.05, 2)],
        ),
        (
            {"strategy": "simple", "operations": [{"responses": ["E", "E", "ok"]}]},
            500,
            [operation("ok", 3, 0.025, 0.05)],
        ),
    ],
)
def test_sequences(changes: dict[str, object], available: int, operations: list[dict[str, object]]) -> None:
    """The answer has the rest of the quota and, for each operation, the result, the attempts and the delays."""
    assert {"available": available, "operations": operations} == answer(SEQUENCE | changes)


def test_simple_strategy_needs_no_numbers_or_quota() -> None:
    """A question about the simple strategy needs no numbers and no quota; its answer has no available quota."""
    question = {key: value for key, value in SEQUENCE.items() if key not in {"numbers", "quota_capacity"}}

    answered = answer(question | {"strategy": "simple"})

    assert answered["available"] is None


@rows(
    ("question", "message"),
    [
        (BACKOFF | {"jitter": "SOME"}, "jitter 'SOME' is not known; expected one of NONE, EQUAL, DEFAULT, FULL, DECOR"),
        (BACKOFF | {"random": 1.5}, "random is 1.5, expected a number from 0 to 1"),
        (BACKOFF | {"attempts": 3}, "attempts is a number, expected an array of whole numbers"),
        (BACKOFF | {"attempts": [1, 0.5]}, "attempts[1] is 0.5, expected a whole number"),
        (SEQUENCE | {"strategy": "hopeful"}, "strategy 'hopeful' is not known; expected one of standard, adaptive"),
        (SEQUENCE | {"numbers": "2021"}, "numbers '2021' is not known; expected one of 2020, 2026"),
        (SEQUENCE | {"numbers": 2021}, "numbers '2021' is not known; expected one of 2020, 2026"),
        (SEQUENCE | {"numbers": True}, "numbers is a boolean, expected a string"),
        (SEQUENCE | {"numbers": 10**5000}, "numbers is a number, expected a string"),
        (SEQUENCE | {"max_attempts": "3"}, "max_attempts is a string, expected a number"),
        (SEQUENCE | {"operations": {}}, "operations is an object, expected an array of objects"),
        (SEQUENCE | {"operations": [["E"]]}, "operations[0] is an array, expected an object"),
        (SEQUENCE | {"operations": [{}]}, "operations[0].responses is missing"),
        (SEQUENCE | {"operations": [{"responses": "E"}]}, "operations[0].responses is a string, expected an array of"),
        (
            SEQUENCE | {"operations": [{"responses": []}]},
            "operations[0].responses is empty, expected at least one of E",
        ),
        (
            SEQUENCE | {"operations": [{"responses": ["X"]}]},
            "operations[0].responses[0] 'X' is not known; expected one",
        ),
        (
            SEQUENCE | {"operations": [{"responses": ["ok"]}, {"responses": ["E"]}]},
            "operations[1].responses ends before the operation does: attempt 2 has no response",
        ),
    ],
)
def test_refuses(question: dict[str, object], message: str) -> None:
    """The error names the invalid field, and its expected value or the missing response."""
    with pytest.raises(MalformedQuestion) as caught:
        answer(question)

    assert message == str(caught.value)[: len(message)]
