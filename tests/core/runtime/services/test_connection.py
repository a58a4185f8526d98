"""HTTP/1.1 connection: the bytes that it sends, and the events that received bytes yield."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import h11
import pytest
from hypothesis import example, given, strategies as st

from triclinium_core.retry.couchbase import HandedOver
from triclinium_core.runtime.services.connection import (
    HEAD_LINES_MAX,
    HEADERS_SIZE_BYTES_MAX,
    LINE_SIZE_BYTES_MAX,
    READ_BEFORE_SUCCESS_BYTES,
    SENT_AT_ONCE_BYTES,
    TRAILER_SIZE_BYTES_MAX,
    AnswerBegan,
    AnswerBroken,
    AnswerEnded,
    BodyReceived,
    ChunkDecoder,
    HttpConnection,
    HttpNews,
)
from triclinium_core.services.service_request import HttpRequest

QUESTION = HttpRequest("POST", "/query/service", b'{"statement":"SELECT 1"}')
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def asked(request: HttpRequest = QUESTION) -> HttpConnection:
    """Return a connection that has sent a request and awaits its response."""
    connection = HttpConnection("127.0.0.1:8093", (("authorization", "Basic x"),))
    connection.send(request)
    return connection


def pieces(data: bytes, size: int) -> list[bytes]:
    """Return ``data`` in pieces of ``size`` bytes; the last may be shorter."""
    return [data[start : start + size] for start in range(0, len(data), size)]


def summary(news: list[HttpNews]) -> tuple[list[int], bytes, list[bool]]:
    """Return the statuses, the complete body, and for each end of a response whether the connection is reusable."""
    return (
        [each.status for each in news if isinstance(each, AnswerBegan)],
        b"".join(each.data for each in news if isinstance(each, BodyReceived)),
        [each.is_reusable for each in news if isinstance(each, AnswerEnded)],
    )


def test_bytes_of_a_request() -> None:
    """A request has a host, credentials, a length and a body, and accepts no compression."""
    connection = HttpConnection("127.0.0.1:8093", (("authorization", "Basic x"),))

    head, _, body = connection.send(QUESTION).partition(b"\r\n\r\n")

    line, *headers = head.split(b"\r\n")
    assert b"POST /query/service HTTP/1.1" == line
    assert {
        b"host: 127.0.0.1:8093",
        b"accept-encoding: identity",
        b"authorization: Basic x",
        b"content-length: 24",
        b"content-type: application/json",
    } == set(headers)
    assert QUESTION.body == body


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_a_request_without_a_body(method: str) -> None:
    """If a request has no body, its head completes it, and the connection reads the response."""
    connection = asked(HttpRequest(method, "/"))

    assert ([200], b"hello", [True]) == summary(connection.receive(ANSWER))


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    "answer",
    [
        ANSWER,
        b"HTTP/1.1 100 Continue\r\n\r\n" + ANSWER,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    ],
)
def test_an_answer_in_any_pieces(answer: bytes, size: int) -> None:
    """A response yields the same result in pieces of any size, and the connection can send the next request."""
    connection = asked()

    news = [each for piece in pieces(answer, size) for each in connection.receive(piece)]
    connection.send(QUESTION)

    assert ([200], b"hello", [True]) == summary(news)
    assert ([200], b"hello", [True]) == summary(connection.receive(answer))


def test_an_answer_that_ends_with_the_stream() -> None:
    """The end of the stream completes a response without a length, but not one that is shorter than its length."""
    endless, cut = asked(), asked()
    endless.receive(b"HTTP/1.1 200 OK\r\n\r\nhel")
    cut.receive(ANSWER[:-1])

    assert endless.ends_with_stream()
    assert not cut.ends_with_stream()


def test_an_answer_after_which_the_node_closes() -> None:
    """After a response with ``Connection: close``, the connection is not reusable."""
    connection = asked()

    news = connection.receive(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")

    assert ([200], b"hello", [False]) == summary(news)


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x15\x03\x01\x00\x02\x02\x46\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 20,
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * HEADERS_SIZE_BYTES_MAX,
    ],
    ids=lambda data: repr(data[:30]),
)
def test_malformed_bytes(nonsense: bytes) -> None:
    """Malformed bytes yield one ``AnswerBroken`` event, after which the connection is not busy."""
    connection = asked()

    (broken,) = [each for each in connection.receive(nonsense) if not isinstance(each, AnswerBegan)]

    assert isinstance(broken, AnswerBroken)
    assert not connection.is_busy


def test_an_empty_read_changes_nothing() -> None:
    """An empty piece yields no events and is not the end of the stream."""
    connection = asked()

    assert ([], ([200], b"hello", [True])) == (connection.receive(b""), summary(connection.receive(ANSWER)))
    assert [] == connection.receive(b"")


@pytest.mark.parametrize(
    ("expected", "status", "size"),
    [
        (False, 413, SENT_AT_ONCE_BYTES),
        (False, 302, SENT_AT_ONCE_BYTES),
        (True, 200, SENT_AT_ONCE_BYTES),
        (True, 200, READ_BEFORE_SUCCESS_BYTES - 1000),
        (False, 200, READ_BEFORE_SUCCESS_BYTES),
        (False, 299, READ_BEFORE_SUCCESS_BYTES),
        (True, 413, SENT_AT_ONCE_BYTES - 1000),
    ],
)
def test_an_early_response_to_a_large_request(expected: bool, status: int, size: int) -> None:
    """After an early response, a large request prevents reuse of its connection; the limit is higher after a success."""
    connection = asked(HttpRequest("POST", "/query/service", b"x" * size))
    answer = b"HTTP/1.1 %d Said\r\nContent-Length: 5\r\n\r\nhello" % status

    assert ([status], b"hello", [expected]) == summary(connection.receive(answer))


def test_an_unsolicited_response() -> None:
    """Bytes before any request break the connection; bytes after a response prevent its reuse."""
    idle, busy = HttpConnection("127.0.0.1:8093", ()), asked()

    assert [AnswerBroken] == [type(each) for each in idle.receive(ANSWER)]
    assert ([200], b"hello", [False]) == summary(busy.receive(ANSWER + ANSWER))


def test_how_much_of_a_request_was_handed_over() -> None:
    """The byte count covers only the current request; None means that the driver handed over the whole request."""
    connection = HttpConnection("127.0.0.1:8093", ())
    first = len(connection.send(QUESTION))
    connection.receive(ANSWER)
    second = len(connection.send(QUESTION))

    counts: list[Any] = [0, first, first + 1, first + second - 1, first + second, None]

    assert [
        HandedOver.NOTHING,
        HandedOver.NOTHING,
        HandedOver.PART,
        HandedOver.PART,
        HandedOver.ALL,
        HandedOver.ALL,
    ] == [connection.handed_over(count) for count in counts]


@given(st.lists(st.binary(max_size=200) | st.sampled_from([ANSWER, ANSWER[:30], b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n"])))
def test_any_bytes(received: list[bytes]) -> None:
    """Received bytes yield events and never raise."""
    connection = asked()

    for data in received:
        if not all(
            isinstance(each, HttpNews) and not isinstance(each, AnswerBroken) for each in connection.receive(data)
        ):
            return


@pytest.mark.parametrize("host", ["bücher.example", "a\r\nb", "h\x00", " "], ids=repr)
def test_a_host_that_no_header_can_hold(host: str) -> None:
    """If a host name is not valid in a header, it is percent-encoded and cannot add another header."""
    sent = HttpConnection(f"{host}:8093", ()).send(HttpRequest("GET", "/"))

    named, *others = [line for line in sent.split(b"\r\n") if line][1:]
    assert f"host: {quote(host)}:8093".encode() == named
    assert [b"accept-encoding: identity"] == others


def test_chunks_in_one_piece() -> None:
    """If several chunks arrive together, one ``BodyReceived`` event has their content."""
    head, chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n" * 1000

    news = asked().receive(head + chunks + b"0\r\n\r\n")

    assert [AnswerBegan(200), BodyReceived(b"a" * 1000), AnswerEnded(is_reusable=True)] == news


def test_chunks_before_malformed_bytes() -> None:
    """If malformed bytes follow valid chunks, the event for the chunks comes first."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    began, body, broken = asked().receive(head + b"1\r\na\r\n1\r\nb\r\nno chunk\r\n")

    assert [AnswerBegan(200), BodyReceived(b"ab")] == [began, body]
    assert isinstance(broken, AnswerBroken)


