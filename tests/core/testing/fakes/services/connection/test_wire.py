"""Responses over HTTP with each fault: the bytes that a client gets, and whether the node executes the request."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from itertools import pairwise

import h11
import pytest

from tests.core.testing.http_client import Answered, HttpClient
from tests.rows import rows
from triclinium_core import testing
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import delay
from triclinium_core.testing.fakes.services.connection.wire import PIECE_SIZE

PREPARE = "PREPARE it FROM SELECT 1"
"""Statement that has an effect on the node."""


def struck(fault: testing.Fault, seconds: float = 0.0, *, piece: int | None = None) -> HttpClient:
    """Return a connection whose request a fault has struck."""
    client = HttpClient(testing.FakeNode())
    client.node.faults.next(Service.QUERY, fault)
    client.send(client.encode_query(PREPARE), piece=piece)
    client.now += seconds
    client.take(client.node.time_passed(client.now))
    return client


def answered(fault: testing.Fault) -> Answered:
    """Return a response that a fault has struck but that is valid HTTP."""
    return struck(fault).answered()


@rows(
    ("fault", "applied", "hangs_up"),
    [
        (testing.hang_up(), False, True),
        (testing.hang_up_mid_request(), None, True),
        (testing.hang_up_mid_request(bytes_read=100_000), False, True),
        (testing.http_status(503), False, False),
        (testing.proxy_page(), False, False),
        (testing.redirect("http://elsewhere.example/"), False, False),
        (testing.raw_answer(b"\x15\x03"), False, True),
        (testing.endless_headers(), False, False),
        (testing.endless_body(), False, False),
        (testing.hang_up_after_applying(), True, True),
        (testing.hang_up_mid_reply(), True, True),
        (testing.cut_body(bytes_sent=0), True, True),
        (testing.drop_response(), True, False),
        (testing.garble(), True, False),
        (testing.wrong_content_length(announced=1), True, False),
        (testing.wrong_chunk_size(announced=1), True, False),
        (testing.gzipped(), True, False),
        (testing.close_announced(), True, True),
        (testing.answer_twice(), True, False),
        (testing.answer_twice(closes=True), True, True),
        (delay(1.0), True, False),
    ],
)
def test_effects_of_a_fault(fault: testing.Fault, applied: bool | None, hangs_up: bool) -> None:
    """The fault determines whether the node executes the statement, logs the request, and closes the connection."""
    client = struck(fault)

    assert bool(applied) == (client.node.plans.find("it") is not None)
    assert ([] if applied is None else [(fault, applied)]) == [
        (request.fault, request.applied) for request in client.node.request_log
    ]
    assert hangs_up == client.is_hung_up
    assert 0 == client.node.faults.pending


@rows("size", [1, 40, 180])
def test_closes_mid_request(size: int) -> None:
    """The node closes as soon as the given number of bytes has arrived."""
    client = HttpClient(testing.FakeNode())
    client.node.faults.next(Service.QUERY, testing.hang_up_mid_request(bytes_read=size))
    request = client.encode_query(PREPARE)
    client.send(request[: size - 1]) if size > 1 else None
    before = client.is_hung_up
    client.send(request[size - 1 :], piece=1)

    assert [False, True] == [before, client.is_hung_up]
    assert b"" == client.received
    assert [] == client.node.request_log


@rows("size", [0, 1, 12, 60, 100_000])
def test_cut_responses(size: int) -> None:
    """The node sends the given number of bytes of the response or the body, but never the last byte."""
    whole = struck(delay(0)).received
    head, _, _ = whole.partition(b"\r\n\r\n")
    everything, body = (
        struck(testing.hang_up_mid_reply(bytes_sent=size)).received,
        struck(testing.cut_body(bytes_sent=size)).received,
    )

    assert whole[: min(size, len(whole) - 1)] == everything
    assert whole[: min(len(head) + 4 + size, len(whole) - 1)] == body


@rows("announced", [0, 10, 100_000])
def test_wrong_content_length(announced: int) -> None:
    """The complete body follows any announced length; further bytes close the connection."""
    client = struck(testing.wrong_content_length(announced=announced))
    head, _, body = client.received.partition(b"\r\n\r\n")
    client.send(b"G")

    assert b"Content-Length: %d" % announced in head
    assert body.startswith(b'{"requestID"')
    assert body.endswith(b"}")
    assert client.is_hung_up


def test_wrong_chunk_size() -> None:
    """The announced size of a chunk differs from its real size."""
    with pytest.raises(h11.RemoteProtocolError):
        answered(testing.wrong_chunk_size(announced=10))
    assert b"\r\n270f\r\n{" in struck(testing.wrong_chunk_size(announced=9999)).received


def test_foreign_responses() -> None:
    """The faults give a status with the given body and headers, a proxy's page, or a redirect."""
    busy = answered(testing.http_status(429, b"slow down", content_type="text/plain", headers={"Retry-After": "3"}))
    page, elsewhere = answered(testing.proxy_page(504)), answered(testing.redirect("http://elsewhere.example/", 307))

    assert (429, b"slow down", "3") == (busy.status, busy.body, busy.headers["retry-after"])
    assert (504, "text/html") == (page.status, page.headers["content-type"])
    assert page.body.startswith(b"<html>")
    assert (307, "http://elsewhere.example/") == (elsewhere.status, elsewhere.headers["location"])


