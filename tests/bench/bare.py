"""The least that trio can do: the same frames over one socket, and no client around them.

Nothing is checked, retried, bounded or cancelled here. It is the measure of what a client costs, not a client.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import outcome
import trio

HEADER = struct.Struct(">BBHBBHIIQ")
RECEIVE_SIZE = 65_536
GET, SET = 0x00, 0x01
SET_EXTRAS = bytes(8)


def frame_of(opcode: int, key: bytes, value: bytes, opaque: int) -> bytes:
    """Return the request that the client would send."""
    extras = SET_EXTRAS if opcode == SET else b""
    size = len(extras) + len(key) + len(value)
    return HEADER.pack(0x80, opcode, len(key), len(extras), 0, 0, size, opaque, 0) + extras + key + value


class BareLoop:
    """Any number of tasks on one socket: one task sends what all have asked for, another one wakes those answered."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._asked: list[bytes] = []
        self._waiting: dict[int, trio.lowlevel.Task] = {}
        self._opaque = 0
        self._writer: trio.lowlevel.Task | None = None

    async def ask(self, opcode: int, key: bytes, value: bytes = b"") -> bytes:
        """Return the body of the answer."""
        self._opaque += 1
        self._asked.append(frame_of(opcode, key, value, self._opaque))
        self._waiting[self._opaque] = trio.lowlevel.current_task()
        if self._writer is not None:
            trio.lowlevel.reschedule(self._writer)
            self._writer = None
        body: bytes = await trio.lowlevel.wait_task_rescheduled(_give_up)
        return body

    async def write(self) -> None:
        """Send what was asked for, all of it at once."""
        while True:
            if not self._asked:
                self._writer = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._leave)
            asked, self._asked = self._asked, []
            await self._stream.send_all(b"".join(asked))

    async def read(self) -> None:
        """Wake whoever was answered."""
        received = bytearray()
        waiting, unpack = self._waiting, HEADER.unpack_from
        while True:
            received += await self._stream.receive_some(RECEIVE_SIZE)
            start, end = 0, len(received)
            while end - start >= HEADER.size:
                _, _, _, _, _, _, size, opaque, _ = unpack(received, start)
                begin, start = start + HEADER.size, start + HEADER.size + size
                if start > end:
                    start = begin - HEADER.size
                    break
                trio.lowlevel.reschedule(waiting.pop(opaque), outcome.Value(bytes(received[begin:start])))
            del received[:start]

    def _leave(self, _: object) -> trio.lowlevel.Abort:
        self._writer = None
        return trio.lowlevel.Abort.SUCCEEDED


def _give_up(_: object) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.SUCCEEDED


@asynccontextmanager
async def bare_loop(port: int) -> AsyncIterator[BareLoop]:
    """Give the block a loop that is connected."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream, trio.open_nursery() as nursery:
        loop = BareLoop(stream)
        nursery.start_soon(loop.read)
        nursery.start_soon(loop.write)
        yield loop
        nursery.cancel_scope.cancel()


class BareStream:
    """One task on one stream: ask, and wait for the answer."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._received = b""

    async def ask(self, opcode: int, key: bytes, value: bytes = b"") -> bytes:
        """Return the body of the answer."""
        await self._stream.send_all(frame_of(opcode, key, value, 1))
        received = self._received
        while len(received) < HEADER.size or len(received) < HEADER.size + HEADER.unpack_from(received)[6]:
            received += await self._stream.receive_some(RECEIVE_SIZE)
        end = HEADER.size + HEADER.unpack_from(received)[6]
        self._received = received[end:]
        return received[HEADER.size : end]


@asynccontextmanager
async def bare_stream(port: int) -> AsyncIterator[BareStream]:
    """Give the block a stream that is connected."""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        yield BareStream(stream)
