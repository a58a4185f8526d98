"""Rows out of bent documents, on inputs that Hypothesis draws; the profile says how many."""

from __future__ import annotations

from hypothesis import given

from tests.fuzz.documents import DOCUMENTS, play_rows
from tests.fuzz.target import Attack
from tests.fuzz.test_node_fuzz import attacks


@given(attack=attacks(len(DOCUMENTS)))
def test_any_document(attack: Attack) -> None:
    """Whatever the body, rows and rest are those that a parser of the whole sees, and what it refuses is refused."""
    play_rows(attack)


def test_honest_documents() -> None:
    """The honest documents, whole and byte by byte, are taken."""
    for scene in range(len(DOCUMENTS)):
        play_rows(Attack(scene, (), b"", ()))
        play_rows(Attack(scene, (), b"", tuple(range(4096))))
