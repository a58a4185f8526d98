"""Encoder of responses as HTTP: valid ones by h11, or responses that a fault damages.

Source: RFC 9112; RFC 9110 §8.4 (Content-Encoding).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto, unique
from itertools import chain, repeat
from typing import NamedTuple, assert_never

import h11
from msgspec.structs import replace

from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.services.answers import Piece, ServiceReply
from triclinium_core.testing.fakes.services.faults import (
    AnswerHttpStatus,
    AnswerTwice,
    CloseAnnounced,
    CutBody,
    EndlessBody,
    EndlessHeaders,
    Gzipped,
    HangUpMidRequest,
    RawAnswer,
    WrongChunkSize,
    WrongContentLength,
)

PIECE_SIZE = 16_384
"""Size in bytes of the data that an endless response repeats."""
PIECE_SECONDS = 0.001
"""Seconds between two pieces of an endless response, so that memory does not fill if the driver reports no writes."""

_GZIP_WINDOW = 31
"""zlib's number for the gzip format with the largest window."""

REASONS: Mapping[int, str] = {
    200: "OK", 201: "Created", 202: "Accepted", 204: "No Content",
    300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
    307: "Temporary Redirect", 308: "Permanent Redirect",
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    408: "Request Timeout", 409: "Conflict", 412: "Precondition Failed", 429: "Too Many Requests",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout",
}  # fmt: skip
"""Human-readable reason phrases of statuses; clients use the number."""


@unique
class AfterAnswer(Enum):
    """State of a connection after a response."""

    AS_SAID = auto()
    """Kept for the next request or closed, as request and response specify."""
    HANG_UP = auto()
    DEAF = auto()
    """Kept open but silent; if the client sends more, the node closes it."""


class Journey(NamedTuple):
    """Bytes of a response, and the state of the connection after it."""

    pieces: Iterator[Piece]
    ending: AfterAnswer = AfterAnswer.AS_SAID
    status: int | None = None
    """Status that a client can read; None without a readable one."""


def journey_of(http: h11.Connection, reply: ServiceReply, fault: faults.ServiceFault | None) -> Journey:
    """Return the delivery of a response on a connection whose request h11 has read to its end."""
    match fault:
        case None:
            return Journey(_proper(http, reply), status=reply.status)
        case faults.Delay(seconds):
            late = replace(reply, seconds=reply.seconds + seconds)
            return Journey(_proper(http, late), status=reply.status)
        case faults.DropResponse():
            return Journey(iter(()), AfterAnswer.DEAF)
        case faults.HangUpBeforeApplying() | faults.HangUpAfterApplying() | HangUpMidRequest():
            return Journey(iter(()), AfterAnswer.HANG_UP)
        case faults.HangUpMidReply(bytes_sent):
            return Journey(_cut(_proper(http, reply), bytes_sent), AfterAnswer.HANG_UP)
        case CutBody(bytes_sent):
            pieces = _proper(http, reply)
            head = next(pieces)
            return Journey(chain([head], _cut(pieces, bytes_sent)), AfterAnswer.HANG_UP, reply.status)
        case faults.Garble():
            garbled = (Piece(bytes(byte ^ 0xFF for byte in data), delay) for data, delay in _proper(http, reply))
            return Journey(garbled, AfterAnswer.DEAF)
        case WrongContentLength(announced):
            head = _head(reply, {"Content-Length": str(announced)})
            return Journey(iter([head, Piece(reply.whole_body())]), AfterAnswer.DEAF, reply.status)
        case WrongChunkSize(announced):
            head = _head(reply, {"Transfer-Encoding": "chunked"})
            chunk = b"%x\r\n%b\r\n0\r\n\r\n" % (announced, reply.whole_body())
            return Journey(iter([head, Piece(chunk)]), AfterAnswer.DEAF, reply.status)
        case Gzipped(zeros):
            return Journey(_proper(http, _gzipped(reply, zeros)), status=reply.status)
        case CloseAnnounced():
            closing = replace(reply, headers={**reply.headers, "Connection": "close"})
            return Journey(_proper(http, closing), status=reply.status)
        case AnswerTwice(closes):
            first = replace(reply, headers={**reply.headers, "Connection": "close"}) if closes else reply
            both = 2 * list(_proper(http, first))
            return Journey(iter(both), status=reply.status)
        case AnswerHttpStatus(code, body, content_type, headers):
            scripted = ServiceReply(
                status=code, body=body, content_type=content_type, headers=headers, sends_body=reply.sends_body
            )
            return Journey(_proper(http, scripted), status=code)
        case RawAnswer(data):
            return Journey(iter([Piece(data)]), AfterAnswer.HANG_UP)
        case EndlessHeaders():
            line = b"X-More: %b\r\n" % (b"m" * (PIECE_SIZE - 10))
            return Journey(chain([Piece(b"HTTP/1.1 200 OK\r\n")], repeat(Piece(line, PIECE_SECONDS))))
        case EndlessBody():
            head = _head(replace(reply, status=200), {"Transfer-Encoding": "chunked"})
            more = Piece(_chunk(b"m" * PIECE_SIZE), PIECE_SECONDS)
            return Journey(chain([head, Piece(_chunk(b'{"more": "'))], repeat(more)), status=200)
        case _:
            assert_never(fault)


