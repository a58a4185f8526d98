"""Interface of a driver under test, of its event loop, and of the standard library's sockets; a driver's author writes it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from triclinium_core.contract.neutral import NeutralEvent, Token
from triclinium_core.testing.driver_laws.neutral.scripted_machine import ScriptedMachine

E = TypeVar("E")
A = TypeVar("A")
D_co = TypeVar("D_co", bound="DriverUnderTest", covariant=True)


class Caller(Protocol):
    """A task that submits something through the driver, as the driver's users do."""

    @property
    def outcome(self) -> object:
        """Result, or the exception that was raised in the task; None while it waits."""
        ...

    def leave(self) -> None:
        """Cancel it, as the event loop does that for users. It must not matter which task calls this, or when."""
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

    def submit(self) -> Caller:
        """Start a task that submits something to the machine and waits for the outcome, and return at once."""
        ...

    def listen(self) -> Listener:
        """Return a socket that listens on loopback."""
        ...

    async def turn(self) -> None:
        """Let the driver do its work: read, write, connect, run tasks.

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
        """Close the driver, while tasks still wait. It is closed once more when its block is left."""
        ...


class Bench(Protocol[E, A, D_co]):
    """One protocol, with events ``E`` and actions ``A``, whose driver ``D_co`` is put on trial."""

    def open(self) -> AbstractAsyncContextManager[tuple[ScriptedMachine[E, A], D_co]]:
        """Give the block a scripted machine and a driver at work on it, and close the driver."""
        ...

    def submitted(self, event: E | NeutralEvent) -> Token | None:
        """Return the token of an event that submits something; None for any other event."""
        ...

    def abandoned(self, event: E | NeutralEvent) -> Token | None:
        """Return the token of an event that reports that the waiting task has left; None for any other event."""
        ...

    def completion(self, token: Token) -> A:
        """Return the action that resumes the task of a token with ``result(token)``."""
        ...

    def result(self, token: Token) -> object:
        """Return a result that differs from those of all other tokens."""
        ...
