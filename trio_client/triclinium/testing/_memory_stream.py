"""A pair of streams without a network, which behave as sockets do.

Trio has a pair too, in a package that loads pytest where it is installed: too much for a command that starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from operator import index
from types import TracebackType

import trio


def memory_stream_pair(piece_sizes: Sequence[int] = ()) -> tuple[MemoryStream, MemoryStream]:
    """Return two ends; what one sends, the other receives. There is always room.

    Args:
        piece_sizes: how many bytes each end receives at most at a time, in turn; empty for no limit.
    """
    there, back = _Pipe(), _Pipe()
    return MemoryStream(there, back, piece_sizes), MemoryStream(back, there, piece_sizes)


class MemoryStream(trio.abc.HalfCloseableStream):
    """One end of a pair."""

    def __init__(self, outgoing: _Pipe, incoming: _Pipe, piece_sizes: Sequence[int]) -> None:
        self._outgoing = outgoing
        self._incoming = incoming
        self._sizes = cycle(piece_sizes) if piece_sizes else None
        self._sender = _OneTask()
        self._receiver = _OneTask()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Give ``data`` to the other end."""
        with self._sender:
            await trio.lowlevel.checkpoint()
            self._outgoing.check_for_sending()
            self._outgoing.data += data
            self._outgoing.news.unpark_all()

    async def wait_send_all_might_not_block(self) -> None:
        """Return at once."""
        with self._sender:
            await trio.lowlevel.checkpoint()
            self._outgoing.check_for_sending()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return what is there, up to the next piece size."""
        if max_bytes is not None and index(max_bytes) < 1:
            raise ValueError(f"max_bytes={max_bytes} must be at least 1")
        pipe = self._incoming
        with self._receiver:
            await trio.lowlevel.checkpoint()
            while pipe.is_received and not pipe.data and not pipe.has_ended:
                await pipe.news.park()
            if not pipe.is_received:
                raise trio.ClosedResourceError
            return pipe.take(self._next_size(max_bytes))

    async def send_eof(self) -> None:
        """Let the other end read the end."""
        with self._sender:
            self._outgoing.end()
            await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Close both directions; what was not received is lost."""
        self._outgoing.end()
        self._incoming.abandon()
        await trio.lowlevel.checkpoint()

    def _next_size(self, max_bytes: int | None) -> int | None:
        if self._sizes is None:
            return max_bytes
        size = next(self._sizes)
        return size if max_bytes is None else min(size, max_bytes)


class _Pipe:
    """One direction."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.has_ended = False
        """The sending end sends nothing any more."""
        self.is_received = True
        """The receiving end is open."""
        self.news = trio.lowlevel.ParkingLot()

    def check_for_sending(self) -> None:
        """Raise unless bytes may be sent."""
        if self.has_ended:
            raise trio.ClosedResourceError
        if not self.is_received:
            raise trio.BrokenResourceError("the other end is closed")

    def take(self, size: int | None) -> bytes:
        """Return the first bytes and forget them."""
        size = len(self.data) if size is None else size
        taken = bytes(self.data[:size])
        del self.data[:size]
        return taken

    def end(self) -> None:
        """Send nothing any more."""
        self.has_ended = True
        self.news.unpark_all()

    def abandon(self) -> None:
        """Receive nothing any more."""
        self.is_received = False
        self.data.clear()
        self.news.unpark_all()


class _OneTask:
    """Promises that two tasks do not do the same thing at once."""

    def __init__(self) -> None:
        self._is_busy = False

    def __enter__(self) -> None:
        if self._is_busy:
            raise trio.BusyResourceError("another task is at it already")
        self._is_busy = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_busy = False
