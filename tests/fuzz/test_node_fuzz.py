"""The byte targets on inputs that Hypothesis draws; the profile determines their number."""

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
    """Return a strategy that draws attacks on one of ``scenes`` scenes."""
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
    """For any bytes from its peer, the client keeps its invariants and completes each operation by its deadline."""
    play(attack)


@given(attack=ATTACKS)
def test_any_bytes_at_one_connection(attack: Attack) -> None:
    """For any bytes from its peer, a connection returns only documented events and loses no request."""
    play_node(attack)


def test_valid_bytes() -> None:
    """The valid bytes, complete and byte by byte, break no invariant."""
    for scene in range(len(SCENES)):
        play(Attack(scene, (), b"", ()))
        play(Attack(scene, (), b"", tuple(range(2048))))
        play_node(Attack(scene, (), b"", ()))
        play_node(Attack(scene, (), b"", tuple(range(2048))))
