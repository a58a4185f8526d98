"""Where one JSON value ends whose bytes arrive in any cut.

Brackets are counted and strings are skipped; nothing else is looked at. Text that is not JSON may get an end as well: a
decoder has to refuse it. Each byte is looked at a bounded number of times, whatever stands there: the patterns are
possessive, so they never go back, and a bracket that closes too far away for them is stepped over alone.
"""

from __future__ import annotations

import re

QUOTE = ord('"')
BACKSLASH = ord("\\")
OPENING = frozenset(b"{[")
VALUE_STARTS = frozenset(b'{["-0123456789tfn')
"""What the first byte of a JSON value can be."""

LEVELS_AT_ONCE = 3
"""Levels of nesting that one match steps over. Those around them are counted in Python."""

DEPTH_AT_ONCE_MIN = 16
"""Minimum nesting depth at which the brackets in that many bytes are counted together. A server may send 64 KiB of
brackets that do not close, and a single bracket takes a microsecond."""

_PLAIN = rb'[^"{}\[\]]*+'
_STRING_REST = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
_STRING = rb'"(?:[^"]*+(?<!\\)"|(?=[^"]*+")' + _STRING_REST + rb'")'
"""A quote without a backslash in front of it ends a string for sure, and a search for quotes alone is ten times as fast as
one that looks at backslashes. That one is made only where a quote follows at all."""


def _balanced(levels: int) -> bytes:
    """Return a pattern of anything in which all strings end, and all brackets close within so many levels."""
    parts = [_STRING]
    if levels:
        parts.append(rb"[{\[]" + _balanced(levels - 1) + rb"[}\]]")
    return _PLAIN + rb"(?:(?:" + rb"|".join(parts) + rb")" + _PLAIN + rb")*+"


_match_balanced = re.compile(_balanced(LEVELS_AT_ONCE), re.DOTALL).match
_match_string_rest = re.compile(_STRING_REST, re.DOTALL).match
_match_scalar = re.compile(rb"[-+.0-9A-Za-z]*+").match


class ValueEnd:
    """Looks for the end of one value after the other.

    A number or a literal ends in front of the first byte that cannot belong to it, so its end is known with the next
    byte.
    """

    __slots__ = ("_depth", "_escaped", "_in_string", "stepped_bytes", "steps")

    def __init__(self) -> None:
        self.steps: int = 0
        """Number of brackets and strings that were skipped one by one."""
        self.stepped_bytes: int = 0
        """Number of bytes that patterns skipped."""
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def begin(self, first: int) -> None:
        """Begin with a value, whose first byte this is; ``go_on`` behind it."""
        self._depth = 1 if first in OPENING else 0
        self._in_string = first == QUOTE
        self._escaped = False

    def go_on(self, data: bytes | bytearray, position: int = 0) -> int:
        """Return the position behind the value; -1 where it goes on in the next piece."""
        size = len(data)
        while True:
            self.steps += 1
            if self._in_string:
                position = self._string_end(data, position)
                if position < 0 or not self._depth:
                    return position
            elif not self._depth:
                position = end_of(_match_scalar(data, position))
                return position if position < size else -1
            start, position = position, end_of(_match_balanced(data, position))
            self.stepped_bytes += position - start
            if position == size:
                return -1
            byte = data[position]
            position += 1
            if byte == QUOTE:
                self._in_string = True
            elif byte in OPENING:
                self._depth += 1
            else:
                self._depth -= 1
                if not self._depth:
                    return position
            if self._depth > DEPTH_AT_ONCE_MIN and not self._in_string:
                position = self._step_within(data, position)

    def _step_within(self, data: bytes | bytearray, position: int) -> int:
        """Count the brackets of the next bytes, too few to close all levels, and return the end of these bytes."""
        end = min(position + self._depth - 1, len(data))
        quote = data.find(QUOTE, position, end)
        end = quote if quote >= 0 else end
        opened = data.count(b"[", position, end) + data.count(b"{", position, end)
        self._depth += opened - data.count(b"]", position, end) - data.count(b"}", position, end)
        return end

    def _string_end(self, data: bytes | bytearray, position: int) -> int:
        """Return the position behind the quote that ends the string; -1 where it goes on."""
        if self._escaped and position < len(data):
            position += 1
            self._escaped = False
        # The two usual cases, without a pattern.
        quote = data.find(QUOTE, position)
        if quote < 0 and data[-1] != BACKSLASH:
            return -1
        if quote > position and data[quote - 1] != BACKSLASH:
            self._in_string = False
            return quote + 1
        start, position = position, end_of(_match_string_rest(data, position))
        self.stepped_bytes += position - start
        if position == len(data):
            return -1
        if data[position] != QUOTE:
            # A backslash is the last byte; what it escapes comes with the next piece.
            self._escaped = True
            return -1
        self._in_string = False
        return position + 1


def end_of(match: re.Match[bytes] | None) -> int:
    """Return where the match of a pattern ends that fits everywhere."""
    assert match is not None
    return match.end()
