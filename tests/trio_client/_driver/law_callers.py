"""Callers of a driver, and a driver on loopback, for the laws of drivers."""

from __future__ import annotations

import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from trio.testing import MockClock


class Caller:
    """Task that makes a call of a driver."""

    def __init__(self) -> None:
        self.outcome: Any = None
        self._scope = trio.CancelScope()

    async def make(self, call: Callable[[], Awaitable[object]]) -> None:
        """Store the result or exception of the call."""
        with self._scope:
            try:
                self.outcome = await call()
            except Exception as error:
                self.outcome = error
            except trio.Cancelled as error:
                self.outcome = error
                raise

    def leave(self) -> None:
        """Cancel the call."""
        self._scope.cancel()


class DriverOnLoopback:
    """Driver under test, with the nursery of its callers."""

    def __init__(self, close: Callable[[], None], callers: trio.Nursery, clock: MockClock) -> None:
        self._close = close
        self.callers = callers
        self.pass_time = clock.jump

    def listen(self) -> socket.socket:
        """Listen on loopback."""
        return socket.create_server(("127.0.0.1", 0))

    async def turn(self) -> None:
        """Let the event loop run a few passes, so that other tasks make progress."""
        time.sleep(0.001)  # noqa: ASYNC251  # lets the system work; trio's clock stands still
        for _ in range(5):
            await trio.lowlevel.checkpoint()

    async def close(self) -> None:
        """Close the driver."""
        self._close()
        await trio.lowlevel.checkpoint()
