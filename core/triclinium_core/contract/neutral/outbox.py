"""Bytes of one stream that a driver has not written yet."""

from __future__ import annotations

from collections import deque

WRITE_SIZE_MAX = 256 * 1024
"""Maximum number of bytes in one write. When a write starts, all its bytes count as handed over: they may arrive."""


class Outbox:
    """Bytes to write, in order, and the number of bytes whose write has started."""

    def __init__(self) -> None:
        self.handed_over: int = 0
        """Number of bytes whose write has started, as in ``StreamLost``. Add bytes that bypass this outbox."""
        self.size: int = 0
        """Number of bytes that wait."""
        self.is_checked: bool = False
        """Whether bytes with ``unless_readable`` wait. If something is readable, close the stream and write nothing."""
        self._pieces: deque[bytes | memoryview] = deque()
        self._checked_at = 0
        self._is_lost = False

    def __bool__(self) -> bool:
        """Return whether bytes wait."""
        return self.size > 0

    def put(self, data: bytes | memoryview, *, unless_readable: bool = False) -> None:
        """Append the bytes of a ``SendBytes``. Ignore them after ``clear``."""
        if not data or self._is_lost:
            return
        if unless_readable:
            self.is_checked, self._checked_at = True, self.handed_over + self.size
        self._pieces.append(data)
        self.size += len(data)

    def peek(self) -> bytes | memoryview:
        """Return the oldest bytes, at most ``WRITE_SIZE_MAX``. They still wait."""
        if len(self._pieces[0]) > WRITE_SIZE_MAX:
            return memoryview(self._pieces[0])[:WRITE_SIZE_MAX]
        pieces = [self._pieces.popleft()]
        size = len(pieces[0])
        while self._pieces and size + len(self._pieces[0]) <= WRITE_SIZE_MAX:
            pieces.append(self._pieces.popleft())
            size += len(pieces[-1])
        self._pieces.appendleft(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        return self._pieces[0]

    def advance(self, size: int) -> None:
        """Count the first ``size`` bytes of ``peek`` as handed over, and remove them."""
        first = self._pieces.popleft()
        if size < len(first):
            self._pieces.appendleft(memoryview(first)[size:])
        self.size -= size
        self.handed_over += size
        # Unchecked bytes may precede the checked ones. The check ends when the first checked byte is taken.
        self.is_checked = self.is_checked and self.handed_over <= self._checked_at

    def take(self) -> bytes | memoryview:
        """Remove and return what ``peek`` returns. All of it counts as handed over."""
        data = self.peek()
        self.advance(len(data))
        return data

    def clear(self) -> None:
        """Drop the waiting bytes and all later ones, because the stream is lost: no bytes may follow the gap."""
        self._pieces.clear()
        self.size = 0
        self.is_checked, self._is_lost = False, True
