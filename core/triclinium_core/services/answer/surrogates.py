r"""Escapes of lone surrogates, such as ``"\ud800"``.

The grammar of JSON accepts such a string, but the escape represents no character, and msgspec refuses it.

Source: RFC 8259, sections 7 and 8.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

HALVES_MAX = 4096
"""Maximum number of surrogate escapes or pairs that are examined in one text, at some 5 microseconds each. If msgspec
refuses a text with more of them, the text has a lone surrogate among or after them, or another fault."""

_search_half = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}").search
_match_low_half = re.compile(rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}").match
_ESCAPE_SIZE = 6
_BLOCK_SIZE = 4096
"""Number of bytes that are searched for backslashes at a time."""
_HIGH = frozenset(b"89abAB")
"""Second hexadecimal digits of a high surrogate, as bytes."""
_BACKSLASH = ord("\\")
_STAND_IN = rb"\ufffd"
"""Escape of the replacement character, as long as the escape that it replaces."""


class LoneSurrogate(NamedTuple):
    """First lone surrogate in a JSON text."""

    offset: int
    """Offset in bytes."""
    escape: str

    def __str__(self) -> str:
        return f"the escape {self.escape} is half of a surrogate pair, which is not a character"


def first_lone_surrogate(text: bytes | bytearray) -> LoneSurrogate | None:
    """Return the first lone surrogate among the first ``HALVES_MAX`` escapes or pairs of a JSON text, or None."""
    at = next(_lone(text), None)
    return LoneSurrogate(at, bytes(text[at : at + _ESCAPE_SIZE]).decode()) if at is not None else None


def without_lone_surrogates(text: bytes | bytearray) -> bytes:
    """Return a JSON text of the same length, with the replacement character for each lone surrogate.

    Lone surrogates after the first ``HALVES_MAX`` surrogate escapes or pairs remain.
    """
    replaced = bytearray(text)
    for at in _lone(text):
        replaced[at : at + _ESCAPE_SIZE] = _STAND_IN
    return bytes(replaced)


def _lone(text: bytes | bytearray) -> Iterator[int]:
    """Yield the offsets of lone surrogates. Read no byte more than a few times: runs of backslashes are disjoint."""
    position = 0
    for _ in range(HALVES_MAX):
        half = _search_half(text, position)
        if half is None:
            return
        at, position = half.start(), half.end()
        if at and text[at - 1] == _BACKSLASH and _backslashes_before(text, at) % 2:
            # The backslash at ``at`` is itself escaped, so it does not begin an escape.
            continue
        if text[at + 3] in _HIGH and (low := _match_low_half(text, position)) is not None:
            position = low.end()
        else:
            yield at


def _backslashes_before(text: bytes | bytearray, end: int) -> int:
    """Return the number of consecutive backslashes immediately before ``end``."""
    start = end
    while start:
        block = text[max(0, start - _BLOCK_SIZE) : start]
        others = len(block.rstrip(b"\\"))
        start -= len(block) - others
        if others:
            break
    return end - start
