"""Service that responds over a real socket before it has read the request; the client uses the response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

import triclinium
from tests.rows import rows
from triclinium import errors
from triclinium.abc import ConnectedStream, Connector
from triclinium.testing import Service, open_tcp_cluster

SUCCESS = b'{"results":[1],"status":"success"}'
FAILURE = b'{"results":[],"errors":[{"code":3000,"msg":"syntax error"}],"status":"fatal"}'
LARGE = "x" * 20_000_000
"""Value that is larger than the buffers of sockets."""

After = Callable[[trio.SocketStream], Awaitable[None]]


async def stall(stream: trio.SocketStream) -> None:
    """Read nothing more, and keep the connection open."""
    await trio.sleep_forever()


async def hang_up(stream: trio.SocketStream) -> None:
    """Read nothing more, and close the connection after the response has had time to arrive."""
    await trio.sleep(0.05)


async def reset(stream: trio.SocketStream) -> None:
    """Close immediately, so that the response may be lost with the unread bytes."""


async def read_on(stream: trio.SocketStream) -> None:
    """Read everything that arrives, without another response."""
    while await stream.receive_some():
        pass


class EarlyService:
    """Query service that responds as soon as it has the head of a request."""

    def __init__(self, status: bytes, body: bytes, after: After) -> None:
        self._answer = b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)
        self._after = after
        self.answered: int = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        """Respond to the first request of a connection."""
        try:
            head = b""
            while b"\r\n\r\n" not in head:
                head += (data := await stream.receive_some(1000))
                if not data:
                    return
            await stream.send_all(self._answer)
            self.answered += 1
            await self._after(stream)
        except trio.BrokenResourceError:
            # The client may close the connection when it has the complete response.
            pass
        finally:
            await trio.aclose_forcefully(stream)


class Instead:
    """Connector that replaces one port with another."""

    def __init__(self, inner: Connector, ports: dict[int, int]) -> None:
        self._inner = inner
        self._ports = ports

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Connect to the replaced port."""
        return await self._inner.connect(host, self._ports.get(port, port), tls=tls)


@asynccontextmanager
async def client_of(service: EarlyService) -> AsyncIterator[triclinium.Cluster]:
    """Yield a client with one connection to this query service. Fail after a minute."""
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery, open_tcp_cluster() as fake:
            (listener,) = await nursery.start(partial(trio.serve_tcp, service.serve, 0, host="127.0.0.1"))
            port = fake.node.options.ports(tls=False)[Service.QUERY]
            async with triclinium.open_cluster(
                fake.connection_string,
                fake.authenticator,
                connector=Instead(fake.connector, {port: listener.socket.getsockname()[1]}),
                timeouts=triclinium.TimeoutOptions(query=20.0),
                max_http_connections=1,
            ) as cluster:
                yield cluster
            nursery.cancel_scope.cancel()


async def ask(cluster: triclinium.Cluster, value: str) -> list[object] | type[errors.CouchbaseException]:
    """Return the rows of a query, or the type of its exception."""
    try:
        async with cluster.query("SELECT $1", value) as result:
            return await result.rows()
    except errors.CouchbaseException as error:
        return type(error)


@rows("after", [stall, hang_up, read_on])
@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (b"200 OK", SUCCESS, [1]),
        (b"200 OK", FAILURE, triclinium.errors.ParsingFailureException),
        (b"413 Too Large", FAILURE, triclinium.errors.ParsingFailureException),
    ],
)
async def test_an_early_response_is_used(after: After, status: bytes, body: bytes, outcome: object) -> None:
    """An early response is the result of its request, and the next request does not wait for unsent bytes."""
    service = EarlyService(status, body, after)
    async with client_of(service) as cluster:
        for value in (LARGE, LARGE, "small"):
            assert outcome == await ask(cluster, value)
    assert 3 == service.answered


async def test_a_lost_early_response() -> None:
    """If a reset may destroy an early response, the query returns it or raises RequestCanceledException."""
    service = EarlyService(b"200 OK", SUCCESS, reset)
    async with client_of(service) as cluster:
        first = await ask(cluster, LARGE)
        second = await ask(cluster, "small")

    assert first in ([1], triclinium.errors.RequestCanceledException)
    assert second in ([1], triclinium.errors.RequestCanceledException)
