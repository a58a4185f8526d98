"""Current streams of the connections, and requests of closed streams that the driver has not reported as lost.

The client keeps the requests of a stream that it closes until the driver reports how many bytes it began to send.

Source: decision C24.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from triclinium_core.contract.couchbase import Action
from triclinium_core.contract.neutral import OpenStream, StreamId
from triclinium_core.decision_tape.recorder import DecisionRecorder
from triclinium_core.retry.couchbase import HandedOver
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.in_flight import InFlightRequest, Owner


class LostRequest(NamedTuple):
    """A request that will get no response, and how much of it was sent."""

    owner: Owner
    handed_over: HandedOver
    detail: str


@dataclass(frozen=True, slots=True)
class ClosedStream:
    """A closed stream for which the driver has not yet reported how many bytes it began to send."""

    requests: Sequence[InFlightRequest]
    detail: str

    def lose(self, handed_over: int) -> list[LostRequest]:
        """Return the lost requests, given how many bytes of the stream the driver began to send."""
        return [LostRequest(each.owner, each.handed_over(handed_over), self.detail) for each in self.requests]


class Streams:
    """Current stream of each connection. Stream ids are unique in the client."""

    def __init__(
        self,
        emit: Callable[[Action], None],
        stream_ids: Callable[[], StreamId],
        *,
        tls: bool,
        recorder: DecisionRecorder | None = None,
    ) -> None:
        self._emit = emit
        self._recorder = recorder
        self._stream_ids = stream_ids
        self._tls = tls
        self.connections: dict[StreamId, Connection] = {}
        """Connection of each current stream."""
        self._present: dict[Connection, StreamId] = {}
        self._closed: dict[StreamId, ClosedStream] = {}

    def connection(self, stream: int | None) -> Connection | None:
        """Return the connection of a current stream; None for None and for a stream that is not current."""
        return None if stream is None else self.connections.get(StreamId(stream))

    def of(self, connection: Connection) -> StreamId | None:
        """Return the current stream of a connection; None if the connection has no stream."""
        return self._present.get(connection)

    def open(self, connection: Connection) -> StreamId:
        """Order the driver to open a stream to the address of a connection, and return the id of the stream."""
        stream = self._stream_ids()
        connection.in_flight.begin(stream)
        self.connections[stream] = connection
        self._present[connection] = stream
        if self._recorder is not None:
            self._recorder.connection("opening", stream, connection.node, connection.bucket)
        self._emit(OpenStream(stream, connection.address.host, connection.address.port, self._tls))
        return stream

    def forget(self, connection: Connection, stream: StreamId) -> None:
        """Remove the current stream of a connection."""
        del self._present[connection], self.connections[stream]

    def keep(self, stream: StreamId, requests: Sequence[InFlightRequest], detail: str) -> None:
        """Keep the requests of a closed stream until the driver reports how many bytes it began to send."""
        if requests:
            self._closed[stream] = ClosedStream(requests, detail)

    def take(self, stream: StreamId) -> ClosedStream | None:
        """Remove and return the stream that ``keep`` stored under this id; None without one."""
        return self._closed.pop(stream, None)
