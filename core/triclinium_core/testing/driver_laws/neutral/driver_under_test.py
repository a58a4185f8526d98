"""Interfaces that the author of a driver implements for the laws: the driver, its event loop and its sockets."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from triclinium_core.contract.neutral import NeutralEvent, Token
from triclinium_core.testing.driver_laws.neutral.scripted_machine import ScriptedMachine

E = TypeVar("E")
A = TypeVar("A")
D_co = TypeVar("D_co", bound="DriverUnderTest", covariant=True)


class Caller(Protocol):
    """A task that submits something through the driver, as users do."""

    @property
    def outcome(self) -> object:
        """Result of the task, or the exception that it raised; None while the task waits."""
        ...

    def leave(self) -> None:
        """Cancel the task as a user would. Any task may call this at any time."""
        ...


class _Socket(Protocol):
    def setblocking(self, flag: bool, /) -> None: ...

    def close(self) -> None: ...


class PeerSocket(_Socket, Protocol):
    """The peer's end of a stream, as ``socket.accept`` returns it."""

    def recv(self, size: int, /) -> bytes:
        """Behave like ``socket.socket.recv``."""
        ...

    def send(self, data: bytes, /) -> int:
        """Behave like ``socket.socket.send``."""
        ...


class Listener(_Socket, Protocol):
    """A listening socket, such as ``socket.create_server(("127.0.0.1", 0))`` returns."""

    def getsockname(self) -> tuple[str, int]:
        """Behave like ``socket.socket.getsockname`` for IPv4."""
        ...

    def accept(self) -> tuple[PeerSocket, object]:
        """Behave like ``socket.socket.accept``."""
        ...


class DriverUnderTest(Protocol):
    """A running driver and its event loop."""

    def submit(self) -> Caller:
        """Start a task that submits something to the machine and waits for the outcome. Return immediately."""
        ...

    def listen(self) -> Listener:
        """Return a socket that listens on loopback."""
        ...

    async def turn(self) -> None:
        """Let the driver do its work: read, write, connect, run tasks.

        Sleep for a real millisecond, blocking, so that the system can run, then let the event loop run a few
        iterations. The driver's clock need not advance meanwhile.
        """
        ...

    def pass_time(self, seconds: float) -> None:
        """Advance the driver's clock by ``seconds`` without running the driver, as in a busy program.

        Jump if the clock is virtual, otherwise call ``time.sleep``.
        """
        ...

    async def close(self) -> None:
        """Close the driver, even while tasks wait. The context manager closes the driver again later."""
        ...


class Bench(Protocol[E, A, D_co]):
    """Adapter of the laws to one protocol: its events ``E``, its actions ``A``, and the driver ``D_co`` under test."""

    def open(self) -> AbstractAsyncContextManager[tuple[ScriptedMachine[E, A], D_co]]:
        """Yield a scripted machine and a driver that runs it, then close the driver."""
        ...

    def submitted(self, event: E | NeutralEvent) -> Token | None:
        """Return the token of an event that submits something; None for any other event."""
        ...

    def abandoned(self, event: E | NeutralEvent) -> Token | None:
        """Return the token of an event that reports a cancelled task; None for any other event."""
        ...

    def completion(self, token: Token) -> A:
        """Return the action that resumes the task of a token with ``result(token)``."""
        ...

    def result(self, token: Token) -> object:
        """Return a result for a token. The results of all tokens differ."""
        ...
