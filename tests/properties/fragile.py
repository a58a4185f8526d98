"""Streams that a test breaks on demand, in the way that network streams break."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import trio

from triclinium.abc import ConnectedStream, Connector


class FragileStream(trio.abc.Stream):
    """Stream to a node that a test can break, even in the middle of a write.

    Args:
        inner: stream that carries the bytes.
        broke: function to call when the stream breaks.
    """

    def __init__(self, inner: trio.abc.Stream, broke: Callable[[], None]) -> None:
        self._inner = inner
        self._broke = broke
        self._allowance: int | None = None
        self._reading = trio.CancelScope()
        self.is_broken = False
        self.is_closed = False

    def cut_off(self, after_bytes: int | None) -> None:
        """Break the stream after ``after_bytes`` more bytes to the node. None means that it does not break."""
        self._allowance = after_bytes
        if after_bytes == 0:
            self._break()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send ``data``, or only the bytes before the cut, and then raise."""
        allowance = self._allowance
        if self.is_broken or (allowance is not None and allowance < len(data)):
            if not self.is_broken:
                await self._inner.send_all(bytes(data)[:allowance])
                self._break()
            await trio.lowlevel.checkpoint()
            raise trio.BrokenResourceError("the stream is cut off")
        await self._inner.send_all(data)
        if self._allowance is not None:
            self._allowance -= len(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the inner stream can send."""
        await self._inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Return received bytes, or raise if the stream is broken."""
        if not self.is_broken:
            with trio.CancelScope() as self._reading:
                return await self._inner.receive_some(max_bytes)
        await trio.lowlevel.checkpoint()
        raise trio.BrokenResourceError("the stream is cut off")

    async def aclose(self) -> None:
        """Close the inner stream."""
        self.is_closed = True
        await self._inner.aclose()

    def _break(self) -> None:
        self.is_broken = True
        self._broke()
        self._reading.cancel()


class FragileConnector:
    """Connector that wraps another connector and remembers the streams."""

    def __init__(self, inner: Connector, broke: Callable[[], None]) -> None:
        self._inner = inner
        self._broke = broke
        self._streams: list[FragileStream] = []

    @property
    def open_streams(self) -> Sequence[FragileStream]:
        """Streams that the client has not closed yet."""
        self._streams = [stream for stream in self._streams if not stream.is_closed]
        return self._streams

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Connect with the wrapped connector. Return a stream that a test can break."""
        connected = await self._inner.connect(host, port, tls=tls)
        stream = FragileStream(connected.stream, self._broke)
        self._streams.append(stream)
        return replace(connected, stream=stream)
