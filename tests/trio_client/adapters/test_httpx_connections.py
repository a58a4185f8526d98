"""Retries inside httpx and httpx2 clients over real connections, of which none may leak. No result depends on time."""

from __future__ import annotations

import importlib
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import ModuleType
from typing import Any

import pytest
import trio

from tests.trio_client.adapters.http_server import HangUpHttp, HttpReply, HttpServer, HttpStep, Silence, serving
from triclinium import StandardRetryStrategy, attempts, retry
from triclinium.adapters.http_transport import ATTEMPTS
from triclinium.retries import RetryReport, RetryScheduled, attempts_of
from triclinium_core.retry.smithy import ExponentialRetryBackoffStrategy

pytestmark = pytest.mark.native

SECONDS_MAX = 60
"""Seconds after which a test counts as hanging."""

A_WHILE = (("retry-after", "10"),)
"""Header with a delay that is longer than a test takes, and shorter than its limit."""


def at_once() -> StandardRetryStrategy:
    """Return a strategy with three attempts and delays of at most a millisecond, unless the server requests more."""
    backoff = ExponentialRetryBackoffStrategy(rng=random.Random(7), base=0.0, max=0.001)
    return StandardRetryStrategy(quota_capacity=10_000, backoff=backoff, throttling_backoff=backoff)


@pytest.fixture(params=["httpx", "httpx2"])
def httpx(request: pytest.FixtureRequest) -> ModuleType:
    """Return httpx or httpx2. Each test runs with both libraries."""
    return importlib.import_module(request.param)


OpenClient = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture
def client_with_one_connection(httpx: ModuleType) -> OpenClient:
    """Return a function that opens a client with one connection and a short pool timeout, so that a leak shows soon."""
    adapter = importlib.import_module(f"triclinium.adapters.{httpx.__name__}")

    @asynccontextmanager
    async def opened(*hooks: object) -> AsyncIterator[object]:
        inner = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=1))
        transport = adapter.RetryTransport(inner, strategy=at_once(), hooks=hooks)
        timeout = httpx.Timeout(SECONDS_MAX, pool=5.0)
        with trio.fail_after(SECONDS_MAX):
            async with httpx.AsyncClient(transport=transport, timeout=timeout) as client:
                yield client

    return opened


async def test_connections_do_not_leak(client_with_one_connection: OpenClient) -> None:
    """A hundred retried responses with unread bodies leave the only connection free."""
    script = [HttpReply(503, b"x" * 100_000), HttpReply(429), HttpReply(200)] * 50
    async with serving(*script) as server, client_with_one_connection() as client:
        for _ in range(50):
            response = await client.get(server.url)
            assert (200, b"welcome") == (response.status_code, response.content)

    assert 150 == len(server.received)


async def test_the_last_answer_can_be_read(client_with_one_connection: OpenClient) -> None:
    """If all attempts fail, the last response can be read or streamed unchanged, and then releases its connection."""
    async with (
        serving(*[HttpReply(503, b"sorry")] * 6, HttpReply(200)) as server,
        client_with_one_connection() as client,
    ):
        read = await client.get(server.url)
        async with client.stream("GET", server.url) as streamed:
            parts = [part async for part in streamed.aiter_raw()]
        good = await client.get(server.url)

    assert (503, b"sorry", b"sorry", 200) == (read.status_code, read.content, b"".join(parts), good.status_code)
    assert 3 == len(read.extensions[ATTEMPTS])


async def test_others_use_the_connection_during_the_wait(client_with_one_connection: OpenClient) -> None:
    """While a request waits for its server's delay, the only connection serves another request."""
    waiting = trio.Event()

    def note(report: RetryReport) -> None:
        assert isinstance(report, RetryScheduled)
        waiting.set()

    async with (
        serving(HttpReply(503, headers=A_WHILE), HttpReply(200)) as server,
        client_with_one_connection(note) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.get, server.url)
        await waiting.wait()
        response = await client.get(server.url)
        nursery.cancel_scope.cancel()

    assert 200 == response.status_code
    assert 2 == len(server.received)


async def test_an_endless_response_is_not_read(client_with_one_connection: OpenClient) -> None:
    """The body of a retried response is not read, even if it never arrives."""
    async with serving(HttpReply(503, stalls=True), HttpReply(200)) as server, client_with_one_connection() as client:
        response = await client.get(server.url)

    assert (200, 2) == (response.status_code, server.connections)


