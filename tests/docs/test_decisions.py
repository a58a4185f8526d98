"""The page of decisions carries every row that the sources follow, each with its reason."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import DOCS, ROOT, rows_of
from tests.rows import rows

PAGE = DOCS / "explanation" / "decisions.md"
DECISIONS_COUNT = 38

ROWS = [row for row in rows_of(PAGE) if re.fullmatch(r"[ACDFRST]\d+", row[0])]
SOURCE_FOLDERS = ("core/triclinium_core", "trio_client/triclinium", "tests")


def test_every_decision_has_one_row() -> None:
    """C1 to C38 stand there once each, in order."""
    expected = [f"C{number}" for number in range(1, DECISIONS_COUNT + 1)]

    assert expected == [row[0] for row in ROWS if row[0].startswith("C")]


@pytest.mark.parametrize("letter", ["D", "A", "S", "R", "T", "F"])
def test_rows_are_numbered_in_order(letter: str) -> None:
    """Deviations found during the work, and the decisions of the other families, follow each other without a gap."""
    found = [row[0] for row in ROWS if row[0].startswith(letter)]

    assert [f"{letter}{number}" for number in range(1, len(found) + 1)] == found
    assert found


@rows("row", ROWS)
def test_a_decision_has_a_question_an_answer_and_a_reason(row: list[str]) -> None:
    """No cell is empty: above all not the last, which says why."""
    assert 4 == len(row)
    assert all(len(cell) > 3 for cell in row[1:])


def test_every_decision_that_is_named_has_a_row() -> None:
    """What sources, tests and pages call "decision C24" or "A3" can be looked up."""
    files = [path for folder in SOURCE_FOLDERS for path in (ROOT / folder).rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in [*files, *DOCS.rglob("*.md")]]
    named = {
        number
        for text in texts
        for mention in re.findall(r"decisions? ((?:[ACDFRST]\d+(?:, | and | to )?)+)", text)
        for number in re.findall(r"[ACDFRST]\d+", mention)
    }

    assert named
    assert set() == named - {row[0] for row in ROWS}