def test_compressed_responses() -> None:
    """The response, or the given number of zeros, is compressed in the format of its header."""
    said, bomb = answered(testing.gzipped()), answered(testing.gzipped(zeros=1_000_001))

    assert ["gzip", "gzip"] == [each.headers["content-encoding"] for each in (said, bomb)]
    assert b'"results"' in zlib.decompress(said.body, wbits=31)
    assert bytes(1_000_001) == zlib.decompress(bomb.body, wbits=31)
    assert len(bomb.body) < 10_000


@rows("fault", [testing.endless_headers(), testing.endless_body()])
def test_endless_responses(fault: testing.Fault) -> None:
    """An endless response is sent in pieces until the client leaves."""
    client = struck(fault)
    sizes = [len(client.received)]
    for _ in range(20):
        client.now = client.node.wakeup
        client.take(client.node.time_passed(client.now))
        sizes.append(len(client.received))

    assert all(0 < after - before <= 2 * PIECE_SIZE for before, after in pairwise(sizes[1:]))
    client.node.connection_lost(1, client.now)
    assert client.node.request_log[0].client_hung_up
    assert float("inf") == client.node.wakeup


@rows(
    ("fault", "change"),
    [
        (testing.garble(), lambda whole: bytes(byte ^ 0xFF for byte in whole)),
        (testing.answer_twice(), lambda whole: whole * 2),
    ],
)
def test_changed_responses(fault: testing.Fault, change: Callable[[bytes], bytes]) -> None:
    """A garbled response has all bits inverted; an unsolicited one follows the response. The connection stays open."""
    client = struck(fault)

    assert change(struck(delay(0)).received) == client.received
    assert not client.is_hung_up


@rows("piece", [1, 7, 100])
def test_requests_in_any_cut(piece: int) -> None:
    """Requests that arrive in pieces of any size are answered one after the other."""
    client = HttpClient(testing.FakeNode())
    first = client.encode_query("SELECT 1 AS one")
    client.http = h11.Connection(h11.CLIENT)
    client.send(first * 3, piece=piece)

    assert ["SELECT 1 AS one"] * 3 == [request.statement for request in client.node.request_log]
    assert 3 == client.received.count(b'{"one":1}')


@rows(
    "data",
    [b"\x16\x03\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /\r\n\r\n", b"x" * 100_000, b"GET / HTTP/1.1\r\n\r\n"],
)
def test_invalid_requests(data: bytes) -> None:
    """Bytes that are not a request close their connection, and no other connection."""
    client = HttpClient(testing.FakeNode())
    client.send(data)

    assert client.is_hung_up
    assert 200 == HttpClient(client.node, connection=2).query("SELECT 1").status


def test_scripted_answer_has_its_fault() -> None:
    """The fault of a scripted answer strikes unless another fault for the service is queued."""
    client = HttpClient(testing.FakeNode())
    client.node.script.answer("a", testing.FakeAnswer(rows=[1], fault=testing.redirect("http://elsewhere.example/")))
    client.node.faults.next(Service.QUERY, testing.http_status(503))

    assert [503, 302] == [client.query("a").status for _ in range(2)]


@rows(
    ("service", "target"),
    [
        (Service.MANAGEMENT, "/pools"),
        (Service.MANAGEMENT, "/pools/default/bs/default"),
        (Service.MANAGEMENT, "/pools/default/bucketsStreaming/default"),
        (Service.MANAGEMENT, "/poolsStreaming/default"),
        (Service.MANAGEMENT, "/pools/default/nodeServicesStreaming"),
        (Service.QUERY, "/admin/ping"),
        (Service.SEARCH, "/x"),
    ],
)
@rows("fault", [delay(0), testing.http_status(200, b"{}"), testing.gzipped(), testing.cut_body(bytes_sent=3)])
def test_replies_to_head_have_no_body(service: Service, target: str, fault: testing.Fault) -> None:
    """The reply to HEAD ends after its head, and without a fault that closes it, the connection is used again."""
    client = HttpClient(testing.FakeNode(), service)
    client.node.faults.next(service, fault)
    client.send(client.encode("HEAD", target))
    received = client.received

    assert received.startswith(b"HTTP/1.1 ")
    assert (received.index(b"\r\n\r\n") + 4) == len(received)
    if not client.is_hung_up:
        assert client.answered().body == b""
        assert client.ask("GET", "/x").body
