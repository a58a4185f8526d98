"""Responses of a service, as a test specifies them and as they are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_integer, check_number, check_text, check_type
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.options import SECONDS_MAX
from triclinium_core.retry.couchbase import Service
from triclinium_core.shown import shown
from triclinium_core.testing.fakes.faults import ServiceFault
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.services.faults import HangUpMidRequest, check_header_value, check_headers
from triclinium_core.testing.fakes.unsupported import PAGE, unsupported_request

PATH_SHOWN_MAX = 200
"""Maximum length of the path of an unknown request in its reply."""

ROWS_SIZE = 65_536
"""Size in bytes at which collected rows are sent as one piece; delayed rows are sent one by one."""


class FakeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Response of a service to a statement or a request, as a value.

    If a response has rows and errors, the errors follow the rows, as if the service failed halfway. For search,
    they are the errors of failed partitions, before the rows.

    Raises:
        InvalidArgumentException: a value is invalid; ``parameter`` names it.
    """

    rows: Sequence[object] = ()
    """Rows, as values that JSON can encode. For search: hits, each with ``index``, ``id`` and ``score``."""
    repeat: int = 1
    """Number of times that all rows are sent, for large results."""
    errors: Sequence[Mapping[str, object]] = ()
    """Errors in the form of the service: ``{"code": 5000, "msg": "…", "retry": True}``."""
    metadata: Mapping[str, object] = msgspec.field(default_factory=dict)
    """Fields that follow the rows. They extend or replace the fields of the service."""
    http_status: int | None = None
    """HTTP status. Default: 200, or 400 with errors and no rows."""
    seconds: float = 0.0
    """Seconds until the first byte of the response."""
    seconds_between_rows: float = 0.0
    body: str | None = None
    """Complete body. None builds the body from the other fields."""
    content_type: str = "application/json"
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    fault: ServiceFault | None = None
    """Fault that strikes the delivery of the response, or None. A pending fault of the service takes precedence."""

    def __post_init__(self) -> None:
        for parameter in ("rows", "errors"):
            value = getattr(self, parameter)
            # Refuse a lone string, which Python treats as a sequence of characters.
            if isinstance(value, str | bytes) or not isinstance(value, Sequence):
                raise errors.InvalidArgumentException(
                    f"{parameter}={shown(value)} must be a list, or another sequence that is not a string",
                    parameter=parameter,
                )
        for error in self.errors:
            check_type(error, "errors", Mapping)
        check_integer(self.repeat, "repeat", 0, UINT32_MAX)
        check_type(self.metadata, "metadata", Mapping)
        for parameter in ("rows", "errors", "metadata"):
            _check_json(getattr(self, parameter), parameter)
        if self.body is not None:
            check_text(self.body, "body", empty=True)
        check_header_value(self.content_type, "content_type")
        check_headers(self.headers)
        if self.http_status is not None:
            check_integer(self.http_status, "http_status", 200, 599)
        check_number(self.seconds, "seconds", 0, SECONDS_MAX)
        check_number(self.seconds_between_rows, "seconds_between_rows", 0, SECONDS_MAX)
        if self.fault is not None and (
            not isinstance(self.fault, ServiceFault) or isinstance(self.fault, HangUpMidRequest)
        ):
            raise errors.InvalidArgumentException(
                f"fault={self.fault!r} does not apply to a response", parameter="fault"
            )

    @property
    def status(self) -> int:
        """HTTP status of the response."""
        if self.http_status is not None:
            return self.http_status
        return 400 if self.errors and not self.rows else 200

    def row_texts(self) -> Iterator[bytes]:
        """Yield the rows as JSON, in order."""
        texts = [msgspec.json.encode(row) for row in self.rows]
        for _ in range(self.repeat):
            yield from texts


def _check_json(value: object, parameter: str) -> None:
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise errors.InvalidArgumentException(
            f"{parameter}={shown(value)} cannot be encoded as JSON: {error}", parameter=parameter
        ) from error


class Piece(NamedTuple):
    """Some bytes of a response, and the delay in seconds after the previous piece."""

    data: bytes
    delay: float = 0.0


