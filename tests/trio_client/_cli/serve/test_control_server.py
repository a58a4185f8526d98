"""Control API of ``triclinium serve`` on a real port."""

from __future__ import annotations

import math
import re

import httpx
import pytest
import trio

from tests.rows import rows
from triclinium._cli.serve import control_server
from triclinium._cli.serve.control_server import Control, open_control
from triclinium.testing import FakeNodes

REQUEST = b"GET /state HTTP/1.1\r\nhost: %b\r\nauthorization: Bearer secret\r\n\r\n"


def address_of(control: Control) -> tuple[str, int]:
    """Return host and port of the API."""
    found = re.fullmatch(r"http://([\d.]+):(\d+)", control.url)
    assert found is not None
    return found[1], int(found[2])


def request_to(control: Control) -> bytes:
    """Return a valid request."""
    host, port = address_of(control)
    return REQUEST % f"{host}:{port}".encode()


async def read_all(stream: trio.SocketStream) -> bytes:
    """Return everything that arrives until the end, also if the connection is reset."""
    received = b""
    try:
        while data := await stream.receive_some():
            received += bytes(data)
    except trio.BrokenResourceError:
        pass
    return received


async def reply_to(control: Control, request: bytes) -> bytes:
    """Return everything that a new connection receives after it has sent a request."""
    async with await trio.open_tcp_stream(*address_of(control)) as stream:
        await stream.send_all(request)
        return await read_all(stream)


async def test_an_http_client_controls_nodes(safety_net: None) -> None:
    """The API listens on 127.0.0.1, takes commands from an HTTP client, and needs the token."""
    nodes = FakeNodes(nodes=2)
    async with open_control(nodes, token="secret", seed=3, port=0) as control, httpx.AsyncClient() as client:
        headers = {"Authorization": f"Bearer {control.token}"}
        done = await client.post(f"{control.url}/commands", json={"command": "kill", "node": 1}, headers=headers)
        strange = await client.post(f"{control.url}/commands", json={"command": "kill", "node": 0})
        state = await client.get(f"{control.url}/state", headers=headers)

    assert "127.0.0.1" == address_of(control)[0]
    assert [200, 401, 200] == [answer.status_code for answer in (done, strange, state)]
    assert (3, [True, False]) == (state.json()["seed"], [node["is_alive"] for node in state.json()["nodes"]])


async def test_a_slow_client_is_disconnected(safety_net: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not complete its request in time is disconnected without a response."""
    monkeypatch.setattr(control_server, "REQUEST_SECONDS", 0.05)
    async with open_control(FakeNodes(), token="secret", seed=0, port=0) as control:
        assert b"" == await reply_to(control, b"GET /state HTTP/1.1\r\n")


async def test_connections_are_bounded(safety_net: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the maximum, a new connection is closed without a response; after one ends, the next is served."""
    monkeypatch.setattr(control_server, "CONNECTIONS_MAX", 1)
    async with open_control(FakeNodes(), token="secret", seed=0, port=0) as control:
        address, request = address_of(control), request_to(control)
        async with await trio.open_tcp_stream(*address) as first:
            await first.send_all(request[:-2])
            async with await trio.open_tcp_stream(*address) as second:
                refused = await read_all(second)
            await first.send_all(request[-2:])
            answered = await read_all(first)
        received = b""
        # The server notices the end of the first connection a moment later.
        while not received:
            received = await reply_to(control, request)

    assert b"" == refused
    assert answered.startswith(b"HTTP/1.1 200")
    assert received.startswith(b"HTTP/1.1 200")


async def test_a_client_that_leaves_harms_nothing(safety_net: None) -> None:
    """Clients that disconnect before, during or right after a request leave the API working."""
    async with open_control(FakeNodes(), token="secret", seed=0, port=0) as control:
        for size in (0, 10, len(request_to(control))):
            async with await trio.open_tcp_stream(*address_of(control)) as stream:
                await stream.send_all(request_to(control)[:size])
        received = await reply_to(control, request_to(control))

    assert received.startswith(b"HTTP/1.1 200")


async def test_answered_client_keeps_no_slot(safety_net: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that keeps its connection open after the response is disconnected before the limit of a request."""
    monkeypatch.setattr(control_server, "REQUEST_SECONDS", math.inf)
    monkeypatch.setattr(control_server, "LINGER_SECONDS", 0.02)
    monkeypatch.setattr(control_server, "CONNECTIONS_MAX", 1)
    async with (
        open_control(FakeNodes(), token="secret", seed=0, port=0) as control,
        await trio.open_tcp_stream(*address_of(control)) as kept,
    ):
        await kept.send_all(request_to(control))
        answered = await read_all(kept)
        received = b""
        while not received:
            received = await reply_to(control, request_to(control))

    assert answered.startswith(b"HTTP/1.1 200")
    assert received.startswith(b"HTTP/1.1 200")


@rows(("omits_port", "status"), [(True, b"200"), (False, b"403")])
async def test_default_port_is_omitted_from_host(omits_port: bool, status: bytes) -> None:
    """``Host`` may omit the port if the API has HTTP's default port, and must have it otherwise."""
    with pytest.MonkeyPatch.context() as patch, trio.fail_after(60):
        async with open_control(FakeNodes(), token="secret", seed=0, port=0) as first:
            port = address_of(first)[1]
        if omits_port:
            patch.setattr(control_server, "HTTP_PORT", port)
        async with open_control(FakeNodes(), token="secret", seed=0, port=port) as control:
            assert (await reply_to(control, REQUEST % b"localhost")).startswith(b"HTTP/1.1 " + status)
