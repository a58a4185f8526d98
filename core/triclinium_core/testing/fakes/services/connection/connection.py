"""One client's connection to a service, by h11 in the role of the server: requests are read, and answers leave in time.

Theory of operation. One request is answered at a time: what comes behind it waits in h11. An answer is a row of
pieces, each with its delay; a piece leaves when it is due and the client has room, and only then is the next one made.
So an answer without an end takes no memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import h11

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
"""Bytes of the head of a request."""
BODY_SIZE_MAX = 20 * 1024 * 1024
"""Bytes of its body: as much as a document may have."""
UNREAD_SIZE_MAX = 262_144
"""Bytes behind a request that is being answered, from which on the client is not read."""


class ServedConnection:
    """One connection, by the number that the driver gave it."""

    def __init__(self, number: int, service: Service, unsent_size_max: float) -> None:
        self.number: int = number
        self.service: Service = service
        self.has_certificate: bool = False
        """Whether TLS has told who the client is."""
        self.is_over: bool = False
        """Whether the node has hung up."""
        self.fault: ServiceFault | None = None
        """What strikes the request that has begun."""
        self.logged: LoggedRequest | None = None
        """The request that is being answered."""
        self.followed: str | None = None
        """The bucket whose configs go to the client, empty for the global one; None for none."""
        self.known_version: object = None
        """The version of the newest config that went there."""
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_SIZE_MAX)
        self._head: h11.Request | None = None
        self._body = bytearray()
        self._read_size = 0
        """Bytes of the request that has begun."""
        self._pieces: Iterator[Piece] | None = None
        self._next: Piece | None = None
        self._ending = AfterAnswer.AS_SAID
        self._due = -math.inf
        self._unsent_size = 0
        self._unsent_size_max = unsent_size_max
        self._unread_size = 0

    @property
    def is_answering(self) -> bool:
        """Whether an answer is on its way."""
        return self._pieces is not None

    @property
    def due(self) -> float:
        """When the next piece of an answer leaves; infinity while the client has no room, or where there is none."""
        return self._due if self._next is not None and self._has_room else math.inf

    @property
    def may_be_read(self) -> bool:
        """Whether more of what the client sends can be taken up."""
        return self._unread_size < UNREAD_SIZE_MAX

    @property
    def _has_room(self) -> bool:
        return self._unsent_size < self._unsent_size_max

    def receive(self, data: bytes, faults: Faults) -> FakeRequest | None:
        """Take up what the client sent, and return the request that is whole now.

        Whether the connection is over is to be looked at afterwards.
        """
        if self.is_answering:
            self._unread_size += len(data)
        elif self._ending is AfterAnswer.DEAF and data:
            self.is_over = True
            return None
        self._http.receive_data(data)
        return None if self.is_answering else self._read(len(data), faults)

    def next_request(self, faults: Faults) -> FakeRequest | None:
        """Return the request that came while the last one was being answered; None where there is none."""
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
            # A real node says 400 where it can; a client of HTTP never sees this one.
            self.is_over = True
            return None

    def _whole(self) -> FakeRequest:
        head = self._head
        assert head is not None
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
        """Have an answer begin its journey, and return it; ``leave`` sends what is due of it."""
        journey = journey_of(self._http, reply, fault)
        self._pieces, self._ending = journey.pieces, journey.ending
        self.followed = reply.follows
        self._due = now + slowness
        self._advance()
        return journey

    def follows(self, version: object) -> bool:
        """Tell whether the client listens to configs, and that of this version is to be sent now."""
        return self.followed is not None and self._next is None and self.known_version != version

    def push(self, data: bytes, now: float) -> None:
        """Send another piece of an answer that has no end of its own."""
        chunk = self._http.send(h11.Data(data=data))
        assert chunk is not None
        self._next, self._due = Piece(chunk), now

    def leave(self, now: float) -> list[NodeAction]:
        """Return what sends the pieces that are due and for which there is room, and hangs up behind them."""
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
        """Record that so many bytes were written."""
        self._unsent_size -= size

    def _advance(self) -> None:
        assert self._pieces is not None
        self._next = next((piece for piece in self._pieces if piece.data or piece.delay), None)
        if self._next is not None:
            self._due += self._next.delay

    def _end(self) -> None:
        """End an answer all of which was sent."""
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
