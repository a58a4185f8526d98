"""The HTTP control API: the requests that it accepts, and its responses."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.rows import rows
from triclinium_core.testing import FakeNodes
from triclinium_core.testing.fakes.control.api import ControlApi
from triclinium_core.testing.fakes.control.command_text import COMMAND_SIZE_MAX
from triclinium_core.testing.fakes.control.commands import COMMAND_NAMES
from triclinium_core.testing.fakes.control.connection import HEAD_SIZE_MAX, ControlConnection

TOKEN = "a-secret"
HOST = "127.0.0.1:8080"


class Client:
    """Client of the API of three nodes."""

    def __init__(self) -> None:
        self.nodes = FakeNodes(nodes=3, rng=random.Random(0))
        self.api = ControlApi(self.nodes, token=TOKEN, seed=17, hosts=(HOST, "localhost:8080"))

    def send(self, data: bytes, *, piece: int | None = None) -> bytes:
        """Return the response to bytes that arrive in pieces on one connection."""
        connection = ControlConnection(self.api)
        received = b""
        for start in range(0, len(data), piece or len(data)):
            received += connection.receive(data[start : start + (piece or len(data))])
        self.is_over = connection.is_over
        return received

    def ask(
        self, method: str = "GET", path: str = "/state", body: bytes = b"", **headers: str | None
    ) -> tuple[int, Any]:
        """Send a request, without headers of value None, and return the status and the document of the response."""
        return parsed(self.send(request(method, path, body, **headers)))


def request(method: str = "GET", path: str = "/state", body: bytes = b"", **headers: str | None) -> bytes:
    """Return a request with the headers that it needs, updated with ``headers``, whose underscores become dashes."""
    sent = {"host": HOST, "authorization": f"Bearer {TOKEN}", "content_type": "application/json", **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in sent.items() if value is not None]
    head = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, f"content-length: {len(body)}", "", ""])
    return head.encode() + body


def parsed(response: bytes) -> tuple[int, Any]:
    """Return the status and the document of a response."""
    head, _, content = response.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(content)


@rows(
    ("headers", "status", "field"),
    [
        ({"host": "evil.example:8080"}, 403, "host"),
        ({"host": "127.0.0.1"}, 403, "host"),
        ({"host": "127.0.0.1:8081"}, 403, "host"),
        ({"origin": "http://evil.example"}, 403, "origin"),
        ({"origin": "null"}, 403, "origin"),
        ({"origin": f"https://{HOST}"}, 403, "origin"),
        ({"authorization": None}, 401, "authorization"),
        ({"authorization": "Bearer "}, 401, "authorization"),
        ({"authorization": "Bearer a-secret2"}, 401, "authorization"),
        ({"authorization": "Basic YTph"}, 401, "authorization"),
        ({"authorization": TOKEN}, 401, "authorization"),
        ({"authorization": f"Basic {TOKEN}"}, 401, "authorization"),
        ({"authorization": "Bearer \u00fc"}, 401, "authorization"),
        ({"content_type": None}, 415, "content-type"),
        ({"content_type": "text/plain"}, 415, "content-type"),
        ({"content_type": "application/x-www-form-urlencoded"}, 415, "content-type"),
        # The token is checked after the host, so a foreign page learns nothing about it, and before the content type.
        ({"host": "evil.example", "authorization": None}, 403, "host"),
        ({"authorization": None, "content_type": None}, 401, "authorization"),
    ],
)
def test_refused_requests_change_nothing(headers: dict[str, str | None], status: int, field: str) -> None:
    """A change with a foreign host or origin, or without the token or JSON, is refused; the error names the header."""
    client = Client()
    answered, document = client.ask("POST", "/commands", b'{"command": "kill"}', **headers)

    assert (status, field) == (answered, document["error"]["field"])
    assert document["error"]["allowed"]
    assert () == client.nodes.changes


@rows(
    "headers",
    [
        {},
        {"host": "LOCALHOST:8080"},
        {"origin": f"http://{HOST}"},
        {"origin": "http://localhost:8080"},
        {"content_type": "Application/JSON; charset=utf-8"},
        # RFC 9110, section 11.1: the name of the scheme may be in lower case.
        {"authorization": f"bearer {TOKEN}"},
    ],
)
def test_accepted_requests(headers: dict[str, str | None]) -> None:
    """A change with the API's own host and origin, the token and JSON takes effect before the response."""
    client = Client()
    command = {"command": "kill", "node": 1}
    answer = client.ask("POST", "/commands", json.dumps(command).encode(), **headers)

    assert (200, {"done": command}) == answer
    assert not client.nodes[1].is_alive


@pytest.mark.parametrize("path", ["/state", "/commands"])
def test_reading_needs_the_token(path: str) -> None:
    """A request that only reads needs the token too, but no content type."""
    client = Client()

    assert 401 == client.ask(path=path, authorization=None)[0]
    assert 200 == client.ask(path=path, content_type=None)[0]


@rows(
    ("method", "path", "status", "field", "allowed"),
    [
        ("GET", "/", 404, "path", ["/commands", "/state"]),
        ("GET", "/state?x", 404, "path", ["/commands", "/state"]),
        ("POST", "/state", 405, "method", ["GET"]),
        ("OPTIONS", "/commands", 405, "method", ["GET", "POST"]),
        ("PUT", "/commands", 405, "method", ["GET", "POST"]),
    ],
)
def test_unknown_paths_and_methods(method: str, path: str, status: int, field: str, allowed: list[str]) -> None:
    """An unknown path or method is refused with the possible ones; the response has no CORS header."""
    client = Client()
    response = client.send(request(method, path))
    answered, document = parsed(response)

    assert (status, field, allowed) == (answered, document["error"]["field"], document["error"]["allowed"])
    assert b"access-control" not in response.lower()


