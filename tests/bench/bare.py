"""Baseline that exchanges the same frames over one trio stream, without a client.

It checks no response, retries nothing, and limits nothing. The baseline shows the minimum that trio itself costs.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import outcome
import trio

from tests.bench.servers import BenchServer, TlsServer

HEADER = struct.Struct(">BBHBBHIIQ")
RECEIVE_SIZE = 65_536
GET, SET, SASL_AUTH, SELECT_BUCKET = 0x00, 0x01, 0x21, 0x89
SET_EXTRAS = bytes(8)

Ask = Callable[[int, bytes, bytes], Awaitable[bytes]]
"""Function that sends a request with opcode, key and value, and returns the body of the response."""


def frame_of(opcode: int, key: bytes, value: bytes, opaque: int, vbuckets: int) -> bytes:
    """Return the request that the client would send."""
    extras = SET_EXTRAS if opcode == SET else b""
    size = len(extras) + len(key) + len(value)
    vbucket = 0 if vbuckets == 1 else (binascii.crc32(key) >> 16 & 0x7FFF) % vbuckets
    return HEADER.pack(0x80, opcode, len(key), len(extras), 0, vbucket, size, opaque, 0) + extras + key + value


class _Stream:
    """Stream for a single task, which waits for the response to each request before it sends the next one."""

    def __init__(self, stream: trio.abc.Stream, vbuckets: int) -> None:
        self._stream = stream
        self._vbuckets = vbuckets
        self._received = b""

    async def ask(self, opcode: int, key: bytes, value: bytes) -> bytes:
        await self._stream.send_all(frame_of(opcode, key, value, 1, self._vbuckets))
        received = self._received
        while len(received) < HEADER.size or len(received) < HEADER.size + HEADER.unpack_from(received)[6]:
            received += await self._stream.receive_some(RECEIVE_SIZE)
        end = HEADER.size + HEADER.unpack_from(received)[6]
        self._received = received[end:]
        return received[HEADER.size : end]


class _Loop:
    """Stream for any number of tasks: one task writes their requests, another wakes them with the responses."""

    def __init__(self, stream: trio.abc.Stream, vbuckets: int) -> None:
        self._stream = stream
        self._vbuckets = vbuckets
        self._asked: list[bytes] = []
        self._waiting: dict[int, trio.lowlevel.Task] = {}
        self._opaque = 0
        self._writer: trio.lowlevel.Task | None = None

    async def ask(self, opcode: int, key: bytes, value: bytes) -> bytes:
        self._opaque += 1
        self._asked.append(frame_of(opcode, key, value, self._opaque, self._vbuckets))
        self._waiting[self._opaque] = trio.lowlevel.current_task()
        if self._writer is not None:
            trio.lowlevel.reschedule(self._writer)
            self._writer = None
        body: bytes = await trio.lowlevel.wait_task_rescheduled(_give_up)
        return body

    async def write(self) -> None:
        while True:
            if not self._asked:
                self._writer = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._leave)
            asked, self._asked = self._asked, []
            await self._stream.send_all(b"".join(asked))

    async def read(self) -> None:
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


async def _open(server: BenchServer, tls: TlsServer | None) -> trio.abc.Stream:
    if tls is None:
        return await trio.open_tcp_stream("127.0.0.1", server.port)
    context = tls.client_context()
    stream = await trio.open_ssl_over_tcp_stream("127.0.0.1", tls.port, ssl_context=context, https_compatible=True)
    await stream.do_handshake()
    return stream


@asynccontextmanager
async def _connected(server: BenchServer, tls: TlsServer | None = None) -> AsyncIterator[trio.abc.Stream]:
    async with await _open(server, tls) as stream:
        if server.bucket:
            ask = _Stream(stream, 1).ask
            await ask(SASL_AUTH, b"PLAIN", f"\0{server.username}\0{server.password}".encode())
            await ask(SELECT_BUCKET, server.bucket.encode(), b"")
        yield stream


@asynccontextmanager
async def bare_stream(server: BenchServer) -> AsyncIterator[Ask]:
    """Yield a function that sends the requests of one task."""
    async with _connected(server) as stream:
        yield _Stream(stream, server.vbuckets).ask


@asynccontextmanager
async def bare_loop(server: BenchServer, tls: TlsServer | None = None) -> AsyncIterator[Ask]:
    """Yield a function that sends the requests of any number of tasks."""
    async with _connected(server, tls) as stream, trio.open_nursery() as nursery:
        loop = _Loop(stream, server.vbuckets)
        nursery.start_soon(loop.read)
        nursery.start_soon(loop.write)
        yield loop.ask
        nursery.cancel_scope.cancel()
