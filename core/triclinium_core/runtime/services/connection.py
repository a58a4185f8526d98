"""HTTP/1.1 connection to one node. It carries one request at a time, and returns the response in pieces.

h11 implements the protocol except for chunked bodies. h11 would return one event for each chunk, which takes about 5 to
15 microseconds. A server may send chunks of one byte, so that 64 KiB would take 50 to 150 milliseconds.
``ChunkDecoder`` takes 0.5 to 1 microsecond for a chunk. h11 gets each head separately, and only an empty last chunk at
the end of a chunked body.

This module neither requests nor accepts compression. If the node violates HTTP, ``receive`` returns an ``AnswerBroken``
event, and raises no exception.

Source: SDK-RFC 0059 "Configuration"; RFC 9112, for chunks section 7.1.
"""

from __future__ import annotations

import math
import re
from urllib.parse import quote

import h11
import msgspec

from triclinium_core import decoder_faults
from triclinium_core.concealment import Secrets
from triclinium_core.retry.couchbase import HandedOver
from triclinium_core.runtime.services.credentials import secrets_of, without_credentials
from triclinium_core.services.service_request import HttpRequest
from triclinium_core.shown import one_line

HEADERS_SIZE_BYTES_MAX = 64 * 1024
"""Maximum size of the status line and headers of a response. Servers send about 400 bytes."""
HEAD_LINES_MAX = 256
"""Maximum number of lines in all heads of one response. Servers send about 15 lines. h11 takes 2 to 4 microseconds for
each line."""
IN_HOST = "!$&'()*+,;=:[]%"
"""Characters of a host and port besides letters, digits and ``-._~``. A cluster config may contain other characters,
which the client percent-encodes (RFC 3986, section 3.2.2)."""
SENT_AT_ONCE_BYTES = 16 * 1024
"""Size up to which the operating system takes a request from the driver immediately: the smallest send buffer of common
systems (Linux, ``tcp_wmem``). The rest of a larger request may still wait in the driver when a node refuses the request
without reading it completely."""
READ_BEFORE_SUCCESS_BYTES = 256 * 1024
"""Size up to which the client assumes that the node has read a successful request completely. HTTP requires this, and
opening another connection costs as much as sending the request. The rest of a larger request may still wait in the
driver. Closing the connection then costs little in comparison."""
SUCCESS_MAX = 299
"""Highest status of a response to a request that the server received and understood (RFC 9110, section 15.3)."""
INTERIM_ANSWERS_MAX = 16
"""Maximum number of interim responses, which have a status below 200, before the final response."""

_BODILESS_STATUSES = frozenset({204, 304})
"""Final statuses of responses that have no body, even if their headers announce one (RFC 9112, section 6.3)."""
_LAST_CHUNK = b"0\r\n\r\n"
_search_blank_line = re.compile(rb"\n\r?\n").search

LINE_SIZE_BYTES_MAX = 4 * 1024
"""Maximum length of an incomplete size line of a chunk, with extensions, which the client ignores. Servers send at most
eight digits."""

TRAILER_SIZE_BYTES_MAX = 8 * 1024
"""Maximum size of the trailer fields after the last chunk. No Couchbase service sends any, and the client discards
them."""

_match_size = re.compile(rb"([0-9A-Fa-f]{1,15}+)[ \t]*+(?:;[^\r\n]*+)?\r\n").match
_match_trailers = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]++:[^\r\n\x00]*+\r\n)*+\r\n").match
_begins_size = re.compile(rb"[0-9A-Fa-f]{1,15}+[ \t]*+(?:;[^\r\n]*+)?\r?+\Z").match
_END_OF_LINE = b"\r\n"


class AnswerBegan(msgspec.Struct, frozen=True, gc=False):
    """The status and the headers of a response have arrived."""

    status: int


class BodyReceived(msgspec.Struct, frozen=True, gc=False):
    """A piece of the body has arrived."""

    data: bytes


class AnswerEnded(msgspec.Struct, frozen=True, gc=False):
    """The response is complete. ``is_reusable`` states whether the connection accepts another request."""

    is_reusable: bool