@rows(
    ("body", "field"),
    [
        (b"", "body"),
        (b"{", "body"),
        (b"\xff", "body"),
        (b"[" * 100_000, "body"),
        (b"[]", "command"),
        (b"5", "command"),
        (b'{"command": "kill", "node": 9}', "node"),
        (b'"@1: kil"', "fault"),
        (b'{"command": "slow_down", "seconds": 1e999}', "body"),
        (b'{"command": "slow_down", "seconds": 1e99}', "seconds"),
    ],
)
def test_invalid_body_gets_400(body: bytes, field: str) -> None:
    """An invalid body gets 400 with the field and the allowed values, and changes nothing."""
    client = Client()
    status, document = client.ask("POST", "/commands", body)

    assert (400, field) == (status, document["error"]["field"])
    assert document["error"]["message"]
    assert document["error"]["allowed"]
    assert () == client.nodes.changes


def test_state_of_the_nodes() -> None:
    """After commands as JSON strings, the state has the seed, nodes, faults with conditions, and planned commands."""
    client = Client()
    for body in (
        b'"@1: kill for 9 seconds"',
        b'"@2: slow_down(0.5)"',
        b'"@2: cut_off"',
        b'"@0: fail_over"',
        b'"rebalance at 5 seconds"',
        b'"get@2: delay(1) x2 with probability 0.5"',
        b'"query@2: http_status(503) always"',
        b'"@2: refuse_connection"',
    ):
        assert (200, {"done": json.loads(body)}) == client.ask("POST", "/commands", body)
    _, state = client.ask()
    last = state["nodes"][2]

    assert (0.0, 17) == (state["seconds"], state["seed"])
    assert [False, True, True] == [node["is_member"] for node in state["nodes"]]
    assert [True, False, True] == [node["is_alive"] for node in state["nodes"]]
    assert [False, False, True] == [node["is_cut_off"] for node in state["nodes"]]
    assert ("127.0.0.1:11214", 0.5, 341) == (last["address"], last["slow_by_seconds"], last["vbuckets"])
    assert [
        {"fault": {"kind": "delay", "seconds": 1}, "target": "get", "times": 2, "probability": 0.5},
        {"fault": {"kind": "refuse_connection"}, "target": "connection", "times": 1},
        {"fault": {"kind": "http_status", "code": 503}, "target": "query", "times": "always"},
    ] == last["faults"]
    assert [
        {"command": "kill", "node": 1, "for_seconds": 9, "has_started": True},
        {"command": "rebalance", "node": None, "at_seconds": 5, "has_started": False},
    ] == state["planned"]


def test_list_of_commands() -> None:
    """The list has every command with its fields and their allowed values."""
    _, document = Client().ask(path="/commands")

    assert [*COMMAND_NAMES] == list(document["commands"])
    assert ["true", "false"] == document["commands"]["restart"]["keep_data"]["allowed"]
    assert document["commands"]["slow_down"]["seconds"]["required"]


def test_request_in_pieces() -> None:
    """A request in pieces gets the same response as a whole one, and then the connection is over."""
    client = Client()
    data = request("POST", "/commands", b'{"command": "kill"}')
    responses = [client.send(data, piece=piece) for piece in (1, 7, None)]

    assert 1 == len(set(responses))
    assert client.is_over
    assert b"connection: close" in responses[0].lower()


@rows(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /state HTTP/1.1\r\n\r\n", 400),
        (b"GET /state HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", 400),
        (b"GET /state HTTP/1.1\r\nx: " + HEAD_SIZE_MAX * b"x", 431),
        (b"GET /state HTTP/1.1\r\nhost: a\r\nx: " + HEAD_SIZE_MAX * b"x" + b"\r\n\r\n", 431),
        (request("POST", "/commands", (COMMAND_SIZE_MAX + 1) * b" "), 413),
    ],
)
def test_invalid_or_large_requests(data: bytes, status: int) -> None:
    """A request that is not HTTP or too large is refused, and the connection is over."""
    client = Client()

    assert status == parsed(client.send(data, piece=4096))[0]
    assert client.is_over


def test_end_of_the_client() -> None:
    """A client that disconnects before its request is complete gets nothing, and the connection is over."""
    connection = ControlConnection(Client().api)
    sent = connection.receive(b""), connection.receive(b"GET")
    partial = ControlConnection(Client().api)
    partial.receive(request()[:30])
    partial.receive(b"")

    assert (b"", b"") == sent
    assert connection.is_over
    assert partial.is_over


def test_client_that_waits_for_permission() -> None:
    """A client that sends its body only after 100 Continue gets that, and then the response."""
    client = Client()
    connection = ControlConnection(client.api)
    body = b'{"command": "kill"}'
    data = request("POST", "/commands", body, expect="100-continue")
    first = connection.receive(data[: -len(body)])
    second = connection.receive(body)

    assert first.startswith(b"HTTP/1.1 100 ")
    assert 200 == parsed(second)[0]
