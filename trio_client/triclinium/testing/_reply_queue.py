"""What a node has to say to one client and could not write yet."""

from __future__ import annotations

from collections import deque

import trio


class ReplyQueue:
    """Bytes in, in order; one task takes them out and writes them."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._has_ended = False
        self._writer = trio.lowlevel.ParkingLot()
        self._readers = trio.lowlevel.ParkingLot()

    def put(self, data: bytes) -> None:
        """Add ``data``, unless the end was called."""
        if not self._has_ended:
            self._pieces.append(data)
            self._writer.unpark_all()

    def end(self) -> None:
        """Add nothing any more; what is there will still be taken."""
        self._has_ended = True
        self._writer.unpark_all()

    async def take(self) -> bytes:
        """Return all that has piled up, waiting for some; nothing at the end."""
        while not self._pieces and not self._has_ended:
            await self._writer.park()
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data

    def written(self) -> None:
        """Wake who waits for replies to be written."""
        self._readers.unpark_all()

    async def wait_written(self) -> None:
        """Return once some of what was taken has been written."""
        await self._readers.park()
