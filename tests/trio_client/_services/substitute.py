"""Client of a cluster in which a server of the test replaces one service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import trio

from triclinium import Cluster, TimeoutOptions, open_cluster
from triclinium.abc import ConnectedStream, Connector
from triclinium.testing import Service, open_tcp_cluster

Serve = Callable[[trio.SocketStream], Awaitable[None]]


class Instead:
    """Connector that replaces one port with another.

    Args:
        waits: whether the first connection to the port waits until bytes have arrived.
    """

    def __init__(self, inner: Connector, port: int, replacement: int, *, waits: bool = False) -> None:
        self._inner = inner
        self._port, self._replacement = port, replacement
        self._waits = waits

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Connect to the port, or to its replacement."""
        if port != self._port:
            return await self._inner.connect(host, port, tls=tls)
        connected = await self._inner.connect(host, self._replacement, tls=tls)
        if self._waits:
            self._waits = False
            assert isinstance(connected.stream, trio.SocketStream)
            await trio.lowlevel.wait_readable(connected.stream.socket)
        return connected


@asynccontextmanager
async def client_of(serve: Serve, service: Service, *, waits: bool = False) -> AsyncIterator[Cluster]:
    """Yield a client with at most one connection to a service, which ``serve`` provides. Fail after a minute."""
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery, open_tcp_cluster() as fake:
            (listener,) = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
            port = fake.node.options.ports(tls=False)[service]
            async with open_cluster(
                fake.connection_string,
                fake.authenticator,
                connector=Instead(fake.connector, port, listener.socket.getsockname()[1], waits=waits),
                timeouts=TimeoutOptions(query=20.0),
                max_http_connections=1,
            ) as cluster:
                yield cluster
            nursery.cancel_scope.cancel()
