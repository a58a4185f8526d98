"""Timeouts of clients that work correctly, and waiting for other processes."""

from __future__ import annotations

from collections.abc import Callable

import trio

from triclinium import TimeoutOptions

PATIENT = TimeoutOptions(kv=60.0, query=60.0)
"""Timeouts that are longer than any test, so that no test depends on the speed of the machine."""
POLL_SECONDS = 0.001


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition that another process fulfils; the safety net limits the wait."""
    while not condition():  # noqa: ASYNC110 - there is no event to wait for
        await trio.sleep(POLL_SECONDS)
