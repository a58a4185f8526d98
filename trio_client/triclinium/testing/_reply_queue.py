"""What a node has to say to one client and could not write yet."""

from __future__ import annotations

from collections import deque

import trio

UNSENT_SIZE_MAX = 4 * 1024 * 1024
"""Bytes of unsent replies from which on a client's requests are not read: one that sends and never reads must not fill
the memory. A single reply may be larger."""


class ReplyQueue:
    """Bytes in, in order; one task takes them out and writes them."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._has_ended = False
        self._writer = trio.lowlevel.ParkingLot()
        self._readers = trio.lowlevel.ParkingLot()

    def put(self, data: bytes) -> None:
        """Add ``data``, unless the end was called."""
        if not self._has_ended:
            self._pieces.append(data)
            self._size += len(data)
            self._writer.unpark_all()

    def end(self) -> None:
        """Add nothing any more; what is there will still be taken."""
        self._has_ended = True
        self._writer.unpark_all()

    def discard(self) -> None:
        """Forget what is there and what will come: nobody reads it."""
        self.end()
        self._pieces.clear()
        self._size = 0
        self._readers.unpark_all()

    async def take(self) -> bytes:
        """Return all that has piled up, waiting for some; nothing at the end."""
        while not self._pieces and not self._has_ended:
            await self._writer.park()
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data

    def written(self, data: bytes) -> None:
        """Note that ``data``, which was taken, has been written."""
        self._size -= len(data)
        self._readers.unpark_all()

    async def wait_for_room(self) -> None:
        """Return once so little is unsent that another request may be read."""
        while self._size > UNSENT_SIZE_MAX:
            await self._readers.park()
