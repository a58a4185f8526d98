"""Connections by their streams.

A stream that the client closes is remembered with its requests until the driver has said how much of them had left.

Source: decision C24.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from triclinium_core.contract.couchbase import Action
from triclinium_core.contract.neutral import OpenStream, StreamId
from triclinium_core.retry.couchbase import HandedOver
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.in_flight import InFlightRequest, Owner


class LostRequest(NamedTuple):
    """A request that will not be answered, and how much of it has left."""

    owner: Owner
    handed_over: HandedOver
    detail: str


@dataclass(frozen=True, slots=True)
class ClosedStream:
    """A stream that the driver was told to close, and has not said yet how much it had handed over."""

    requests: Sequence[InFlightRequest]
    detail: str

    def lose(self, handed_over: int) -> list[LostRequest]:
        """Return what became of each request, given how many bytes of the stream the driver had begun to hand over."""
        return [LostRequest(each.owner, each.handed_over(handed_over), self.detail) for each in self.requests]


class Streams:
    """The present stream of each connection; every one has a number of its own."""

    def __init__(self, emit: Callable[[Action], None], stream_ids: Callable[[], StreamId], *, tls: bool) -> None:
        self._emit = emit
        self._stream_ids = stream_ids
        self._tls = tls
        self.connections: dict[StreamId, Connection] = {}
        """Connection of each current stream."""
        self._present: dict[Connection, StreamId] = {}
        self._closed: dict[StreamId, ClosedStream] = {}

    def connection(self, stream: int | None) -> Connection | None:
        """Return the connection that a stream belongs to, or None once it is lost."""
        return None if stream is None else self.connections.get(StreamId(stream))

    def of(self, connection: Connection) -> StreamId | None:
        """Return the present stream of a connection; None where it has none."""
        return self._present.get(connection)

    def open(self, connection: Connection) -> StreamId:
        """Order a stream to the address that a connection has chosen, and return it."""
        stream = self._stream_ids()
        connection.in_flight.begin(stream)
        self.connections[stream] = connection
        self._present[connection] = stream
        self._emit(OpenStream(stream, connection.address.host, connection.address.port, self._tls))
        return stream

    def forget(self, connection: Connection, stream: StreamId) -> None:
        """Take the present stream from a connection."""
        del self._present[connection], self.connections[stream]

    def keep(self, stream: StreamId, requests: Sequence[InFlightRequest], detail: str) -> None:
        """Remember what travelled on a stream that is being closed: only the driver knows how much of it has left."""
        if requests:
            self._closed[stream] = ClosedStream(requests, detail)

    def take(self, stream: StreamId) -> ClosedStream | None:
        """Return what ``keep`` remembered, once."""
        return self._closed.pop(stream, None)
