"""Server of the control API on a local port, for tests in any language."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio

from triclinium_core.testing import FakeNodes
from triclinium_core.testing.fakes.control.api import ControlApi
from triclinium_core.testing.fakes.control.connection import ControlConnection

HOST = "127.0.0.1"
"""Address that the API listens on; other machines cannot reach it."""
HOST_NAMES = (HOST, "localhost")
"""Names of ``HOST`` in the ``Host`` header of a request."""

CONNECTIONS_MAX = 32
"""Maximum number of connections; further ones are closed immediately."""
REQUEST_SECONDS = 10.0
"""Time limit in seconds for a request and its response."""
LINGER_SECONDS = 0.5
"""Time limit in seconds for a client to close its connection after the response."""
HTTP_PORT = 80
"""Port that clients omit from ``Host``."""
READ_SIZE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Control:
    """Address of the control API, and the token that it requires."""

    url: str
    token: str


@asynccontextmanager
async def open_control(nodes: FakeNodes, *, token: str, seed: int, port: int) -> AsyncIterator[Control]:
    """Serve the control API during the block.

    Args:
        nodes: the nodes that the API controls.
        token: token that requests need.
        seed: seed of the randomness of the nodes.
        port: port to listen on; 0 picks a free one.

    Raises:
        OSError: the port is in use, or the user may not use it.

    Cancellation: closes all connections.
    """
    (listener,) = await trio.open_tcp_listeners(port, host=HOST)
    async with listener, trio.open_nursery() as nursery:
        chosen = listener.socket.getsockname()[1]
        api = ControlApi(nodes, token=token, seed=seed, hosts=_hosts(chosen))
        limit = trio.CapacityLimiter(CONNECTIONS_MAX)

        async def welcome(stream: trio.SocketStream) -> None:
            async with stream:
                try:
                    limit.acquire_on_behalf_of_nowait(stream)
                except trio.WouldBlock:
                    return
                try:
                    with trio.move_on_after(REQUEST_SECONDS):
                        await _serve(stream, ControlConnection(api))
                finally:
                    limit.release_on_behalf_of(stream)

        nursery.start_soon(trio.serve_listeners, welcome, [listener])
        yield Control(f"http://{HOST}:{chosen}", token)
        nursery.cancel_scope.cancel()


def _hosts(port: int) -> list[str]:
    """Return the values of ``Host`` that name the API at a port."""
    hosts = [f"{name}:{port}" for name in HOST_NAMES]
    return hosts + list(HOST_NAMES) if port == HTTP_PORT else hosts


async def _serve(stream: trio.SocketStream, connection: ControlConnection) -> None:
    """Serve one request. A client that disconnects gets no response."""
    try:
        while not connection.is_over:
            answer = connection.receive(bytes(await stream.receive_some(READ_SIZE)))
            if answer:
                await stream.send_all(answer)
        await stream.send_eof()
        # If the client is still sending, an immediate close would reset the connection, and could lose the response.
        with trio.move_on_after(LINGER_SECONDS):
            while await stream.receive_some(READ_SIZE):
                pass
    except trio.BrokenResourceError:
        pass
