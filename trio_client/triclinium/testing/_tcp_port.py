"""TCP port of one service of a fake node: open while the node is alive, and reserved while it is dead."""

from __future__ import annotations

import socket
import ssl
import struct

import trio

from triclinium.testing._node_server import NodeServer, close_forcefully
from triclinium.testing._tls import names_of, welcome_to_tls
from triclinium_core import errors
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeNode

BACKLOG = 0xFFFF
"""Number of connections that may wait to be accepted; the system lowers it to its own maximum."""

RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""Value of ``SO_LINGER``: on, with zero seconds."""


class TcpPort:
    """Port of one service of a node.

    A closed port refuses connections, like the port of a process that has died. Meanwhile a socket that does not listen
    holds its number, so that no other process gets it and the same port can be opened again.

    Args:
        node: the node.
        service: service at the port.
        listener: socket that listens on the port.
        ssl_context: context of a port for TLS; None without TLS.
    """

    def __init__(
        self, node: FakeNode, service: Service, listener: trio.SocketListener, ssl_context: ssl.SSLContext | None
    ) -> None:
        self.service: Service = service
        self._node = node
        self._ssl_context = ssl_context
        self._address = listener.socket.getsockname()
        self._family = listener.socket.family
        self._listener: trio.SocketListener | None = listener
        self._reserved: socket.socket | None = None
        self._opened = trio.lowlevel.ParkingLot()

    @property
    def port(self) -> int:
        """Number of the port."""
        port = self._address[1]
        assert isinstance(port, int)
        return port

    def follow_node(self) -> None:
        """Open or close the port, depending on the node.

        Raises:
            InvalidArgumentException: the port cannot be opened again.
        """
        if self._node.is_listening == (self._listener is not None):
            return
        if self._listener is not None:
            self._listener.socket.close()
            self._listener = None
            self._reserve()
            return
        self._listener = self._listen_again()
        self._reserved = None
        self._opened.unpark_all()

    def _reserve(self) -> None:
        """Reserve the closed port, unless another process has just taken it."""
        try:
            self._reserved = _bound(self._family, self._address)
        except OSError:
            self._reserved = None

    def _listen_again(self) -> trio.SocketListener:
        try:
            if self._reserved is None:
                self._reserved = _bound(self._family, self._address)
            # With the option, the port can be bound again while its old connections are in TIME_WAIT.
            self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._reserved.listen(BACKLOG)
        except OSError as error:
            raise errors.InvalidArgumentException(
                f"port {self.port} of {self.service} cannot be opened again: {error}; if another process uses it, end "
                "that process",
                parameter="index",
            ) from error
        self._reserved.setblocking(False)
        return trio.SocketListener(trio.socket.from_stdlib_socket(self._reserved))

    def close(self) -> None:
        """Close the port."""
        for each in (self._listener and self._listener.socket, self._reserved):
            if each is not None:
                each.close()

    async def serve(self, server: NodeServer) -> None:
        """Accept connections whenever the port is open.

        Cancellation: the port stays open until ``close``.
        """
        while True:
            if self._listener is None:
                await self._opened.park()
                continue

            async def welcome(tcp: trio.SocketStream) -> None:
                await self._welcome(server, tcp)

            await server.serve_listener(welcome, self._listener)

    async def _welcome(self, server: NodeServer, tcp: trio.SocketStream) -> None:
        if not server.accepts(self._node):
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            await close_forcefully(tcp)
        elif self._ssl_context is None:
            await server.serve_stream(tcp, self._node, self.service)
        else:
            stream = await welcome_to_tls(tcp, self._ssl_context)
            if stream is not None:
                names = names_of(stream.getpeercert())
                await server.serve_stream(stream, self._node, self.service, certificate_names=names)


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    """Return a socket that has a port, does not listen, and lets no other socket have the port."""
    reserved = socket.socket(family, socket.SOCK_STREAM)
    try:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            reserved.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        reserved.bind(address)
        # While the option is set, another socket with this option could take the port.
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    except OSError:
        reserved.close()
        raise
    return reserved
