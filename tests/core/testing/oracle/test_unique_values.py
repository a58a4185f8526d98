"""UniqueValues: from what a document holds, one reads which operations made it; what they cannot have made is unreadable."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from tests.rows import rows
from triclinium_core.testing.oracle import unique_values

COUNTS = 4
"""Few enough to go through everything that they can make."""
SIGNS = tuple(itertools.product((1, -1), repeat=COUNTS))


def counter_of(root: int, applied: Sequence[int], signs: Sequence[int]) -> int:
    """Return the number that these counts make, as a node computes it."""
    values = unique_values.UniqueValues()
    given = [values.counter() for _ in signs]
    return given[root][1] + sum(signs[position] * given[position][0] for position in applied)


def test_fragments_are_given_once() -> None:
    """Each is new, and is recognised."""
    values = unique_values.UniqueValues()
    given = [values.fragment() for _ in range(12)]

    assert [b"<1>", b"<2>", b"<12>"] == [given[0], given[1], given[11]]
    assert 12 == len({*given})
    assert all(unique_values.is_fragment(fragment) for fragment in given)


@pytest.mark.parametrize("value", [b"", b"1", b"<>", b"<1", b"<a>", b"<1><2>", b" <1>", b"<1>\n"])
def test_what_is_no_fragment(value: bytes) -> None:
    """One value is a fragment; nothing, two, or something beside it is not."""
    assert not unique_values.is_fragment(value)


@pytest.mark.parametrize("data", [b"", b"x", b"<1>x", b"x<1>", b"<1>x<2>", b"<1><2", b"\xc3<1>"])
def test_reading_what_nobody_wrote(data: bytes) -> None:
    """Anything beside values, or nothing at all, is not what was written."""
    with pytest.raises(unique_values.Unreadable, match="is not what was written"):
        unique_values.read_fragments(data)


@pytest.mark.parametrize("data", [b"<1><1>", b"<2><1><3><2>"])
def test_reading_a_write_twice(data: bytes) -> None:
    """A value is given once, so it cannot stand twice."""
    with pytest.raises(unique_values.Unreadable, match="has a write twice"):
        unique_values.read_fragments(data)


def test_counters_are_given_once_and_run_out() -> None:
    """Each count has a delta and an initial value of its own, as many as can be told apart."""
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
    """Return what was read of a counter so that it can be compared."""
    return read[0], tuple(read[1])


@rows("signs", SIGNS)
def test_reading_a_counter(signs: Sequence[int]) -> None:
    """Whoever created it and whoever counted since is read, whatever adds and whatever subtracts."""
    for root in range(COUNTS):
        others = [position for position in range(COUNTS) if position != root]
        for applied in itertools.chain.from_iterable(itertools.combinations(others, size) for size in range(COUNTS)):
            assert (root, applied) == unpacked(unique_values.read_counter(counter_of(root, applied, signs), signs))


@rows("signs", SIGNS)
def test_reading_a_count_twice(signs: Sequence[int]) -> None:
    """A count that was applied twice never looks like anything else, whoever counted beside it."""
    for twice in range(COUNTS):
        others = [position for position in range(COUNTS) if position != twice]
        for applied in itertools.chain.from_iterable(itertools.combinations(others, size) for size in range(COUNTS)):
            with pytest.raises(unique_values.Unreadable, match="has a count twice, or one that was never made"):
                unique_values.read_counter(counter_of(0, (*applied, twice, twice), signs), signs)


@pytest.mark.parametrize(
    "number", [0, 1, 3 << 48, (1 << 48) + 16, (1 << 48) - 16], ids=["none", "no root", "no such root", "more", "less"]
)
def test_reading_what_counting_cannot_make(number: int) -> None:
    """Two counts that add make no number without a root, with a root that was not given, or with a third count."""
    with pytest.raises(unique_values.Unreadable, match="cannot have come about by counting"):
        unique_values.read_counter(number, [1, 1])


def test_reading_a_count_with_the_wrong_sign() -> None:
    """A count that subtracts is no count that adds."""
    assert (1, (0,)) == unpacked(unique_values.read_counter((2 << 48) - 1, [-1, 1]))
    with pytest.raises(unique_values.Unreadable, match="was never made"):
        unique_values.read_counter((2 << 48) + 1, [-1, 1])
    with pytest.raises(unique_values.Unreadable, match="was never made"):
        unique_values.read_counter((2 << 48) - 1, [1, 1])
