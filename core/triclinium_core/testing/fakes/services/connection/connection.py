"""One client's connection to a service: an h11 server that reads requests and sends responses on time.

Theory of operation. One request is answered at a time: later requests wait in h11. A response is a sequence of pieces,
each with its delay. A piece is sent when it is due and the client has room, and only then is the next piece created. So
an endless response takes no memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import h11
from msgspec.structs import replace

from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.cluster.outbox import HangUp, NodeAction, SendReply
from triclinium_core.testing.fakes.fault_table import Faults
from triclinium_core.testing.fakes.faults import ServiceFault
from triclinium_core.testing.fakes.services.answers import Piece, ServiceReply
from triclinium_core.testing.fakes.services.connection.wire import AfterAnswer, Journey, journey_of
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.services.faults import HangUpMidRequest
from triclinium_core.testing.fakes.services.request_log import LoggedRequest

HEAD_SIZE_MAX = 65_536
"""Maximum size in bytes of a request's head that has not arrived completely."""
BODY_SIZE_MAX = 20 * 1024 * 1024
"""Maximum size in bytes of the body of a request: the maximum size of a document."""
UNREAD_SIZE_MAX = 262_144
"""Number of bytes received during a response at which the node stops reading from the client."""


class ServedConnection:
    """One connection, with the number that the driver has assigned."""

    def __init__(self, number: int, service: Service, unsent_size_max: float) -> None:
        self.number: int = number
        self.service: Service = service
        self.has_certificate: bool = False
        """Whether TLS has authenticated the client."""
        self.is_over: bool = False
        """Whether the node has closed the connection."""
        self.fault: ServiceFault | None = None
        """Fault of the request in progress; None without one."""
        self.logged: LoggedRequest | None = None
        """Request that is being answered; None without one."""
        self.followed: str | None = None
        """Bucket whose configs are streamed to the client; empty for the global config, None for no configs."""
        self.known_version: object = None
        """Version of the newest config sent to the client."""
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_SIZE_MAX)
        self._head: h11.Request | None = None
        self._is_head = False
        """Whether the method of the last request is HEAD."""
        self._body = bytearray()
        self._read_size = 0
        """Bytes received of the current request."""
        self._pieces: Iterator[Piece] | None = None
        self._next: Piece | None = None
        self._ending = AfterAnswer.AS_SAID
        self._due = -math.inf
        self._unsent_size = 0
        self._unsent_size_max = unsent_size_max
        self._unread_size = 0

    @property
    def is_answering(self) -> bool:
        """Whether a response is being sent."""
        return self._pieces is not None

    @property
    def due(self) -> float:
        """Time of the next piece of a response; infinity without one, or while the client has no room."""
        return self._due if self._next is not None and self._has_room else math.inf

    @property
    def may_be_read(self) -> bool:
        """Whether the node reads more bytes from the client."""
        return self._unread_size < UNREAD_SIZE_MAX

    @property
    def _has_room(self) -> bool:
        return self._unsent_size < self._unsent_size_max

    def receive(self, data: bytes, faults: Faults) -> FakeRequest | None:
        """Process bytes from the client, and return the request that they complete, or None.

        Check afterwards whether the connection is over.
        """
        if self.is_answering:
            self._unread_size += len(data)
        elif self._ending is AfterAnswer.DEAF and data:
            self.is_over = True
            return None
        self._http.receive_data(data)
        return None if self.is_answering else self._read(len(data), faults)

    def next_request(self, faults: Faults) -> FakeRequest | None:
        """Return the request that arrived during the last response, or None."""
        size, self._unread_size = self._unread_size, 0
        return self._read(size, faults) if size else None

    def _read(self, size: int, faults: Faults) -> FakeRequest | None:
        if size and not self._read_size:
            self.fault = faults.take_of(self.service)
        self._read_size += size
        if isinstance(self.fault, HangUpMidRequest) and self._read_size >= self.fault.bytes_read:
            self.is_over = True
            return None
        try:
            while True:
                match self._http.next_event():
                    case h11.Request(http_version=b"1.0" | b"1.1") as head:
                        self._head = head
                    case h11.Data(data=data):
                        self._body += data
                        if len(self._body) > BODY_SIZE_MAX:
                            self.is_over = True
                            return None
                    case h11.EndOfMessage():
                        return self._whole()
                    case h11.NEED_DATA:
                        return None
                    case _:
                        self.is_over = True
                        return None
        except h11.RemoteProtocolError:
            # A real node tries to send a 400. The fake only closes the connection, because no client that sends valid
            # HTTP gets that 400.
            self.is_over = True
            return None

    def _whole(self) -> FakeRequest:
        head = self._head
        assert head is not None
        self._is_head = head.method == b"HEAD"
        request = FakeRequest(
            method=head.method.decode(),
            target=head.target.decode("latin-1"),
            headers={name.decode(): value.decode("latin-1") for name, value in head.headers},
            body=bytes(self._body),
        )
        self._head, self._read_size = None, 0
        self._body.clear()
        return request

    def travel(self, reply: ServiceReply, fault: ServiceFault | None, slowness: float, now: float) -> Journey:
        """Start to deliver a response, and return its ``Journey``; ``leave`` sends the due pieces."""
        if self._is_head:
            reply = replace(reply, follows=None, sends_body=False)
        journey = journey_of(self._http, reply, fault)
        self._pieces, self._ending = journey.pieces, journey.ending
        self.followed = reply.follows
        self._due = now + slowness
        self._advance()
        return journey

    def follows(self, version: object) -> bool:
        """Return whether the client listens to configs, and the node must send it the config of this version now."""
        return self.followed is not None and self._next is None and self.known_version != version

    def push(self, data: bytes, now: float) -> None:
        """Send another piece of an endless response."""
        chunk = self._http.send(h11.Data(data=data))
        assert chunk is not None
        self._next, self._due = Piece(chunk), now

    def leave(self, now: float) -> list[NodeAction]:
        """Return the actions that send the due pieces for which there is room, and that close a finished connection."""
        data = bytearray()
        while self._next is not None and self._due <= now and self._has_room:
            data += self._next.data
            self._unsent_size += len(self._next.data)
            self._advance()
        actions: list[NodeAction] = [SendReply(self.number, bytes(data))] if data else []
        if self.logged is not None:
            self.logged.bytes_sent += len(data)
        if self.is_answering and self._next is None and self.followed is None:
            self._end()
        if self.is_over:
            actions.append(HangUp(self.number))
        return actions

    def written(self, size: int) -> None:
        """Record that ``size`` bytes were written."""
        self._unsent_size -= size

    def _advance(self) -> None:
        assert self._pieces is not None
        self._next = next((piece for piece in self._pieces if piece.data or piece.delay), None)
        if self._next is not None:
            self._due += self._next.delay

    def _end(self) -> None:
        """End a response after its last piece."""
        self._pieces = None
        if self.logged is not None and self._ending is not AfterAnswer.DEAF:
            self.logged.is_answered = True
            self.logged = None
        if self._ending is AfterAnswer.AS_SAID:
            if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
                self._http.start_next_cycle()
            else:
                self.is_over = True
        elif self._ending is AfterAnswer.HANG_UP:
            self.is_over = True
