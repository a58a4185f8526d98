"""Faults of HTTP answers, as values; ``fakes.faults`` has those that key-value replies share.

Each constructor says what happens, and which defect of a client it shows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from triclinium_core import errors
from triclinium_core.checks import check_flag, check_integer, check_type
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.shown import shown

BYTES_MAX = 1 << 40
"""More than any answer has; a client must not believe a length only because it is large."""

ZEROS_MAX = 1 << 28
"""Bytes that a compressed answer may inflate to."""


@dataclass(frozen=True, slots=True)
class AnswerHttpStatus:
    """See ``http_status``."""

    code: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """See ``raw_answer``."""

    data: bytes


@dataclass(frozen=True, slots=True)
class EndlessHeaders:
    """See ``endless_headers``."""


@dataclass(frozen=True, slots=True)
class EndlessBody:
    """See ``endless_body``."""


@dataclass(frozen=True, slots=True)
class HangUpMidRequest:
    """See ``hang_up_mid_request``."""

    bytes_read: int = 1


@dataclass(frozen=True, slots=True)
class CutBody:
    """See ``cut_body``."""

    bytes_sent: int


@dataclass(frozen=True, slots=True)
class WrongContentLength:
    """See ``wrong_content_length``."""

    announced: int


@dataclass(frozen=True, slots=True)
class WrongChunkSize:
    """See ``wrong_chunk_size``."""

    announced: int


@dataclass(frozen=True, slots=True)
class Gzipped:
    """See ``gzipped``."""

    zeros: int = 0


@dataclass(frozen=True, slots=True)
class CloseAnnounced:
    """See ``close_announced``."""


@dataclass(frozen=True, slots=True)
class AnswerTwice:
    """See ``answer_twice``."""

    closes: bool = False


HttpFaultBeforeApplying = AnswerHttpStatus | RawAnswer | EndlessHeaders | EndlessBody | HangUpMidRequest
"""The request is not carried out."""

HttpFaultAfterApplying = CutBody | WrongContentLength | WrongChunkSize | Gzipped | CloseAnnounced | AnswerTwice
"""The request is carried out, and its answer does not travel as it should."""

HttpFault = HttpFaultBeforeApplying | HttpFaultAfterApplying
"""What strikes an HTTP request, and no command of KV."""


_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""A token of RFC 9110, 5.6.2."""


