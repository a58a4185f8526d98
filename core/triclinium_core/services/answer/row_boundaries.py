"""Text between two rows, with which the splitter guesses where the rows of a response end.

The same code writes all rows of a response, so the text between the first two rows probably separates all later rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

ROW_END_SIZE_BYTES = 1024
"""Number of bytes at the end of a row and at the start of the next that may belong to the text between rows.

The longest text is the closing brackets of a row with a quote before them, the separator, and the first name or byte of
the next row.
"""

_match_separator = re.compile(rb"[ \t\r\n]*+,[ \t\r\n]*+").match
_match_first_name = re.compile(rb'\{[ \t\r\n]*+"[^"\\]{0,64}+"').match

_OF_SCALARS = b"-+.0123456789abcdefghijklmnopqrstuvwxyzE"
"""Bytes of numbers and literals: they differ from row to row."""


class RowBoundary(NamedTuple):
    """The text between two rows, with some bytes of both."""

    text: bytes
    row_end: int
    """Offset in the text at which the first row ends."""
    row_start: int
    """Offset in the text at which the second row begins."""


def boundaries_between(encoded: bytearray, start: int, first: memoryview, second: memoryview) -> Sequence[RowBoundary]:
    """Return two boundaries between two rows: a long text, which is rare inside a row, and a short text.

    The short text is more common, both between and inside rows.

    Args:
        encoded: text that contains both rows.
        start: offset of the first row in ``encoded``.
        first: first row.
        second: row after it.
    """
    separator = _match_separator(encoded, start + len(first))
    assert separator is not None, "there is a separator between two rows"
    # Rows may be large: copying whole rows would take longer than everything else.
    end, begin = bytes(first[-ROW_END_SIZE_BYTES:]), bytes(second[:ROW_END_SIZE_BYTES])
    brackets_at = len(end.rstrip(b"}]"))
    closing = end[brackets_at - (end[brackets_at - 1 : brackets_at] == b'"') :]
    name, opening = _match_first_name(begin), begin[:1].strip(_OF_SCALARS)
    return tuple(
        RowBoundary(before + separator[0] + after, len(before), len(before + separator[0]))
        for before, after in ((closing, name[0] if name else opening), (closing[-1:], opening))
    )