def test_a_request_without_credentials() -> None:
    """A request without credentials omits only the ``authorization`` header, which the next request has again."""
    connection = HttpConnection("127.0.0.1:8093", (("authorization", "Basic x"), ("user-agent", "test")))

    ping = connection.send(HttpRequest("GET", "/", carries_credentials=False))
    connection.receive(ANSWER)
    query = connection.send(QUESTION)

    assert (False, True) == (b"authorization" in ping, b"authorization: Basic x" in query)
    assert (True, True) == (b"user-agent: test" in ping, b"user-agent: test" in query)


@pytest.mark.parametrize("end", [b"0\r\n\r\n", b"0;last\r\nDigest: x\r\n\r\n"])
def test_an_empty_answer_before_more_bytes(end: bytes) -> None:
    """If bytes follow an empty response or its last chunk, the connection is not reusable."""
    empty, chunked = asked(), asked()

    news = empty.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + ANSWER)
    rest = chunked.receive(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n" + end + ANSWER)

    assert ([200], b"", [False]) == summary(news)
    assert ([200], b"hello", [False]) == summary(rest)


@pytest.mark.parametrize("status", [204, 304])
def test_a_bodiless_status_that_announces_chunks(status: int) -> None:
    """If the status permits no body, the response ends with its head, even if the head announces chunks."""
    news = asked().receive(b"HTTP/1.1 %d Said\r\nTransfer-Encoding: chunked\r\n\r\n" % status)

    assert ([status], b"", [True]) == summary(news)


@pytest.mark.parametrize("interim", [b"", b"HTTP/1.1 100 Continue\r\n\r\n"])
@pytest.mark.parametrize("size", [1, 10_000])
def test_a_head_of_too_many_lines(interim: bytes, size: int) -> None:
    """If the heads of a response have too many lines in total, the response is broken."""
    head = interim + b"HTTP/1.1 200 OK\r\n" + b"a:b\r\n" * HEAD_LINES_MAX + b"\r\n"

    connection = asked()
    news = [each for piece in pieces(head, size) if connection.is_busy for each in connection.receive(piece)]

    assert [AnswerBroken] == [type(each) for each in news]


def test_chunks_of_a_piece_are_counted() -> None:
    """The number of chunks counts only those in the newest piece."""
    connection = asked()
    connection.receive(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 5)
    first = connection.chunk_count
    connection.receive(b"1\r\nx\r\n" * 3 + b"2")

    assert (5, 3) == (first, connection.chunk_count)


HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def decoded(body: bytes, size: int) -> tuple[bytes, bytes | None, bool]:
    """Decode a body in pieces of ``size``; return its content, the bytes after it, and whether it is malformed."""
    decoder, content, rest = ChunkDecoder(), b"", None
    for start in range(0, len(body), size):
        piece = body[start : start + size]
        if decoder.malformed is not None:
            break
        if rest is not None:
            rest += piece
            continue
        content += decoder.receive(piece)
        rest = decoder.rest
    return content, rest, decoder.malformed is not None


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("content", "rest", "body"),
    [
        (b"hello", b"", b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
        (b"hello world", b"HTTP", b"b;name=value\r\nhello world\r\n00 \r\nA: b\r\nC:\r\n\r\nHTTP"),
        (b"\r\n0\r\n\r\n", b"", b"7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n"),
        (b"hell", None, b"5\r\nhell"),
        (b"hello", None, b"5\r\nhello\r\n0\r\nA: b\r\n"),
    ],
    ids=repr,
)
def test_chunked_bodies(content: bytes, rest: bytes | None, body: bytes, size: int) -> None:
    """A body yields the same content and end for pieces of any size; an incomplete body has no end."""
    assert (content, rest, False) == decoded(body, size)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
@pytest.mark.parametrize(
    "fault",
    [
        b"zz\r\n",
        b"\r\n",
        b"5\n",
        b"-1\r\n",
        b"5;a\rb\r\n",
        b"1" * 16 + b"\r\n",
        b"2\r\nabc\r\n",
        b"2\r\nab\n\n",
        b"1;" + b"x" * LINE_SIZE_BYTES_MAX,
        b"0\r\nno field\r\n\r\n",
        b"0\r\na:b\n\n",
        b"0\r\n" + b"a:b\r\n" * TRAILER_SIZE_BYTES_MAX,
        b"0\r\na:" + b"b" * TRAILER_SIZE_BYTES_MAX,
    ],
    ids=lambda fault: repr(fault[:20]),
)
def test_faults_of_chunks(fault: bytes, size: int) -> None:
    """If a part of a body is invalid or exceeds its limit, the body is malformed; earlier content is returned."""
    content, rest, is_malformed = decoded(b"2\r\nhe\r\n" + fault, size)

    assert (None, True) == (rest, is_malformed)
    assert content.startswith(b"he")


@given(st.lists(st.sampled_from([b"1\r\nx\r\n", b"a\r\n0123456789\r\n", b"0\r\n\r\n", b"0", b"\r\n", b"x", b";e"])))
@example([b"0", b"1\r\nx\r\n", b"0\r\n\r\n"])
def test_the_decoder_agrees_with_h11(parts: list[bytes]) -> None:
    """For every body that h11 reads to its end, the decoder returns the same content."""
    theirs = h11.Connection(h11.CLIENT)
    theirs.send(h11.Request(method="GET", target="/", headers=[("host", "a")]))
    theirs.send(h11.EndOfMessage())
    theirs.receive_data(HEAD + b"".join(parts))
    content = b""
    try:
        while type(event := theirs.next_event()) is not h11.EndOfMessage:
            if event is h11.NEED_DATA:
                return
            content += event.data if isinstance(event, h11.Data) else b""
    except h11.RemoteProtocolError:
        return

    assert (content, theirs.trailing_data[0], False) == decoded(b"".join(parts), 5)
