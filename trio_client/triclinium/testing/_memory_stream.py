"""Pair of streams that behave like sockets, without a network.

Trio's own pair needs more passes of the loop than a socket, and its package imports pytest if pytest is installed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from itertools import cycle
from operator import index
from types import TracebackType

import trio


def memory_stream_pair(piece_sizes: Sequence[int] = ()) -> tuple[MemoryStream, MemoryStream]:
    """Return two connected ends with unlimited buffers.

    Args:
        piece_sizes: maximum sizes in bytes of the pieces that each end receives, in turn; empty for no limit.
    """
    (there, coming), (back, going) = (trio.open_memory_channel[bytes](math.inf) for _ in range(2))
    return MemoryStream(there, going, piece_sizes), MemoryStream(back, coming, piece_sizes)


class MemoryStream(trio.abc.HalfCloseableStream):
    """One end of a pair of connected streams."""

    def __init__(
        self,
        outgoing: trio.MemorySendChannel[bytes],
        incoming: trio.MemoryReceiveChannel[bytes],
        piece_sizes: Sequence[int],
    ) -> None:
        self._outgoing = outgoing
        self._incoming = incoming
        self._sizes = cycle(piece_sizes) if piece_sizes else None
        self._sender = _OneTask()
        self._receiver = _OneTask()
        self._unread = bytearray()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send ``data`` to the other end."""
        with self._sender:
            await trio.lowlevel.checkpoint()
            self._outgoing.send_nowait(bytes(data))

    async def wait_send_all_might_not_block(self) -> None:
        """Return without waiting. This is a checkpoint."""
        await self.send_all(b"")

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return received bytes, up to the next piece size, or wait for some; empty at the end of the stream."""
        if max_bytes is not None and index(max_bytes) < 1:
            raise ValueError(f"max_bytes={max_bytes} must be at least 1")
        with self._receiver:
            await trio.lowlevel.checkpoint()
            try:
                while not self._take_what_came():
                    self._unread += await self._incoming.receive()
            except trio.EndOfChannel:
                pass
            size = self._next_size(max_bytes)
            taken = bytes(self._unread[:size])
            del self._unread[:size]
            return taken

    async def send_eof(self) -> None:
        """Send the end of the stream to the other end."""
        with self._sender:
            self._outgoing.close()
            await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Close both directions. Unread data is lost."""
        self._outgoing.close()
        self._incoming.close()
        await trio.lowlevel.checkpoint()

    def _take_what_came(self) -> bool:
        """Receive everything that has arrived, and return whether there is unread data."""
        with suppress(trio.WouldBlock):
            while True:
                self._unread += self._incoming.receive_nowait()
        return bool(self._unread)

    def _next_size(self, max_bytes: int | None) -> int | None:
        if self._sizes is None:
            return max_bytes
        size = next(self._sizes)
        return size if max_bytes is None else min(size, max_bytes)


class _OneTask:
    """Context manager that refuses a second task."""

    def __init__(self) -> None:
        self._is_busy = False

    def __enter__(self) -> None:
        if self._is_busy:
            raise trio.BusyResourceError("another task is already using this stream")
        self._is_busy = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_busy = False