@pytest.mark.parametrize(("expected", "method"), [(2, "PUT"), (1, "POST")])
async def test_a_server_that_closes_the_connection(
    httpx: ModuleType, client_with_one_connection: OpenClient, expected: int, method: str
) -> None:
    """If the server closes the connection without a response, only an idempotent request is retried, with its body."""
    async with serving(HangUpHttp(), HttpReply(200)) as server, client_with_one_connection() as client:
        try:
            response = await client.request(method, server.url, content=b"order")
            assert 200 == response.status_code
        except httpx.RemoteProtocolError as error:
            assert 1 == len(attempts_of(error))

    assert [(method, b"order")] * expected == server.received


async def test_a_server_that_is_silent(httpx: ModuleType, client_with_one_connection: OpenClient) -> None:
    """The timeouts of httpx apply to each attempt, and an attempt that times out is retried."""
    limits: dict[str, float] = {}

    def be_patient(report: RetryReport) -> None:
        # Only the first attempt must time out.
        limits["read"] = SECONDS_MAX

    async with serving(Silence(), HttpReply(200)) as server, client_with_one_connection(be_patient) as client:
        request = client.build_request("GET", server.url, timeout=httpx.Timeout(SECONDS_MAX, read=0.05))
        limits = request.extensions["timeout"]
        response = await client.send(request)

    (record,) = response.extensions[ATTEMPTS]
    assert isinstance(record.error, httpx.ReadTimeout)
    assert 200 == response.status_code


async def test_a_response_that_breaks_off(httpx: ModuleType, client_with_one_connection: OpenClient) -> None:
    """An error while the body is read is raised to the reader and is not retried."""
    async with serving(HttpReply(200, b"x" * 1000, body_sent=10)) as server, client_with_one_connection() as client:
        with pytest.raises(httpx.RemoteProtocolError, match="without sending complete message body"):
            await client.get(server.url)

    assert 1 == len(server.received)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_refused_connection_is_retried(
    httpx: ModuleType, client_with_one_connection: OpenClient, method: str
) -> None:
    """A request whose connection is refused was not sent, so it is retried for any method, until a server listens."""
    server = HttpServer([HttpReply(200)])
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
        async with trio.open_nursery() as nursery:

            def listen(report: RetryReport) -> None:
                assert isinstance(report, RetryScheduled)
                assert isinstance(report.error, httpx.ConnectError)
                bound.listen()
                listener = trio.SocketListener(trio.socket.from_stdlib_socket(bound))
                nursery.start_soon(trio.serve_listeners, server.serve, [listener])

            async with client_with_one_connection(listen) as client:
                response = await client.request(method, url, content=b"order")
            nursery.cancel_scope.cancel()

    assert (200, [(method, b"order")]) == (response.status_code, server.received)


async def test_a_pool_timeout_is_retried(httpx: ModuleType, client_with_one_connection: OpenClient) -> None:
    """A request that gets no connection before the pool timeout was not sent, so it is retried for any method."""
    async with (
        serving(HttpReply(200, stalls=True), HttpReply(200)) as server,
        client_with_one_connection() as client,
        client.stream("GET", server.url),
    ):
        timeout = httpx.Timeout(SECONDS_MAX, pool=0.02)
        with pytest.raises(httpx.PoolTimeout) as caught:
            await client.post(server.url, content=b"order", timeout=timeout)

    assert 3 == len(attempts_of(caught.value))
    assert [("GET", b"")] == server.received


async def test_cancelled_requests_leave_no_connection(client_with_one_connection: OpenClient) -> None:
    """If a request is cancelled while waiting for a response or a delay, the only connection is free afterwards."""
    script: list[HttpStep] = [Silence(), HttpReply(503, headers=A_WHILE), HttpReply(200)]
    async with serving(*script) as server, client_with_one_connection() as client:
        for count in (1, 2):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.get, server.url)
                await server.wait_received(count)
                nursery.cancel_scope.cancel()
        response = await client.get(server.url)

    assert 200 == response.status_code


async def test_around_any_client(httpx: ModuleType) -> None:
    """``attempts`` and ``retry`` around an ordinary client retry the exceptions of httpx."""
    quota = at_once()
    async with (
        serving(HangUpHttp(), HttpReply(200), HangUpHttp(), HangUpHttp(), HttpReply(200)) as server,
        httpx.AsyncClient() as client,
    ):

        async def fetch(url: str) -> bytes:
            response = await client.get(url)
            content: bytes = response.content
            return content

        response = httpx.Response(500)
        with trio.fail_after(SECONDS_MAX):
            async for attempt in attempts(quota, on=httpx.TransportError):
                with attempt:
                    response = await client.get(server.url)
            result = await retry(fetch, server.url, strategy=quota, on=httpx.TransportError)

    assert (2, b"welcome", b"welcome") == (attempt.number, response.content, result)
    # The call had two retries. Its success returned the tokens of the second one only.
    assert (5, 10_000 - 14) == (len(server.received), quota.available_quota())