def _proper(http: h11.Connection, reply: ServiceReply) -> Iterator[Piece]:
    """Yield the pieces of a valid HTTP response, the head first, each on demand."""
    headers = {"Content-Type": reply.content_type, **reply.headers}
    may_have_body = reply.status not in (204, 304)
    if reply.pieces is None and may_have_body and reply.follows is None:
        headers["Content-Length"] = str(len(reply.body))
    head = h11.Response(
        status_code=reply.status, reason=REASONS.get(reply.status, "").encode(), headers=list(headers.items())
    )
    yield Piece(_sent(http, head), reply.seconds)
    if reply.follows is not None:
        return
    body: Iterable[Piece] = [Piece(reply.body)] if reply.pieces is None else reply.pieces()
    for data, delay in body if may_have_body and reply.sends_body else ():
        yield Piece(_sent(http, h11.Data(data=data)), delay)
    yield Piece(_sent(http, h11.EndOfMessage()))


def _sent(http: h11.Connection, event: h11.Event) -> bytes:
    return http.send(event) or b""


def _head(reply: ServiceReply, framing: Mapping[str, str]) -> Piece:
    """Return a head with framing headers that h11 would not produce."""
    headers = {"Content-Type": reply.content_type, **reply.headers, **framing}
    lines = [f"HTTP/1.1 {reply.status} {REASONS.get(reply.status, '')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return Piece("\r\n".join([*lines, "", ""]).encode(), reply.seconds)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _cut(pieces: Iterator[Piece], size: int) -> Iterator[Piece]:
    """Yield the first ``size`` bytes of all pieces, but never their last byte."""
    left, held = size, b""
    for data, delay in pieces:
        # Hold back the last byte so far, because it may be the last of all.
        held += data
        now = held[: min(left, len(held) - 1)] if held else b""
        held, left = held[len(now) :], left - len(now)
        yield Piece(now, delay)
        if not left:
            return


def _gzipped(reply: ServiceReply, zeros: int) -> ServiceReply:
    packer = zlib.compressobj(wbits=_GZIP_WINDOW)
    if zeros:
        whole, rest = divmod(zeros, PIECE_SIZE)
        pieces = chain(repeat(bytes(PIECE_SIZE), whole), [bytes(rest)])
    else:
        pieces = chain([reply.whole_body()])
    body = b"".join([*map(packer.compress, pieces), packer.flush()])
    return replace(reply, body=body, pieces=None, headers={**reply.headers, "Content-Encoding": "gzip"})
