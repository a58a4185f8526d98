"""What the laws need of a driver, and of the standard library's sockets; the author of a driver writes this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from triclinium_core.client.machine import Machine
from triclinium_core.kv.operation.requests import Operation
from triclinium_core.kv.operation.results import Result
from triclinium_core.services.request import ServiceRequest, ServiceResult


class Caller(Protocol):
    """A task that performs one operation through the driver, as the driver's users do."""

    @property
    def outcome(self) -> Result | ServiceResult | BaseException | None:
        """What it got, or what was raised in it; None while it waits."""
        ...

    def leave(self) -> None:
        """Cancel it, as the event loop does that for users. It must not matter who calls this, or when."""
        ...


class Reader(Caller, Protocol):
    """A task that asks a service and reads the rows, as the driver's users do; its outcome is what came after the rows."""

    @property
    def rows(self) -> Sequence[bytes]:
        """All rows that it has got so far, oldest first."""
        ...

    def read_on(self) -> None:
        """Have it ask for more, once: it takes the first rows by itself, and then waits for this."""
        ...


class _Socket(Protocol):
    def setblocking(self, flag: bool, /) -> None: ...

    def close(self) -> None: ...


class PeerSocket(_Socket, Protocol):
    """The other end of a stream: what ``socket.accept`` returns."""

    def recv(self, size: int, /) -> bytes:
        """Do as ``socket.socket`` does."""
        ...

    def send(self, data: bytes, /) -> int:
        """Do as ``socket.socket`` does."""
        ...


class Listener(_Socket, Protocol):
    """A listening socket: ``socket.create_server(("127.0.0.1", 0))`` returns one."""

    def getsockname(self) -> tuple[str, int]:
        """Do as ``socket.socket`` does, for IPv4."""
        ...

    def accept(self) -> tuple[PeerSocket, object]:
        """Do as ``socket.socket`` does."""
        ...


class DriverUnderTest(Protocol):
    """A driver at work, and the event loop that it lives in."""

    def submit(self, operation: Operation) -> Caller:
        """Start a task that performs ``operation``, and return at once."""
        ...

    def ask(self, request: ServiceRequest) -> Reader:
        """Start a task that asks a service and reads its rows piece by piece, and return at once."""
        ...

    def listen(self) -> Listener:
        """Return a socket that listens on loopback."""
        ...

    async def turn(self) -> None:
        """Let the driver do what there is to do: read, write, connect, run tasks.

        Sleep for a real millisecond, blocking, so that the system gets its turn, then let the event loop go round a few
        times. The driver's clock need not move meanwhile.
        """
        ...

    def pass_time(self, seconds: float) -> None:
        """Have ``seconds`` pass on the driver's clock while nothing of the driver runs, as in a busy program.

        It is a jump where the clock is virtual, else ``time.sleep``.
        """
        ...

    async def close(self) -> None:
        """Close the driver, with operations still open. It is closed once more when its block is left."""
        ...


OpenDriver = Callable[[Machine], AbstractAsyncContextManager[DriverUnderTest]]
"""Gives a block a driver that runs a machine, and closes it. Its resolver finds no service, and sends no query."""
