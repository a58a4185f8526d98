"""The target on inputs that Hypothesis draws; the profile says how many."""

from __future__ import annotations

from hypothesis import given, strategies as st

from tests.fuzz.scenes import SCENES
from tests.fuzz.target import Attack, Edit, play, play_node

POSITIONS = st.integers(0, 4095)
INTERESTING = st.sampled_from(
    [
        b"",
        b"\x00",
        b"\xff",
        b"\x80",
        b"\x81",
        b"\x18",
        b"\x82",
        b"{",
        b'"',
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x00",
        b"\x86",
        b"\x88",
    ]
)
EDITS = st.builds(Edit, POSITIONS, st.integers(0, 64), st.binary(max_size=8) | INTERESTING)


def attacks(scenes: int) -> st.SearchStrategy[Attack]:
    """Return any attack on one of so many scenes."""
    return st.builds(
        Attack,
        st.integers(0, scenes - 1),
        st.lists(EDITS, max_size=4).map(tuple),
        st.binary(max_size=64),
        st.lists(POSITIONS, max_size=4).map(tuple),
    )


ATTACKS = attacks(len(SCENES))


@given(attack=ATTACKS)
def test_any_bytes(attack: Attack) -> None:
    """Whatever the peer sends, the client stays sound and settles every operation by its deadline."""
    play(attack)


@given(attack=ATTACKS)
def test_any_bytes_at_one_connection(attack: Attack) -> None:
    """Whatever the peer sends, a connection tells documented news only and loses no request."""
    play_node(attack)


def test_honest_bytes() -> None:
    """The honest bytes, whole and byte by byte, break nothing either."""
    for scene in range(len(SCENES)):
        play(Attack(scene, (), b"", ()))
        play(Attack(scene, (), b"", tuple(range(2048))))
        play_node(Attack(scene, (), b"", ()))
        play_node(Attack(scene, (), b"", tuple(range(2048))))
