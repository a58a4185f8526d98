"""The decisions that are laid down as data: every question of the smithy family, asked of the strategies themselves."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.core.retry.smithy.cases import Fixed, delays_of
from triclinium_core.retry.smithy.backoff import ExponentialRetryBackoffStrategy, Jitter
from triclinium_core.retry.smithy.numbers import AwsRetryNumbers
from triclinium_core.retry.smithy.standard import StandardRetryStrategy

DECISIONS = Path(__file__).parents[3] / "data" / "decisions.jsonl"
QUESTIONS = [
    question
    for line in DECISIONS.read_text(encoding="utf-8").splitlines()
    if (question := json.loads(line))["family"] == "smithy"
]
NUMBERS = {"2020": AwsRetryNumbers.OF_2020, "2026": AwsRetryNumbers.OF_2026}


def questions(ask: str) -> list[Any]:
    """Return the questions of one kind, each named by its id."""
    return [pytest.param(question, id=question["id"]) for question in QUESTIONS if question["ask"] == ask]


@pytest.mark.parametrize("question", questions("backoff"))
def test_backoff(question: dict[str, Any]) -> None:
    """The delays of the reference's own tests come out."""
    backoff = ExponentialRetryBackoffStrategy(
        rng=Fixed(question["random"]),
        base=question["base_s"],
        max=question["max_s"],
        jitter=Jitter[question["jitter"]],
    )

    delays = [backoff.compute_next_backoff_delay(attempt) for attempt in question["attempts"]]

    assert question["expect"]["delays_s"] == pytest.approx(delays)


@pytest.mark.parametrize("question", questions("sequence"))
def test_sequence(question: dict[str, Any]) -> None:
    """The quota is left with what the reference leaves."""
    assert "standard" == question["strategy"]
    strategy = StandardRetryStrategy(
        rng=Fixed(question["random"]),
        max_attempts=question["max_attempts"],
        numbers=NUMBERS[question["numbers"]],
        quota_capacity=question["quota_capacity"],
    )
    for operation in question["operations"]:
        delays_of(strategy, operation["responses"])

    assert question["expect"] == {"available": strategy.available_quota()}


def test_every_kind_of_question_is_there() -> None:
    """The file has not shrunk: this many questions of each kind are asked."""
    asked = Counter(question["ask"] for question in QUESTIONS)

    assert {"backoff": 8, "sequence": 4} == asked
