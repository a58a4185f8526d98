"""A service that answers before it has read the request, over a real socket: the answer counts, and nothing hangs."""

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
"""More than sockets buffer."""

After = Callable[[trio.SocketStream], Awaitable[None]]


async def stall(stream: trio.SocketStream) -> None:
    """Read no further, for ever."""
    await trio.sleep_forever()


async def hang_up(stream: trio.SocketStream) -> None:
    """Read no further, and close once the answer had time to arrive."""
    await trio.sleep(0.05)


async def reset(stream: trio.SocketStream) -> None:
    """Close at once, so that the answer may be lost with what was not read."""


async def read_on(stream: trio.SocketStream) -> None:
    """Read all that comes, and answer nothing more."""
    while await stream.receive_some():
        pass


class EarlyService:
    """A query service that answers as soon as it has the head of a request."""

    def __init__(self, status: bytes, body: bytes, after: After) -> None:
        self._answer = b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)
        self._after = after
        self.answered: int = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer the first request of a connection."""
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
            # A client that has its answer may hang up on what the node still does.
            pass
        finally:
            await trio.aclose_forcefully(stream)


class Instead:
    """A connector that takes whoever connects to one port to another."""

    def __init__(self, inner: Connector, ports: dict[int, int]) -> None:
        self._inner = inner
        self._ports = ports

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Connect."""
        return await self._inner.connect(host, self._ports.get(port, port), tls=tls)


@asynccontextmanager
async def client_of(service: EarlyService) -> AsyncIterator[triclinium.Cluster]:
    """Give the block a client that has one connection to this query service, and the test a minute."""
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
    """Return the rows of a query, or how it fails."""
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
async def test_an_answer_that_comes_early(after: After, status: bytes, body: bytes, outcome: object) -> None:
    """It is what the request comes to; the next one does not queue behind what was not read."""
    service = EarlyService(status, body, after)
    async with client_of(service) as cluster:
        for value in (LARGE, LARGE, "small"):
            assert outcome == await ask(cluster, value)
    assert 3 == service.answered


async def test_an_answer_that_is_lost() -> None:
    """The request fails by name, or has its answer; the client goes on."""
    service = EarlyService(b"200 OK", SUCCESS, reset)
    async with client_of(service) as cluster:
        first = await ask(cluster, LARGE)
        second = await ask(cluster, "small")

    assert first in ([1], triclinium.errors.RequestCanceledException)
    assert second in ([1], triclinium.errors.RequestCanceledException)
