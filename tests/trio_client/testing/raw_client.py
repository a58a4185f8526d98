"""Client that sends single frames to a fake cluster, and bootstraps only on request."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from triclinium.testing import FakeCluster
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame, encode_request
from triclinium_core.kv.wire.frame_buffer import CLIENT_ACCEPTS, FrameBuffer
from triclinium_core.testing.fakes.store.documents import vbucket_of


class RawClient:
    """Client with one connection."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self._buffer = FrameBuffer(CLIENT_ACCEPTS)
        self._frames: list[Frame] = []

    async def hear(self) -> Frame | None:
        """Return the next frame, or None at the end of the stream."""
        while not self._frames:
            data = await self.stream.receive_some()
            if not data:
                return None
            self._frames = self._buffer.receive(bytes(data))
        return self._frames.pop(0)

    async def ask(self, opcode: Opcode, *, key: bytes = b"", value: bytes = b"") -> Frame | None:
        """Return the response to a request."""
        await self.stream.send_all(encode_request(opcode, opaque=1, key=key, value=value))
        return await self.hear()

    async def get_ready(self, *features: HelloFeature) -> None:
        """Negotiate these features, authenticate and select a bucket."""
        await self.ask(Opcode.HELLO, value=struct.pack(f">{len(features)}H", *features))
        await self.ask(Opcode.SASL_AUTH, key=b"PLAIN", value=b"\0Administrator\0password")
        await self.ask(Opcode.SELECT_BUCKET, key=b"default")


def get(key: str, *, opaque: int = 1) -> bytes:
    """Return a request for a document in the default collection, as a connection without collections sends it."""
    return encode_request(Opcode.GET, opaque=opaque, status=vbucket_of(key.encode(), 1024), key=key.encode())


@asynccontextmanager
async def open_raw_client(fake: FakeCluster, index: int = 0) -> AsyncIterator[RawClient]:
    """Yield a connection to one node of the fake cluster."""
    options = fake.nodes[index].options
    connected = await fake.connector.connect(options.host, options.port, tls=False)
    async with connected.stream:
        yield RawClient(connected.stream)
