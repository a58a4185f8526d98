"""Boundaries: the text between two rows, by which the splitter guesses where rows end."""

from __future__ import annotations

import pytest

from triclinium_core.services.answer.row_boundaries import RowBoundary, boundaries_between


@pytest.mark.parametrize(
    ("first", "separator", "second", "long", "short"),
    [
        (b'{"a":1}', b",", b'{"a":2}', RowBoundary(b'},{"a"', 1, 2), RowBoundary(b"},{", 1, 2)),
        (b'{"a":"b"}', b", ", b'{"a":"c"}', RowBoundary(b'"}, {"a"', 2, 4), RowBoundary(b"}, {", 1, 3)),
        (b"[[1]]", b" ,", b"[[2]]", RowBoundary(b"]] ,[", 2, 4), RowBoundary(b"] ,[", 1, 3)),
        (b"17", b",", b"18", RowBoundary(b",", 0, 1), RowBoundary(b",", 0, 1)),
    ],
)
def test_boundaries(first: bytes, separator: bytes, second: bytes, long: RowBoundary, short: RowBoundary) -> None:
    """A long boundary has all closing brackets and the first name; a short one has at most one byte of each row."""
    encoded = bytearray(b"[" + first + separator + second)

    assert (long, short) == boundaries_between(encoded, 1, memoryview(first), memoryview(second))
