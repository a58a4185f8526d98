"""Scripted HTTP server on the loopback interface; h11 implements the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import h11
import trio


@dataclass(frozen=True)
class HttpReply:
    """Response to a request."""

    status: int = 200
    body: bytes = b"welcome"
    headers: tuple[tuple[str, str], ...] = ()
    body_sent: int | None = None
    """Number of body bytes after which the server closes the connection; None sends all of them."""
    stalls: bool = False
    """Whether the server never sends the body, and keeps the connection open."""


@dataclass(frozen=True)
class HangUpHttp:
    """Step that closes the connection after the request, without a response."""


@dataclass(frozen=True)
class Silence:
    """Step that never responds to the request."""


HttpStep = HttpReply | HangUpHttp | Silence


@dataclass
class HttpServer:
    """Server that runs its script, one step per request, across all connections."""

    script: Iterable[HttpStep]
    received: list[tuple[str, bytes]] = field(default_factory=list)
    """Method and body of each request."""
    connections: int = 0
    """Number of accepted connections."""
    url: str = ""
    _steps: Iterator[HttpStep] = field(init=False)
    _arrivals: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    def __post_init__(self) -> None:
        self._steps = iter(self.script)

    async def wait_received(self, count: int) -> None:
        """Wait until ``count`` requests have arrived."""
        while len(self.received) < count:
            await self._arrivals.park()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection until either side closes it."""
        self.connections += 1
        try:
            async with stream:
                await self._serve(stream)
        except (trio.BrokenResourceError, h11.RemoteProtocolError):
            """The client closed the connection in the middle of an exchange, as some tests do."""

    async def _serve(self, stream: trio.SocketStream) -> None:
        protocol = h11.Connection(h11.SERVER)
        while True:
            request = await _receive(protocol, stream)
            if request is None:
                return
            self.received.append(request)
            self._arrivals.unpark_all()
            step = next(self._steps)
            if isinstance(step, HangUpHttp):
                return
            if isinstance(step, Silence):
                await stream.receive_some()
                return
            await _answer(protocol, stream, step)
            if step.stalls:
                await stream.receive_some()
            if protocol.our_state is not h11.DONE:
                return
            protocol.start_next_cycle()


async def _receive(protocol: h11.Connection, stream: trio.SocketStream) -> tuple[str, bytes] | None:
    method, body = "", b""
    while True:
        event = protocol.next_event()
        if event is h11.NEED_DATA:
            protocol.receive_data(await stream.receive_some())
        elif isinstance(event, h11.Request):
            method = event.method.decode()
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            return method, body
        else:
            return None


async def _answer(protocol: h11.Connection, stream: trio.SocketStream, step: HttpReply) -> None:
    headers = [*step.headers, ("content-length", str(len(step.body)))]
    data = protocol.send(h11.Response(status_code=step.status, headers=headers))
    if not step.stalls:
        data += protocol.send(h11.Data(data=step.body[: step.body_sent]))
    if step.body_sent is None and not step.stalls:
        data += protocol.send(h11.EndOfMessage())
    await stream.send_all(data)


@asynccontextmanager
async def serving(*script: HttpStep) -> AsyncIterator[HttpServer]:
    """Serve for the duration of a block, at ``server.url``."""
    server = HttpServer(script)
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, server.serve, listeners)
        server.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/"
        yield server
        nursery.cancel_scope.cancel()
