"""Record of the events that a stream reports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio.testing

from tests.trio_client.doubles import OPEN_STREAM, STREAM
from triclinium._driver.pace import Pace
from triclinium._driver.streams import Stream
from triclinium.abc import Connector
from triclinium_core.contract.couchbase import Event
from triclinium_core.contract.neutral import StreamOpened

OPENED = StreamOpened(STREAM, "a nonce", "local:1", "remote:2")


class Ears:
    """Recorder of the events that a stream reports."""

    def __init__(self, connector: Connector, pace: Pace | None = None) -> None:
        self.events: list[Event] = []
        self.stream = Stream(OPEN_STREAM, connector=connector, feed=self._feed, make_nonce=lambda: "a nonce", pace=pace)

    def _feed(self, event: Event) -> None:
        self.events.append(event)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the stream until the end of the block, which begins when all tasks wait."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.stream.run)
            await trio.testing.wait_all_tasks_blocked()
            yield
            self.stream.close()
