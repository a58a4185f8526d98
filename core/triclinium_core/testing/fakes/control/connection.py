"""One connection to the control API: an h11 server that reads one request, sends the response and closes."""

from __future__ import annotations

import h11

from triclinium_core.testing.fakes.control.api import ControlApi, ControlRequest, ControlResponse, refused
from triclinium_core.testing.fakes.control.command_text import COMMAND_SIZE_MAX

HEAD_SIZE_MAX = 16 * 1024
"""Maximum size in bytes of the head of a request."""

_HEAD_TOO_LARGE = 431


class ControlConnection:
    """One client of the API.

    Args:
        api: the API.
    """

    def __init__(self, api: ControlApi) -> None:
        self._api = api
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_SIZE_MAX)
        self._head: h11.Request | None = None
        self._body = bytearray()
        self.is_over: bool = False
        """Whether the connection is to be closed after the returned bytes have been sent."""

    def receive(self, data: bytes) -> bytes:
        """Process bytes from the client, empty at their end, and return the bytes to send."""
        if self.is_over:
            return b""
        try:
            self._http.receive_data(data)
            return self._read()
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == _HEAD_TOO_LARGE:
                return self._end(_too_large())
            text = f"the request is not valid HTTP: {error}"
            return self._end(refused(error.error_status_hint, "request", text, ["HTTP/1.1"]))

    def _read(self) -> bytes:
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Request):
                self._head = event
                if _size_of(event) > HEAD_SIZE_MAX:
                    return self._end(_too_large())
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > COMMAND_SIZE_MAX:
                    text = f"the body exceeds {COMMAND_SIZE_MAX} bytes"
                    return self._end(refused(413, "body", text, [f"at most {COMMAND_SIZE_MAX} bytes"]))
            elif isinstance(event, h11.EndOfMessage):
                return self._end(self._api.respond(self._request()))
            elif isinstance(event, h11.ConnectionClosed):
                self.is_over = True
                return b""
            else:
                return self._continuation()

    def _continuation(self) -> bytes:
        if not self._http.they_are_waiting_for_100_continue:
            return b""
        return self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b""

    def _request(self) -> ControlRequest:
        assert self._head is not None
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._head.headers]
        method, target = self._head.method.decode("latin-1"), self._head.target.decode("latin-1")
        return ControlRequest(method, target, headers, bytes(self._body))

    def _end(self, response: ControlResponse) -> bytes:
        self.is_over = True
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return b""
        content = response.content
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(content))),
            ("Cache-Control", "no-store"),
            ("Connection", "close"),
            *response.headers,
        ]
        sent = [
            self._http.send(h11.Response(status_code=response.status, headers=headers)),
            b"" if self._head is not None and self._head.method == b"HEAD" else self._http.send(h11.Data(data=content)),
            self._http.send(h11.EndOfMessage()),
        ]
        return b"".join(part or b"" for part in sent)


def _size_of(head: h11.Request) -> int:
    """Return the size of a head in bytes. h11 limits only a head that has not arrived completely."""
    return len(head.method) + len(head.target) + sum(len(name) + len(value) for name, value in head.headers)


def _too_large() -> ControlResponse:
    text = f"the head of the request exceeds {HEAD_SIZE_MAX} bytes"
    return refused(_HEAD_TOO_LARGE, "request", text, [f"at most {HEAD_SIZE_MAX} bytes"])
