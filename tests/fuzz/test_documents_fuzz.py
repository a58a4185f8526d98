"""Rows from changed documents, on inputs that Hypothesis draws; the profile determines their number."""

from __future__ import annotations

from hypothesis import given

from tests.fuzz.documents import DOCUMENTS, play_rows
from tests.fuzz.target import Attack
from tests.fuzz.test_node_fuzz import attacks


@given(attack=attacks(len(DOCUMENTS)))
def test_any_document(attack: Attack) -> None:
    """For any body that is an object with unrepeated keys, splitter and parser agree about rows, rest and refusal."""
    play_rows(attack)


def test_valid_documents() -> None:
    """For unchanged documents, complete and byte by byte, splitter and parser agree."""
    for scene in range(len(DOCUMENTS)):
        play_rows(Attack(scene, (), b"", ()))
        play_rows(Attack(scene, (), b"", tuple(range(4096))))
