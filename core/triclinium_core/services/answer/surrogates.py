r"""Escapes of lone surrogates: ``"\ud800"`` is a string by the grammar of JSON, stands for no character, and no decoder takes it.

Source: RFC 8259, sections 7 and 8.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

HALVES_MAX = 4096
"""Escapes of halves of pairs that are looked at in one text, some 5 microseconds for each. A text that no decoder takes and
that has more is not searched any further: it has a lone surrogate behind them, or another fault."""

_search_half = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}").search
_match_low_half = re.compile(rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}").match
_ESCAPE_SIZE = 6
_BLOCK_SIZE = 4096
"""Backslashes that are counted together."""
_HIGH = frozenset(b"89abAB")
"""Third digits of the first half of a pair, as bytes."""
_BACKSLASH = ord("\\")
_STAND_IN = rb"\ufffd"
"""As long as an escape that it replaces."""


class LoneSurrogate(NamedTuple):
    """The first one in a JSON text."""

    offset: int
    """In bytes."""
    escape: str

    def __str__(self) -> str:
        return f"the escape {self.escape} is half of a surrogate pair and stands for no character"


def first_lone_surrogate(text: bytes | bytearray) -> LoneSurrogate | None:
    """Return the first lone surrogate among the escapes of a JSON text; None if the first ``HALVES_MAX`` have none."""
    at = next(_lone(text), None)
    return LoneSurrogate(at, bytes(text[at : at + _ESCAPE_SIZE]).decode()) if at is not None else None


def without_lone_surrogates(text: bytes | bytearray) -> bytes:
    """Return a JSON text of the same length, in which the replacement character stands for each lone surrogate.

    Those behind the first ``HALVES_MAX`` halves stay.
    """
    replaced = bytearray(text)
    for at in _lone(text):
        replaced[at : at + _ESCAPE_SIZE] = _STAND_IN
    return bytes(replaced)


def _lone(text: bytes | bytearray) -> Iterator[int]:
    """Yield the offsets of lone surrogates. No byte is looked at more than a few times: runs of backslashes are disjoint."""
    position = 0
    for _ in range(HALVES_MAX):
        half = _search_half(text, position)
        if half is None:
            return
        at, position = half.start(), half.end()
        if at and text[at - 1] == _BACKSLASH and _backslashes_before(text, at) % 2:
            # This backslash is escaped by the one in front of it, and begins nothing.
            continue
        if text[at + 3] in _HIGH and (low := _match_low_half(text, position)) is not None:
            position = low.end()
        else:
            yield at


def _backslashes_before(text: bytes | bytearray, end: int) -> int:
    """Return the number of backslashes in front of ``end`` without any other byte between."""
    start = end
    while start:
        block = text[max(0, start - _BLOCK_SIZE) : start]
        others = len(block.rstrip(b"\\"))
        start -= len(block) - others
        if others:
            break
    return end - start
