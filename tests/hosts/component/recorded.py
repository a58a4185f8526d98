"""Recorded questions, and the answers of the core in this process."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.hosts.folders import ROOT
from triclinium_core.shown import json_text
from triclinium_core.tools.vectors.questions import answer, clauses

DATA = ROOT / "tests" / "data"
QUESTIONS: Sequence[str] = [
    line
    for name in ("decisions.jsonl", "failures.jsonl")
    for line in (DATA / name).read_text(encoding="utf-8").splitlines()
]
"""Lines with a question and its expected answer."""


def native_answers() -> list[tuple[str, Sequence[str]]]:
    """Return the answer of the core to each question, with its clauses."""
    return [(json_text(answer(question)), clauses(question)) for question in map(json.loads, QUESTIONS)]
