"""Limits of the logs of a fake node, in entries and in bytes.

A log is a plain list, which tests may read and clear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

E = TypeVar("E")

LOG_SIZE_BYTES_MAX = 16 * 1024 * 1024
"""Maximum size in bytes of the keys, bodies and texts in a log: a few thousand large requests.

A larger log keeps the newest entries up to half of this size, and always the newest entry. This bounds the memory of a
node that runs for days.
"""


class LogLimit(Generic[E]):
    """The limits of one log.

    Args:
        entries_max: maximum number of entries; a full log drops the older half.
        size_of: function that returns the size in bytes of the variable parts of an entry.
    """

    def __init__(self, entries_max: int, size_of: Callable[[E], int]) -> None:
        self._entries_max = entries_max
        self._size_of = size_of
        self._size = 0
        """Upper bound of the size of the log; exact after ``_shorten``."""

    def add(self, log: list[E], entry: E) -> None:
        """Append ``entry``, and drop the oldest entries if the log is too large."""
        if len(log) >= self._entries_max:
            del log[: self._entries_max // 2]
        log.append(entry)
        self._size += self._size_of(entry)
        if self._size > LOG_SIZE_BYTES_MAX:
            self._size = self._shorten(log)

    def _shorten(self, log: list[E]) -> int:
        """Drop the oldest entries until half of the maximum size, or one entry, is left. Return the size left."""
        kept, size = 1, self._size_of(log[-1])
        for entry in reversed(log[:-1]):
            larger = size + self._size_of(entry)
            if larger > LOG_SIZE_BYTES_MAX // 2:
                break
            kept, size = kept + 1, larger
        del log[:-kept]
        return size