class ServiceReply(msgspec.Struct, frozen=True, kw_only=True):
    """A response of a service before its encoding as HTTP."""

    status: int = 200
    body: bytes = b""
    pieces: Callable[[], Iterator[Piece]] | None = None
    """Function that yields the body in pieces, which are sent in chunks; None if the body is in ``body``."""
    content_type: str = "application/json"
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    seconds: float = 0.0
    """Seconds until the first byte of the response."""
    fault: ServiceFault | None = None
    follows: str | None = None
    """Bucket whose configs follow while the client listens; empty for the global config, None for no configs."""
    applied: bool = True
    """Whether the request was carried out."""
    sends_body: bool = True
    """Whether the body follows the head; False for a reply to HEAD."""

    def whole_body(self) -> bytes:
        """Return the whole body."""
        return self.body if self.pieces is None else b"".join(piece.data for piece in self.pieces())


def as_json(document: object, status: int = 200) -> ServiceReply:
    """Return a reply whose body is JSON; with a status of 400 or above, the request was not carried out."""
    return ServiceReply(status=status, body=msgspec.json.encode(document), applied=status < 400)


def unanswered(service: Service, request: FakeRequest, words: bytes) -> ServiceReply:
    """Return the reply to a request that a service does not handle: 501 for an unsupported feature, or else 404.

    Args:
        words: the real service's body for an unknown path, which the reply extends.
    """
    reason = unsupported_request(service, request.segments)
    if reason is not None:
        return as_json({"status": "fail", "error": reason}, 501)
    path = request.target.partition("?")[0][:PATH_SHOWN_MAX]
    shown_request = f"this fake server has no {request.method} {path}; {PAGE} lists what it does not support\n"
    return ServiceReply(
        status=404, body=words + shown_request.encode("utf-8", "replace"), content_type="text/plain", applied=False
    )


def without_rows(answer: FakeAnswer) -> ServiceReply:
    """Return the scripted reply of a service that returns no rows: its body, or its metadata as an object."""
    return ServiceReply(
        status=answer.status,
        body=msgspec.json.encode(answer.metadata) if answer.body is None else answer.body.encode(),
        content_type=answer.content_type,
        headers=answer.headers,
        seconds=answer.seconds,
        fault=answer.fault,
    )


def with_rows(
    answer: FakeAnswer,
    *,
    before: Mapping[str, object],
    rows_key: str,
    after: Callable[[int, int], Mapping[str, object]],
) -> ServiceReply:
    """Return the reply with a document that contains the rows of ``answer`` in an array.

    Args:
        before: fields before the rows.
        rows_key: key of the array.
        after: function that takes the number and the size of the rows, and returns the fields after them; fields of the
            answer's metadata take precedence.
    """
    if answer.body is not None:
        return without_rows(answer)

    def pieces() -> Iterator[Piece]:
        head = {name: value for name, value in before.items() if name not in answer.metadata}
        opening = _fields(head) + (b"," if head else b"") + b'"%b":[' % rows_key.encode()
        waiting, count, size, delay = bytearray(b"{" + opening), 0, 0, 0.0
        for row in answer.row_texts():
            if answer.seconds_between_rows and count:
                yield Piece(bytes(waiting), delay)
                waiting, delay = bytearray(), answer.seconds_between_rows
            waiting += b",\n" + row if count else b"\n" + row
            count, size = count + 1, size + len(row)
            if len(waiting) >= ROWS_SIZE:
                yield Piece(bytes(waiting), delay)
                waiting, delay = bytearray(), 0.0
        behind = _fields({**after(count, size), **answer.metadata})
        yield Piece(bytes(waiting) + b"\n]" + (b"," + behind if behind else b"") + b"}", delay)

    return ServiceReply(
        status=answer.status,
        pieces=pieces,
        content_type=answer.content_type,
        headers=answer.headers,
        seconds=answer.seconds,
        fault=answer.fault,
    )


def _fields(document: Mapping[str, object]) -> bytes:
    return msgspec.json.encode(document)[1:-1]
