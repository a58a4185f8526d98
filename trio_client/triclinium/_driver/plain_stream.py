"""Direct access to plain sockets, without trio's streams."""

from __future__ import annotations

import socket
from collections.abc import Callable

import trio

from triclinium_core.work import PIECE_SIZE_BYTES_MAX


class PlainStream:
    """Direct access to the socket of a ``trio.SocketStream``, which still owns the socket. It queues no bytes.

    Args:
        bare: second object for the socket, set to non-blocking.
    """

    is_behind: bool = False

    def __init__(self, bare: socket.socket) -> None:
        self._socket = bare
        self.send_now: Callable[[bytes], int] = bare.send

    def is_readable(self) -> bool:
        """Return whether the socket has something to read, as the function ``is_readable`` does."""
        return is_readable(self._socket)

    async def receive_some(self) -> bytes:
        """Return received bytes, or wait for some; empty at the end.

        The call takes one turn of trio's loop; trio's stream takes two.
        """
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(PIECE_SIZE_BYTES_MAX)
            except BlockingIOError:
                continue


def is_readable(bare: socket.socket) -> bool:
    """Return whether a non-blocking socket has bytes or the end of the stream to read.

    Raises:
        OSError: the connection is lost. The socket raises this error only once.
    """
    try:
        bare.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    return True
