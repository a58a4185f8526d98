"""Local servers that are not Couchbase nodes."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

Handler = Callable[[trio.abc.Stream], Awaitable[object]]


@asynccontextmanager
async def listening(handler: Handler, ssl_context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Yield the port of a listener that passes each connection to ``handler``."""

    async def welcome(stream: trio.SocketStream) -> None:
        try:
            await handler(stream if ssl_context is None else trio.SSLStream(stream, ssl_context, server_side=True))
        except (trio.BrokenResourceError, ssl.SSLError):
            pass

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, welcome, [listener])
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def speak_http(stream: trio.abc.Stream) -> None:
    """Respond to any request as a web server does."""
    await stream.receive_some()
    await stream.send_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await stay_silent(stream)


async def speak_text_memcached(stream: trio.abc.Stream) -> None:
    """Respond like a memcached that is limited to the text protocol."""
    await stream.receive_some()
    await stream.send_all(b"ERROR\r\n")
    await stay_silent(stream)


async def refuse_hello(stream: trio.abc.Stream) -> None:
    """Respond to HELLO with the status Unknown command, like a plain memcached."""
    await stream.receive_some()
    await stream.send_all(
        bytes.fromhex("81 1f 0000 00 00 0081 0000000f 00000001 0000000000000000") + b"Unknown command"
    )
    await stay_silent(stream)


async def stay_silent(stream: trio.abc.Stream) -> None:
    """Read without responding."""
    while await stream.receive_some():
        pass


async def hang_up(stream: trio.abc.Stream) -> None:
    """Close the connection after the first bytes. Avoid a reset, which would be a different error."""
    await stream.receive_some()
    assert isinstance(stream, trio.abc.HalfCloseableStream)
    await stream.send_eof()
    await stay_silent(stream)


async def shake_hands(stream: trio.abc.Stream) -> None:
    """Complete the TLS handshake on a TLS listener, and then read without responding."""
    if isinstance(stream, trio.SSLStream):
        await stream.do_handshake()
    await stay_silent(stream)