class AnswerBroken(msgspec.Struct, frozen=True, gc=False):
    """The response is invalid or ended early. The connection is unusable."""

    text: str


class _UnwantedAnswer(Exception):
    """The node sent a response that the client does not accept. The text is the reason."""


HttpNews = AnswerBegan | BodyReceived | AnswerEnded | AnswerBroken


class HttpConnection:
    """HTTP connection on one stream.

    Args:
        host: host and port of the node, as in the header ``Host``.
        headers: headers of the requests: the client's name and the credentials. A request may leave out the
            credentials.
        local_address: local address of the stream, if the driver reported it.
        remote_address: remote address of the stream (not a host name), if the driver reported it.
    """

    def __init__(
        self,
        host: str,
        headers: tuple[tuple[str, str], ...],
        local_address: str | None = None,
        remote_address: str | None = None,
    ) -> None:
        self.local_address: str | None = local_address
        self.remote_address: str | None = remote_address
        self.secrets: Secrets = secrets_of(headers)
        """Credentials in the headers."""
        self.last_received_at: float = -math.inf
        """Time of the last received bytes."""
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEADERS_SIZE_BYTES_MAX)
        self._headers = (
            ("host", quote(host, safe=IN_HOST, errors="replace")),
            ("accept-encoding", "identity"),
            *headers,
        )
        self._headers_without_credentials = without_credentials(self._headers)
        self._ordered = 0
        """Total size of all requests on the stream in bytes."""
        self._request = (0, 0)
        """Start and end of the newest request, as positions in the bytes sent on the stream."""
        self._interim_answers = 0
        self._method = ""
        """Method of the newest request."""
        self._status = 0
        """Status of the current response."""
        self._head_end: bytes | None = b""
        """Last bytes of the incomplete head of the response; None once the head is complete."""
        self._head_lines = 0
        self._chunks: ChunkDecoder | None = None
        """Decoder of a chunked body; None without one."""
        self.chunk_count: int = 0
        """Number of chunks in the newest received bytes."""
        self.is_busy: bool = False
        """Whether the response to a request is neither complete nor refused yet."""
        self.fault: decoder_faults.DecoderFault | None = None
        """Exception of the HTTP decoder, if it failed on the response; otherwise None."""
        self.is_last: bool = False
        """Whether to close the connection after the current request, because its credentials were replaced."""

    def send(self, request: HttpRequest) -> bytes:
        """Return the bytes of a request. The connection must not be busy."""
        own = self._headers if request.carries_credentials else self._headers_without_credentials
        headers = [*own, *request.headers]
        if request.body or request.method not in ("GET", "HEAD", "DELETE"):
            headers.append(("content-length", str(len(request.body))))
            if request.body:
                headers.append(("content-type", request.content_type))
        parts = [self._http.send(h11.Request(method=request.method, target=request.target, headers=headers))]
        if request.body:
            parts.append(self._http.send(h11.Data(data=request.body)))
        parts.append(self._http.send(h11.EndOfMessage()))
        data = b"".join(part for part in parts if part)
        self._request = (self._ordered, self._ordered + len(data))
        self._ordered += len(data)
        self._interim_answers = self._head_lines = 0
        self._method = request.method
        self._head_end, self._chunks = b"", None
        self.is_busy = True
        return data

    def receive(self, data: bytes) -> list[HttpNews]:
        """Return the events for received bytes. At most one of them is a piece of the body."""
        return self._take(data) if data else []

    def ends_with_stream(self) -> bool:
        """Record that the node has closed the stream. Return whether the end of the stream completes the response."""
        return any(type(news) is AnswerEnded for news in self._take(b""))

    def _take(self, data: bytes) -> list[HttpNews]:
        """Return the events for received bytes. Empty bytes stand for the end of the stream."""
        news: list[HttpNews] = []
        body: list[bytes] = []
        ending: AnswerEnded | AnswerBroken | None = None
        self.chunk_count, is_end = 0, not data
        if not self.is_busy and data:
            return [AnswerBroken("sent a response without a request")]
        try:
            if is_end:
                ending = self._parse(data, news, body)
            while data and ending is None:
                part, data = self._part(data, body)
                if part:
                    ending = self._parse(part, news, body)
            if data and ending is not None:
                # Do not reuse the connection: the bytes after the end of the response belong to no request.
                ending = AnswerEnded(is_reusable=False)
        except _UnwantedAnswer as error:
            self.is_busy = False
            ending = AnswerBroken(str(error))
        except h11.RemoteProtocolError as error:
            self.is_busy = False
            what = "ended its response early" if is_end else "sent an invalid HTTP response"
            ending = AnswerBroken(f"{what}: {one_line(str(error))}")
            # Clear the traceback. Its frame in h11 refers to the error, so they would form a reference cycle.
            error.__traceback__ = None
        except Exception as error:
            self.is_busy = False
            self.fault = decoder_faults.unexpected(decoder_faults.Decoder.HTTP, error)
            ending = AnswerBroken(str(self.fault))
        if body:
            news.append(BodyReceived(b"".join(body)))
        if ending is not None:
            news.append(ending)
        return news

    def _part(self, data: bytes, body: list[bytes]) -> tuple[bytes, bytes]:
        """Return the next bytes for h11, and the remaining bytes. Add the content of chunks to ``body``."""
        if self._head_end is not None:
            blank = _search_blank_line(self._head_end + data)
            end = blank.end() - len(self._head_end) if blank is not None else len(data)
            self._head_lines += data.count(b"\n", 0, end)
            if self._head_lines > HEAD_LINES_MAX:
                raise _UnwantedAnswer(f"sent more than {HEAD_LINES_MAX} lines of headers")
            self._head_end = b"" if blank is not None else (self._head_end + data)[-2:]
            return data[:end], data[end:]
        if self._chunks is None:
            return data, b""
        chunks, before = self._chunks, self._chunks.chunk_count
        content = chunks.receive(data)
        if content:
            body.append(content)
        self.chunk_count += chunks.chunk_count - before
        if chunks.malformed is not None:
            raise _UnwantedAnswer(f"sent an invalid HTTP response: {chunks.malformed}")
        return (b"", b"") if chunks.rest is None else (_LAST_CHUNK + chunks.rest, b"")

    def _parse(self, data: bytes, news: list[HttpNews], body: list[bytes]) -> AnswerEnded | None:
        """Parse bytes with h11. Add the events to ``news``, and the content of a body to ``body``.

        Return the event of a complete response; None if the response is incomplete.
        """
        self._http.receive_data(data)
        while self.is_busy:
            event = self._http.next_event()
            if type(event) is h11.Data:
                body.append(event.data)
            elif type(event) is h11.EndOfMessage:
                return self._end()
            elif isinstance(event, h11.Response | h11.InformationalResponse):
                news += self._begin(event)
                # Stop after the head of a chunked response: h11 does not get the chunks.
                if self._chunks is not None:
                    return None
            else:
                # h11 needs more bytes, or has paused for a switch of protocols, which the client never requests.
                return None
        return None

    def handed_over(self, byte_count: int | None) -> HandedOver:
        """Return how much of the newest request was sent.

        Args:
            byte_count: number of bytes of the stream that the driver began to send; None if the driver does not know.
        """
        start, end = self._request
        if byte_count is None or byte_count >= end:
            return HandedOver.ALL
        return HandedOver.NOTHING if byte_count <= start else HandedOver.PART

    def _begin(self, event: h11.Response | h11.InformationalResponse) -> list[HttpNews]:
        if isinstance(event, h11.InformationalResponse):
            self._interim_answers += 1
            if self._interim_answers > INTERIM_ANSWERS_MAX:
                raise _UnwantedAnswer(f"sent more than {INTERIM_ANSWERS_MAX} interim responses")
            return []
        for name, value in event.headers:
            if name == b"content-encoding" and value.lower() != b"identity":
                encoding = one_line(value.decode("latin-1"))
                raise _UnwantedAnswer(f"encoded its response with {encoding!r}, but the request accepted only identity")
        self._status, self._head_end = event.status_code, None
        is_chunked = any(name == b"transfer-encoding" for name, _ in event.headers)
        if is_chunked and event.status_code not in _BODILESS_STATUSES and self._method != "HEAD":
            self._chunks = ChunkDecoder()
        return [AnswerBegan(event.status_code)]

    def _end(self) -> AnswerEnded:
        self.is_busy = False
        is_reusable = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        if is_reusable:
            self._http.start_next_cycle()
            # Do not reuse the connection if further bytes have arrived, because they belong to no request.
            is_reusable = not self._http.trailing_data[0] and not self._may_be_unread
        return AnswerEnded(is_reusable)

    @property
    def _may_be_unread(self) -> bool:
        """Whether the node may not have read the complete request. The rest would delay the next request.

        Source: RFC 9112, section 9.3: a server that does not read the whole body must close the connection; not all do.
        """
        start, end = self._request
        return end - start > (SENT_AT_ONCE_BYTES if self._status > SUCCESS_MAX else READ_BEFORE_SUCCESS_BYTES)


