"""Values that are written once, so that the content of a document identifies its writers.

A document is a sequence of fragments such as ``<7>``: the fragment of the store, with fragments appended and prepended.
A counter is a number whose upper bits identify its creator and whose lower bits are digits in base 4, one for each
other count. A digit of 1 (or -1) means that the count was applied once, 2 (or -2) that it was applied twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

COUNTERS_MAX = 24
"""Maximum number of distinguishable counts; a history that needs more is too long to read."""

_DIGIT_BITS = 2
_ROOT_SHIFT = COUNTERS_MAX * _DIGIT_BITS
_FRAGMENT = re.compile(rb"<\d+>")


class Unreadable(ValueError):
    """Exception for content that no sequence of unique writes can produce; the message has the reason."""


class UniqueValues:
    """Source of unique values."""

    def __init__(self) -> None:
        self._fragments = 0
        self._counters = 0

    @property
    def has_counters(self) -> bool:
        """Whether ``counter`` can return another value."""
        return self._counters < COUNTERS_MAX

    def fragment(self) -> bytes:
        """Return a value for a store, an append or a prepend."""
        self._fragments += 1
        return b"<%d>" % self._fragments

    def counter(self) -> tuple[int, int]:
        """Return delta and initial value for a count; raise IndexError if ``has_counters`` is false."""
        if not self.has_counters:
            raise IndexError(f"only {COUNTERS_MAX} counts can be distinguished")
        position = self._counters
        self._counters += 1
        return 1 << position * _DIGIT_BITS, (position + 1) << _ROOT_SHIFT


def is_fragment(value: bytes) -> bool:
    """Return whether ``value`` is one value of ``UniqueValues.fragment``."""
    return _FRAGMENT.fullmatch(value) is not None


def read_fragments(data: bytes) -> Sequence[bytes]:
    """Return the values in a document, in order; raise ``Unreadable`` for other content or a duplicate."""
    fragments = _FRAGMENT.findall(data)
    if b"".join(fragments) != data or not fragments:
        raise Unreadable(f"{data!r} does not consist of written values")
    if len(set(fragments)) < len(fragments):
        raise Unreadable(f"{data!r} contains a write twice")
    return fragments


def read_counter(number: int, signs: Sequence[int]) -> tuple[int, Sequence[int]]:
    """Return the position of the count that created a counter, and the positions of the counts applied since.

    ``signs`` is, by position, 1 for a count that adds and -1 for one that subtracts. Raise ``Unreadable`` if a count
    was applied twice, or if the number is not a result of counting.
    """
    rest, applied = number, []
    for position, sign in enumerate(signs):
        digit = rest >> position * _DIGIT_BITS & 3
        if digit == sign & 3:
            applied.append(position)
            rest -= sign << position * _DIGIT_BITS
        elif digit:
            raise Unreadable(f"counter {number:#x} contains a count twice, or one that was never made")
    root, remainder = divmod(rest, 1 << _ROOT_SHIFT)
    if remainder or not 1 <= root <= len(signs):
        raise Unreadable(f"counter {number:#x} is not a sum of counts")
    return root - 1, applied
