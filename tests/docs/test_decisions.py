"""The page of decisions has every decision that sources, tests and pages name, each with its reason."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import DOCS, ROOT, Decision, decisions_of
from tests.rows import rows

PAGE = DOCS / "explanation" / "decisions.md"
COUNTS = {"C": 38, "D": 89, "A": 20, "S": 23, "R": 20, "T": 9, "F": 11}
"""Number of decisions with each letter."""
WORDS_MAX = 90
"""Maximum number of words of a decision with its reason."""

DECISIONS = list(decisions_of(PAGE))
SOURCE_FOLDERS = ("core/triclinium_core", "trio_client/triclinium", "tests")


@pytest.mark.parametrize("letter", COUNTS)
def test_decisions_are_numbered_in_order(letter: str) -> None:
    """The numbers of the decisions with one letter have no gap, and none is missing at the end."""
    found = [decision.number for decision in DECISIONS if decision.number.startswith(letter)]

    assert [f"{letter}{number}" for number in range(1, COUNTS[letter] + 1)] == found


def test_headings_have_a_number_and_a_title() -> None:
    """No heading of the third level lacks its number or its title, and no two titles are equal."""
    headings = re.findall(r"^### (.*)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert [f"{decision.number} · {decision.title}" for decision in DECISIONS] == headings
    assert len(DECISIONS) == len({decision.title for decision in DECISIONS})


@rows("decision", DECISIONS)
def test_a_decision_is_short_and_has_a_reason(decision: Decision) -> None:
    """The decision and then the reason follow the title; neither is empty, and together they have at most 90 words."""
    assert 2 == len(decision.paragraphs)
    assert decision.words <= WORDS_MAX
    for paragraph, label in zip(decision.paragraphs, ("Decision", "Why"), strict=True):
        assert re.match(rf"\*\*{label}\.\*\* .{{4}}", paragraph)


def test_every_decision_that_is_named_has_a_heading() -> None:
    """A reader can look up each "decision C24" and "decision A3" of sources, tests and pages."""
    files = [path for folder in SOURCE_FOLDERS for path in (ROOT / folder).rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in [*files, *DOCS.rglob("*.md")]]
    named = {
        number
        for text in texts
        for mention in re.findall(r"decisions? ((?:[ACDFRST]\d+(?:, | and | to )?)+)", text)
        for number in re.findall(r"[ACDFRST]\d+", mention)
    }

    assert named
    assert set() == named - {decision.number for decision in DECISIONS}


def test_every_number_in_a_decision_has_a_heading() -> None:
    """Decisions refer only to decisions that are on the page."""
    named = {
        number
        for decision in DECISIONS
        for paragraph in decision.paragraphs
        for number in re.findall(r"\b[ACDFRST][1-9]\d?\b", paragraph)
    }

    assert set() == named - {decision.number for decision in DECISIONS}
