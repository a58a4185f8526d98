"""Client for the services of fake nodes that exchanges bytes; h11 encodes requests and decodes responses."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import h11

from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.outbox import HangUp, NodeAction, SendReply


def basic(credentials: str) -> str:
    """Return the authorization header for credentials in the form ``user:password``."""
    return "Basic " + base64.b64encode(credentials.encode()).decode()


BASIC = basic("Administrator:password")


@dataclass(frozen=True, slots=True)
class Answered:
    """A complete response."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    times: Sequence[float] = field(default=())
    """Arrival times of the pieces of the body."""

    @property
    def document(self) -> dict[str, object]:
        """Body of the response, which must be a JSON object."""
        document = json.loads(self.body)
        assert isinstance(document, dict)
        return document

    @property
    def rows(self) -> list[Any]:
        """The rows of a query."""
        rows = self.document["results"]
        assert isinstance(rows, list)
        return rows

    @property
    def codes(self) -> list[int]:
        """The error codes of a query."""
        errors = self.document.get("errors", [])
        assert isinstance(errors, list)
        return [error["code"] for error in errors]


class HttpClient:
    """One connection, whose next step is at the time ``now``."""

    def __init__(
        self,
        node: FakeNode,
        service: Service = Service.QUERY,
        connection: int = 1,
        *,
        now: float = 0.0,
        authorization: str | None = BASIC,
    ) -> None:
        self.node = node
        self.connection = connection
        self.now = now
        self.authorization = authorization
        self.received = b""
        self.is_hung_up = False
        self.http = h11.Connection(h11.CLIENT)
        self.head: h11.Response | None = None
        self.body = b""
        self.times: list[float] = []
        self.take(node.connection_opened(connection, now, service=service))

    def encode(self, method: str, target: str, body: bytes = b"", **headers: str) -> bytes:
        """Return a request; underscores in header names become dashes."""
        sent = {"host": "fake", "content-length": str(len(body)), "content-type": "application/json"}
        if self.authorization is not None:
            sent["authorization"] = self.authorization
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = h11.Request(method=method, target=target, headers=list(sent.items()))
        pieces = [self.http.send(event) for event in (request, h11.Data(data=body), h11.EndOfMessage())]
        return b"".join(piece for piece in pieces if piece)

    def send(self, data: bytes, *, piece: int | None = None) -> None:
        """Send bytes, in pieces of at most ``piece`` bytes."""
        for start in range(0, len(data), piece or len(data)):
            self.take(self.node.bytes_received(self.connection, data[start : start + (piece or len(data))], self.now))

    def take(self, actions: Sequence[NodeAction]) -> None:
        """Receive the bytes that the actions send to this connection."""
        for action in actions:
            match action:
                case SendReply(self.connection, data):
                    assert not self.is_hung_up, "bytes after the end"
                    self.received += data
                    self.http.receive_data(data)
                case HangUp(self.connection):
                    self.is_hung_up = True
                case _:
                    pass

    def wait(self, now: float) -> None:
        """Receive everything due until ``now``, each piece at its own time."""
        self.read()
        while self.node.wakeup <= now:
            self.now = max(self.now, self.node.wakeup)
            self.take(self.node.time_passed(self.now))
            self.read()
        self.now = now

    def read(self) -> bool:
        """Decode the received bytes and return whether the response is complete; h11 raises on invalid HTTP."""
        while True:
            match self.http.next_event():
                case h11.Response() as head:
                    self.head = head
                case h11.Data(data=data):
                    self.body += data
                    self.times.append(self.now)
                case h11.EndOfMessage():
                    return True
                case _:
                    return False

    def answered(self) -> Answered:
        """Return the complete response, and prepare for the next request."""
        assert self.head is not None or self.read(), self.received
        if self.http.their_state is h11.SEND_BODY:
            assert self.read(), self.received
        head, body, times = self.head, self.body, tuple(self.times)
        assert head is not None
        self.head, self.body = None, b""
        self.times.clear()
        if self.http.our_state is h11.DONE and self.http.their_state is h11.DONE:
            self.http.start_next_cycle()
        return Answered(head.status_code, {name.decode(): value.decode() for name, value in head.headers}, body, times)

    def ask(self, method: str, target: str, body: bytes = b"", **headers: str) -> Answered:
        """Send a request and return its immediate response."""
        self.send(self.encode(method, target, body, **headers))
        return self.answered()

    def encode_query(self, statement: str | None = None, **parameters: object) -> bytes:
        """Return a query request; ``args`` and named parameters may be among the parameters."""
        document = {} if statement is None else {"statement": statement}
        return self.encode("POST", "/query/service", json.dumps(document | parameters).encode())

    def query(self, statement: str | None = None, **parameters: object) -> Answered:
        """Send a query and return its immediate response."""
        self.send(self.encode_query(statement, **parameters))
        return self.answered()
