"""Official client in a test that serves its nodes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio

from tests.live.line_process import LineProcess
from triclinium.testing import FakeCluster

POLL_SECONDS = 0.01


class Official:
    """Official client in a separate process; the nodes continue while a task waits for it."""

    def __init__(self, process: LineProcess) -> None:
        self._process = process

    async def ask(self, **question: Any) -> Mapping[str, Any]:
        """Return the answer to one question."""
        return await trio.to_thread.run_sync(partial(self._process.ask, **question))


@asynccontextmanager
async def official_client(fake: FakeCluster) -> AsyncIterator[Official]:
    """Yield the official client, connected to ``fake``."""
    worker = Path(__file__).with_name("official_worker.py")
    options = fake.node.options
    credentials = [options.username, options.password, options.buckets[0]]
    process = LineProcess([sys.executable, str(worker), fake.connection_string, *credentials])
    await trio.to_thread.run_sync(process.__enter__)
    try:
        assert {"result": "connected"} == await trio.to_thread.run_sync(process.hear)
        yield Official(process)
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(process.__exit__, None, None, None)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that the client fulfils by itself."""
    while not condition():  # noqa: ASYNC110 - the client is another process
        await trio.sleep(POLL_SECONDS)
