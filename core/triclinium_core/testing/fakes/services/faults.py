"""Faults of HTTP requests and responses, as values; ``fakes.faults`` has the faults that also apply to KV.

The function that creates a fault describes its effect, and the client defect that it finds.
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
"""Maximum length that a fault can announce. It exceeds any response: a client must not trust an announced length."""

ZEROS_MAX = 1 << 28
"""Maximum size in bytes to which a compressed response may inflate."""


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
"""Faults that prevent the request from being carried out."""

HttpFaultAfterApplying = CutBody | WrongContentLength | WrongChunkSize | Gzipped | CloseAnnounced | AnswerTwice
"""Faults that change the response after the request is carried out."""

HttpFault = HttpFaultBeforeApplying | HttpFaultAfterApplying
"""Faults that strike an HTTP request, and no KV command."""


_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""A token of RFC 9110, section 5.6.2."""

_FRAMING: Mapping[str, str] = {"content-length": "wrong_content_length", "transfer-encoding": "wrong_chunk_size"}
"""Headers that h11 sets, and the fault that damages each."""


def http_status(
    code: int, body: bytes = b"", *, content_type: str = "application/json", headers: Mapping[str, str] | None = None
) -> HttpFault:
    """Respond with exactly this HTTP status and body, instead of carrying the request out.

    Finds a client that checks only the body, or only the status. Useful statuses include 429 and 503.

    Raises:
        InvalidArgumentException: the status is not a final HTTP status, the body is not bytes, or a header is invalid.
    """
    check_integer(code, "code", 200, 599)
    check_type(body, "body", bytes)
    check_header_value(content_type, "content_type")
    headers = {} if headers is None else headers
    check_headers(headers)
    return AnswerHttpStatus(code, body, content_type, dict(headers))


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise InvalidArgumentException unless a response can have these headers besides the ones that h11 adds."""
    check_type(headers, "headers", Mapping)
    for name, value in headers.items():
        check_type(name, "headers", str)
        if not _HEADER_NAME.fullmatch(name):
            raise errors.InvalidArgumentException(
                f"headers has {shown(name)}; a name consists of ASCII letters, digits and signs such as -",
                parameter="headers",
            )
        if name.lower() in _FRAMING:
            raise errors.InvalidArgumentException(
                f"headers has {name}, which the server sets itself; use {_FRAMING[name.lower()]} to damage it",
                parameter="headers",
            )
        check_header_value(value, "headers")


def check_header_value(value: str, parameter: str) -> None:
    """Raise InvalidArgumentException unless ``value`` is a valid header value."""
    check_type(value, parameter, str)
    if not value.isprintable() or not value.isascii() or value != value.strip():
        raise errors.InvalidArgumentException(
            f"{parameter} has {shown(value)}; it must be printable ASCII without spaces around it", parameter=parameter
        )


def proxy_page(code: int = 502) -> HttpFault:
    """Respond like a proxy that cannot reach its server: with an HTML page.

    Finds a client that parses every body as JSON.

    Raises:
        InvalidArgumentException: ``code`` is not a final HTTP status.
    """
    check_integer(code, "code", 200, 599)
    page = f"<html>\r\n<head><title>{code}</title></head>\r\n<body><h1>{code}</h1><hr>a proxy</body>\r\n</html>\r\n"
    return http_status(code, page.encode(), content_type="text/html")


def redirect(location: str, code: int = 302) -> HttpFault:
    """Redirect the client, instead of carrying the request out.

    Finds a client that sends its credentials to any host that a response names.

    Raises:
        InvalidArgumentException: the status is not 301, 302, 303, 307 or 308, or the location is invalid.
    """
    if code not in (301, 302, 303, 307, 308):
        raise errors.InvalidArgumentException(f"code={code!r} must be 301, 302, 303, 307 or 308", parameter="code")
    return http_status(code, headers={"Location": location})


def raw_answer(data: bytes) -> HttpFault:
    """Send these bytes instead of a response, such as a TLS alert or half a status line, and close.

    Finds a client that crashes or hangs when it reads something other than HTTP.

    Raises:
        InvalidArgumentException: ``data`` is not bytes.
    """
    check_type(data, "data", bytes)
    return RawAnswer(data)


def endless_headers() -> HttpFault:
    """Respond with endless headers, instead of carrying the request out.

    Finds a client that does not limit the size of headers.
    """
    return EndlessHeaders()


def endless_body() -> HttpFault:
    """Respond with an endless body in which no row begins, instead of carrying the request out.

    Finds a client that buffers an entire body of any size.
    """
    return EndlessBody()


def hang_up_mid_request(*, bytes_read: int = 1) -> HttpFault:
    """Close after ``bytes_read`` bytes of the request, or at its end if it is shorter. The request is not carried out.

    Finds a client that treats a connection lost during a write like one lost before the write.

    Raises:
        InvalidArgumentException: ``bytes_read`` is less than 1 or too large.
    """
    return HangUpMidRequest(check_integer(bytes_read, "bytes_read", 1, UINT32_MAX))


def cut_body(*, bytes_sent: int) -> HttpFault:
    """Carry the request out, send the head and ``bytes_sent`` bytes of the body, never all of it, and close.

    Finds a client that mistakes the rows so far for all rows.

    Raises:
        InvalidArgumentException: ``bytes_sent`` is out of range.
    """
    return CutBody(check_integer(bytes_sent, "bytes_sent", 0, UINT32_MAX))


def wrong_content_length(*, announced: int) -> HttpFault:
    """Carry the request out, but announce ``announced`` bytes as the body length; the connection stays open.

    Finds a client that waits forever, or mistakes the rest of a response for the next response.

    Raises:
        InvalidArgumentException: ``announced`` is out of range.
    """
    return WrongContentLength(check_integer(announced, "announced", 0, BYTES_MAX))


def wrong_chunk_size(*, announced: int) -> HttpFault:
    """Carry the request out, but announce ``announced`` bytes for the first chunk; the connection stays open.

    Finds a client that allocates, or waits for, any size that a chunk announces.

    Raises:
        InvalidArgumentException: ``announced`` is less than 1 or too large.
    """
    return WrongChunkSize(check_integer(announced, "announced", 1, BYTES_MAX))


def gzipped(*, zeros: int = 0) -> HttpFault:
    """Carry the request out, and compress the response even if the client has not requested it.

    Finds a client that parses compressed bytes as JSON, or inflates a small response until its memory is full.

    Args:
        zeros: number of zero bytes to which the response inflates. Default: 0, which keeps the content of the response.

    Raises:
        InvalidArgumentException: ``zeros`` is not from 0 to ``ZEROS_MAX``.
    """
    return Gzipped(check_integer(zeros, "zeros", 0, ZEROS_MAX))


def close_announced() -> HttpFault:
    """Carry the request out, announce in the response that the connection closes, and close it.

    Finds a client that sends the next request on that connection.
    """
    return CloseAnnounced()


def answer_twice(*, closes: bool = False) -> HttpFault:
    """Carry the request out once and send its response twice; the connection stays open, unless ``closes`` is True.

    Finds a client that mistakes the second response for the response to its next request.

    Args:
        closes: whether the first response announces that the connection closes after it.

    Raises:
        InvalidArgumentException: ``closes`` is neither True nor False.
    """
    return AnswerTwice(check_flag(closes, "closes"))
