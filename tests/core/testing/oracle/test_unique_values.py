"""Unique values, with which a document's content shows the operations that made it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from tests.rows import rows
from triclinium_core.testing.oracle import unique_values

COUNTS = 4
"""Number of counts, which is small enough to try all combinations."""
SIGNS = tuple(itertools.product((1, -1), repeat=COUNTS))


def counter_of(root: int, applied: Sequence[int], signs: Sequence[int]) -> int:
    """Return the number that a node computes from these counts."""
    values = unique_values.UniqueValues()
    given = [values.counter() for _ in signs]
    return given[root][1] + sum(signs[position] * given[position][0] for position in applied)


def test_fragments_are_given_once() -> None:
    """Each fragment is new and is recognised as a fragment."""
    values = unique_values.UniqueValues()
    given = [values.fragment() for _ in range(12)]

    assert [b"<1>", b"<2>", b"<12>"] == [given[0], given[1], given[11]]
    assert 12 == len({*given})
    assert all(unique_values.is_fragment(fragment) for fragment in given)


@pytest.mark.parametrize("value", [b"", b"1", b"<>", b"<1", b"<a>", b"<1><2>", b" <1>", b"<1>\n"])
def test_invalid_fragments(value: bytes) -> None:
    """An empty or malformed value, two fragments, or a fragment with anything beside it is not a fragment."""
    assert not unique_values.is_fragment(value)


@rows(
    ("data", "message"),
    [
        *((data, "does not consist of") for data in (b"", b"x", b"<1>x", b"x<1>", b"<1>x<2>", b"<1><2", b"\xc3<1>")),
        *((data, "a write twice") for data in (b"<1><1>", b"<2><1><3><2>")),
    ],
)
def test_reading_unknown_content(data: bytes, message: str) -> None:
    """Content that is empty, or has anything beside fragments or the same fragment twice, is unreadable."""
    with pytest.raises(unique_values.Unreadable, match=message):
        unique_values.read_fragments(data)


def test_counters_are_unique_and_limited() -> None:
    """Each of 24 counts has its own delta and initial value, and can be read; the 25th count raises IndexError."""
    values = unique_values.UniqueValues()
    given = []
    while values.has_counters:
        given.append(values.counter())

    assert (1, 1 << 48) == given[0]
    assert (4, 2 << 48) == given[1]
    assert unique_values.COUNTERS_MAX == len({delta for delta, _ in given}) == len({initial for _, initial in given})
    with pytest.raises(IndexError, match="only 24 counts"):
        values.counter()
    assert (23, (*range(23),)) == unpacked(unique_values.read_counter(counter_of(23, range(23), [-1] * 24), [-1] * 24))


def unpacked(read: tuple[int, Sequence[int]]) -> tuple[int, tuple[int, ...]]:
    """Return the result for a counter in a comparable form."""
    return read[0], tuple(read[1])


@rows("signs", SIGNS)
def test_reading_a_counter(signs: Sequence[int]) -> None:
    """Reading a counter gives its creator and all later counts, which add or subtract; none of them may be in it twice."""
    for one in range(COUNTS):
        others = [position for position in range(COUNTS) if position != one]
        for applied in itertools.chain.from_iterable(itertools.combinations(others, size) for size in range(COUNTS)):
            assert (one, applied) == unpacked(unique_values.read_counter(counter_of(one, applied, signs), signs))
            with pytest.raises(unique_values.Unreadable, match="a count twice"):
                unique_values.read_counter(counter_of(0, (*applied, one, one), signs), signs)


@pytest.mark.parametrize(
    "number", [0, 1, 3 << 48, (1 << 48) + 16, (1 << 48) - 16], ids=["none", "no root", "no such root", "more", "less"]
)
def test_reading_an_impossible_number(number: int) -> None:
    """A number without a root, with an unknown root, or with a third count is unreadable."""
    with pytest.raises(unique_values.Unreadable, match="counter 0x"):
        unique_values.read_counter(number, [1, 1])


def test_reading_a_count_with_the_wrong_sign() -> None:
    """A count with the opposite sign is unreadable."""
    assert (1, (0,)) == unpacked(unique_values.read_counter((2 << 48) - 1, [-1, 1]))
    with pytest.raises(unique_values.Unreadable, match="was never made"):
        unique_values.read_counter((2 << 48) + 1, [-1, 1])
    with pytest.raises(unique_values.Unreadable, match="was never made"):
        unique_values.read_counter((2 << 48) - 1, [1, 1])