class _Malformed(Exception):
    """A chunked body is invalid, or a part of it exceeds the limit. The text names the part."""


class ChunkDecoder:
    """Decoder of the chunked body of one response."""

    __slots__ = ("_is_last", "_left", "_partial", "chunk_count", "malformed", "rest")

    def __init__(self) -> None:
        self.chunk_count: int = 0
        """Number of chunks that have begun."""
        self.rest: bytes | None = None
        """Bytes after the end of the body; None before the end."""
        self.malformed: str | None = None
        """Reason why the body is malformed; None if it is not. The decoder reads nothing after a malformed part."""
        self._left = 0
        """Number of missing bytes of the current chunk and of the line break after it; 0 between chunks."""
        self._partial = b""
        """Incomplete size line or trailers."""
        self._is_last = False
        """Whether the last chunk has arrived, so that trailers follow."""

    def receive(self, data: bytes) -> bytes:
        """Return the content in ``data``, up to the end of the body or to the first malformed part."""
        content: list[bytes] = []
        try:
            self._take(self._partial + data, content)
        except _Malformed as error:
            self.malformed = str(error)
        return b"".join(content)

    def _take(self, data: bytes, content: list[bytes]) -> None:
        self._partial = b""
        position, size = 0, len(data)
        while position < size and not self._is_last:
            if self._left:
                position = self._go_on(data, position, content)
                continue
            line = _match_size(data, position)
            if line is None:
                self._keep_size(data[position:])
                return
            self.chunk_count += 1
            start = line.end()
            length = int(line[1], 16)
            end = start + length
            if not length:
                self._is_last, position = True, start
            elif data[end : end + 2] == _END_OF_LINE:
                # A complete chunk, the usual case. Calling a method here would take 16800 instructions for a small
                # chunk instead of 9600 (callgrind).
                content.append(data[start:end])
                position = end + 2
            else:
                self._left, position = length + 2, start
        if self._is_last:
            self._take_trailers(data[position:])

    def _go_on(self, data: bytes, position: int, content: list[bytes]) -> int:
        """Process the part of the current chunk and of its line break in ``data``. Return the end of that part."""
        end = min(position + self._left, len(data))
        inner = min(end, position + max(self._left - 2, 0))
        if inner > position:
            content.append(data[position:inner])
        self._left -= inner - position
        behind = data[inner:end]
        if behind and not _END_OF_LINE[2 - self._left :].startswith(behind):
            raise _Malformed(f"{behind!r} follows a chunk; expected a line break")
        self._left -= len(behind)
        return end

    def _keep_size(self, data: bytes) -> None:
        if len(data) > LINE_SIZE_BYTES_MAX or _begins_size(data) is None:
            raise _Malformed(f"{data[:40]!r} is not a chunk size")
        self._partial = data

    def _take_trailers(self, data: bytes) -> None:
        trailers = _match_trailers(data)
        if (len(data) if trailers is None else trailers.end()) > TRAILER_SIZE_BYTES_MAX:
            raise _Malformed(f"more than {TRAILER_SIZE_BYTES_MAX} bytes of trailer fields follow the last chunk")
        if trailers is not None:
            self.rest = data[trailers.end() :]
        elif b"\r\n\r\n" in data or b"\n\n" in data:
            raise _Malformed(f"{data[:40]!r} follows the last chunk; expected trailer fields")
        else:
            self._partial = data
