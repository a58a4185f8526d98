"""Asyncio loop without sockets, which also works in WebAssembly. Its time advances only while all tasks wait."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class VirtualLoop(asyncio.BaseEventLoop):
    """Event loop that jumps from one timer to the next. It is also its own selector, and has no file descriptors."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self
        self._now = 0.0

    def time(self) -> float:
        """Return the seconds that have passed."""
        return self._now

    def select(self, timeout: float | None) -> list[object]:
        """Advance the time by the loop's timeout."""
        assert timeout is not None, "all tasks wait, but no timer is set"
        self._now += timeout
        return []

    def _process_events(self, event_list: list[object]) -> None:
        """Do nothing; there are no events."""

    def _write_to_self(self) -> None:
        """Do nothing; there are no other threads."""


def run(main: Coroutine[object, object, T]) -> tuple[T, float]:
    """Run a coroutine to its end; return its result and the seconds that it took."""
    # Hide the running loop during the run, because Pyodide always reports its own loop as running.
    host = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main), loop.time()
    finally:
        loop.close()
        asyncio._set_running_loop(host)
