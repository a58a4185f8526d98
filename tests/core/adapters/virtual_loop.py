"""An asyncio loop without sockets whose time passes only when everybody waits: it runs in WebAssembly, too."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class VirtualLoop(asyncio.BaseEventLoop):
    """Skips from one timer to the next; it is its own selector, and has nothing to select."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self
        self._now = 0.0

    def time(self) -> float:
        """Return the seconds that have passed."""
        return self._now

    def select(self, timeout: float | None) -> list[object]:
        """Let the time pass that the loop would wait for."""
        assert timeout is not None, "everybody waits, and nothing will happen"
        self._now += timeout
        return []

    def _process_events(self, event_list: list[object]) -> None:
        """Nothing to process."""

    def _write_to_self(self) -> None:
        """Nobody else could wake it."""


def run(main: Coroutine[object, object, T]) -> tuple[T, float]:
    """Run a coroutine to its end, and return what it returns and the seconds that it took."""
    # Pyodide says that its own loop runs all the time.
    host = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main), loop.time()
    finally:
        loop.close()
        asyncio._set_running_loop(host)
