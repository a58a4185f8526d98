"""Server end of a TLS connection whose records a test controls."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache

import trio
import trio.testing
import trustme

from triclinium._driver.tls_stream import TlsStream

HOST = "node.example"
ENOUGH = 256 * 1024


@cache
def authority() -> trustme.CA:
    """Return the authority of all certificates here."""
    return trustme.CA()


def client_context(version: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED) -> ssl.SSLContext:
    """Return the context of a client that trusts the authority."""
    context = ssl.create_default_context()
    authority().configure_trust(context)
    context.maximum_version = version
    return context


def server_context(tickets: int = 2) -> ssl.SSLContext:
    """Return the context of a server with a certificate for ``HOST``.

    Args:
        tickets: number of session tickets that it sends after a handshake of TLS 1.3.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = tickets
    authority().issue_cert(HOST).configure_cert(context)
    return context


class TlsPeer:
    """Server side of TLS over one end of a socket, which sends records only on request."""

    def __init__(self, stream: trio.SocketStream, tickets: int = 2, context: ssl.SSLContext | None = None) -> None:
        self.stream = stream
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = context or server_context(tickets)
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    async def do_handshake(self, cut: int = ENOUGH, behind: bytes = b"") -> None:
        """Perform the handshake.

        Args:
            cut: maximum number of bytes that are sent together.
            behind: data that is sent together with the last message of the server.
        """
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self.send_raw(self.outgoing.read(), cut)
                self.incoming.write(await self.stream.receive_some())
        if behind:
            self.tls.write(behind)
        await self.send_raw(self.outgoing.read(), cut)

    def records(self, *pieces: bytes) -> bytes:
        """Return one record for each piece, without sending it."""
        for piece in pieces:
            self.tls.write(piece)
        return self.outgoing.read()

    def goodbye(self) -> bytes:
        """Return a close_notify, without sending it."""
        try:
            self.tls.unwrap()
        except ssl.SSLError:
            # The client sends no close_notify.
            pass
        return self.outgoing.read()

    async def send_raw(self, records: bytes, cut: int = ENOUGH) -> None:
        """Send bytes unchanged in parts of at most ``cut`` bytes, and let the client read each part before the next."""
        for start in range(0, len(records), cut):
            await self.stream.send_all(records[start : start + cut])
            if cut < ENOUGH:
                await trio.testing.wait_all_tasks_blocked()

    async def send(self, *pieces: bytes) -> None:
        """Send one record for each piece, all in one call."""
        await self.send_raw(self.records(*pieces))

    async def receive(self, is_enough: Callable[[bytes], bool]) -> bytes:
        """Return the client's data, up to the point where ``is_enough`` is true or the stream ends."""
        data = bytearray()
        while not is_enough(bytes(data)):
            try:
                data += self.tls.read(2**20)
            except ssl.SSLWantReadError:
                received = await self.stream.receive_some()
                if not received:
                    break
                self.incoming.write(received)
        return bytes(data)

    async def receive_exactly(self, size: int) -> bytes:
        """Return ``size`` bytes of data, which must end with a record."""
        return await self.receive(lambda data: len(data) >= size)


@asynccontextmanager
async def open_pair(
    version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, *, cut: int = ENOUGH, behind: bytes = b""
) -> AsyncIterator[tuple[TlsStream, TlsPeer]]:
    """Yield a client's stream and its peer after the handshake, and close both."""
    below, above = trio.socket.socketpair()
    stream = TlsStream(trio.SocketStream(below), client_context(version), HOST.encode())
    # If parts are small, send no tickets, because a socket pair accepts only a few parts that have not been read.
    peer = TlsPeer(trio.SocketStream(above), tickets=2 if cut == ENOUGH else 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.do_handshake)
        nursery.start_soon(peer.do_handshake, cut, behind)
    yield stream, peer
    await stream.aclose()
    await peer.stream.aclose()
