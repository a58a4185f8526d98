"""Service that responds over a real socket before it has read the request; the client uses a response that arrives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from tests.rows import rows
from tests.trio_client._services.substitute import client_of
from triclinium import Cluster, errors
from triclinium.testing import Service

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


async def ask(cluster: Cluster, value: str) -> list[object] | type[errors.CouchbaseException]:
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
        (b"200 OK", FAILURE, errors.ParsingFailureException),
        (b"413 Too Large", FAILURE, errors.ParsingFailureException),
    ],
)
async def test_an_early_response_is_used(after: After, status: bytes, body: bytes, outcome: object) -> None:
    """An early response is the result of its request, and the next request does not wait for unsent bytes."""
    service = EarlyService(status, body, after)
    async with client_of(service.serve, Service.QUERY) as cluster:
        for value in (LARGE, LARGE, "small"):
            assert outcome == await ask(cluster, value)
    assert 3 == service.answered


async def test_a_lost_early_response() -> None:
    """If a reset may destroy an early response, the query returns it or raises RequestCanceledException."""
    service = EarlyService(b"200 OK", SUCCESS, reset)
    async with client_of(service.serve, Service.QUERY) as cluster:
        first = await ask(cluster, LARGE)
        second = await ask(cluster, "small")

    assert first in ([1], errors.RequestCanceledException)
    assert second in ([1], errors.RequestCanceledException)
