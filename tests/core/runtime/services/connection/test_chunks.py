"""ChunkDecoder: content, end and faults of chunked bodies in pieces of any size."""

from __future__ import annotations

import h11
import pytest
from hypothesis import example, given, strategies as st

from triclinium_core.runtime.services.connection.chunks import LINE_SIZE_BYTES_MAX, TRAILER_SIZE_BYTES_MAX, ChunkDecoder

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def decoded(body: bytes, size: int) -> tuple[bytes, bytes | None, bool]:
    """Decode a body in pieces of ``size``. Return its content, the bytes after it, and whether it is malformed."""
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
def test_bodies(content: bytes, rest: bytes | None, body: bytes, size: int) -> None:
    """Content and end of a body are the same for pieces of any size; an incomplete body has no end."""
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
def test_faults(fault: bytes, size: int) -> None:
    """A body with an invalid part, or a part above a bound, is malformed; the content before the fault is returned."""
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