def http_status(
    code: int, body: bytes = b"", *, content_type: str = "application/json", headers: Mapping[str, str] | None = None
) -> HttpFault:
    """Answer with this HTTP status and body, exactly as given, instead of carrying the request out.

    Finds a client that looks at the body only, or at the status only: 429 and 503 among others.

    Raises:
        InvalidArgumentException: no final status of HTTP, a body that is not bytes, or a header that is not a string.
    """
    check_integer(code, "code", 200, 599)
    check_type(body, "body", bytes)
    check_header_value(content_type, "content_type")
    headers = {} if headers is None else headers
    check_headers(headers)
    return AnswerHttpStatus(code, body, content_type, dict(headers))


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise InvalidArgumentException unless an answer can have these headers beside its own."""
    check_type(headers, "headers", Mapping)
    for name, value in headers.items():
        check_type(name, "headers", str)
        if not _HEADER_NAME.fullmatch(name) or name.lower() == "content-length":
            raise errors.InvalidArgumentException(
                f"headers has {shown(name)}; a name is letters, digits and dashes, and wrong_content_length announces lengths",
                parameter="headers",
            )
        check_header_value(value, "headers")


def check_header_value(value: str, parameter: str) -> None:
    """Raise InvalidArgumentException unless a header can have this value."""
    check_type(value, parameter, str)
    if not value.isprintable() or not value.isascii() or value != value.strip():
        raise errors.InvalidArgumentException(
            f"{parameter} has {shown(value)}; it must be printable ASCII without spaces around it", parameter=parameter
        )


def proxy_page(code: int = 502) -> HttpFault:
    """Answer as a proxy does that found nobody behind it: with a page of HTML.

    Finds a client that takes every body for JSON.

    Raises:
        InvalidArgumentException: no final status of HTTP.
    """
    check_integer(code, "code", 200, 599)
    page = f"<html>\r\n<head><title>{code}</title></head>\r\n<body><h1>{code}</h1><hr>a proxy</body>\r\n</html>\r\n"
    return http_status(code, page.encode(), content_type="text/html")


def redirect(location: str, code: int = 302) -> HttpFault:
    """Send the client elsewhere, instead of carrying the request out.

    Finds a client that takes its credentials to whatever host an answer names.

    Raises:
        InvalidArgumentException: not one of the statuses 301, 302, 303, 307, 308, or a location that no header can hold.
    """
    if code not in (301, 302, 303, 307, 308):
        raise errors.InvalidArgumentException(f"code={code!r} must be 301, 302, 303, 307 or 308", parameter="code")
    return http_status(code, headers={"Location": location})


def raw_answer(data: bytes) -> HttpFault:
    """Send these bytes instead of an answer, and hang up: a TLS alert, a preface of HTTP/2, half a status line.

    Finds a client that crashes, or hangs, where it is not HTTP that it reads.

    Raises:
        InvalidArgumentException: ``data`` is not bytes.
    """
    check_type(data, "data", bytes)
    return RawAnswer(data)


def endless_headers() -> HttpFault:
    """Answer with headers that never end, instead of carrying the request out.

    Finds a client without a bound for them.
    """
    return EndlessHeaders()


def endless_body() -> HttpFault:
    """Answer with a body that never ends and in which no row begins, instead of carrying the request out.

    Finds a client that keeps all of a body, however long it is.
    """
    return EndlessBody()


def hang_up_mid_request(*, bytes_read: int = 1) -> HttpFault:
    """Hang up once so many bytes of the request have come, or the whole of it if it is shorter; it is not carried out.

    Finds a client that takes a connection lost while it was writing for one lost before.

    Raises:
        InvalidArgumentException: ``bytes_read`` is not positive.
    """
    return HangUpMidRequest(check_integer(bytes_read, "bytes_read", 1, UINT32_MAX))


def cut_body(*, bytes_sent: int) -> HttpFault:
    """Carry the request out, send the head of the answer and so many bytes of its body, never all of it, and hang up.

    Finds a client that takes the rows that it has for all there are.

    Raises:
        InvalidArgumentException: ``bytes_sent`` is negative.
    """
    return CutBody(check_integer(bytes_sent, "bytes_sent", 0, UINT32_MAX))


def wrong_content_length(*, announced: int) -> HttpFault:
    """Carry the request out, and announce a body of so many bytes in front of its answer; the connection stays.

    Finds a client that waits for what never comes, or takes the rest of an answer for the next one.

    Raises:
        InvalidArgumentException: ``announced`` is negative or out of range.
    """
    return WrongContentLength(check_integer(announced, "announced", 0, BYTES_MAX))


def wrong_chunk_size(*, announced: int) -> HttpFault:
    """Carry the request out, and announce so many bytes for the first chunk of its answer; the connection stays.

    Finds a client that allocates, or waits for, whatever a chunk announces.

    Raises:
        InvalidArgumentException: ``announced`` is not positive or out of range.
    """
    return WrongChunkSize(check_integer(announced, "announced", 1, BYTES_MAX))


def gzipped(*, zeros: int = 0) -> HttpFault:
    """Carry the request out, and compress the answer although nobody asked for it.

    Finds a client that takes it for JSON, or inflates a small answer until its memory is full.

    Args:
        zeros: bytes of zeros that the answer inflates to instead of what it says.

    Raises:
        InvalidArgumentException: ``zeros`` is negative or larger than ``ZEROS_MAX``.
    """
    return Gzipped(check_integer(zeros, "zeros", 0, ZEROS_MAX))


def close_announced() -> HttpFault:
    """Carry the request out, answer that the connection closes, and close it when the answer is sent.

    Finds a client that sends the next request on that connection.
    """
    return CloseAnnounced()


def answer_twice(*, closes: bool = False) -> HttpFault:
    """Carry the request out once and send its answer twice; the connection stays.

    Finds a client that takes the second answer for that to its next request.

    Args:
        closes: whether the first answer says that the connection closes behind it.

    Raises:
        InvalidArgumentException: ``closes`` is neither True nor False.
    """
    return AnswerTwice(check_flag(closes, "closes"))
