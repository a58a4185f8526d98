"""Test that the asyncio driver of this folder fulfils the contract of a driver. Run it with pytest."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest

from docs.howto.examples.asyncio_driver import AsyncioClient
from triclinium_core.kv.operation.results import Result
from triclinium_core.services.service_request import ServiceResult
from triclinium_core.testing.driver_laws import LAWS, OPERATION, REQUEST, Law, ScriptedClusterMachine

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""TLS context that no test uses. Unlike a default context, it does not load the system's trust store, which is slow."""


class StandingClock(asyncio.SelectorEventLoop):
    """An event loop with a clock that moves only on request."""

    seconds = 1000.0

    def time(self) -> float:
        """Return the time of the clock."""
        return self.seconds


class AsyncioCaller:
    """A task that performs an operation."""

    def __init__(self, performing: Awaitable[Result | ServiceResult]) -> None:
        self._task = asyncio.ensure_future(performing)
        # A test may ignore the outcome of a task, and asyncio would log an exception that no code retrieves.
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    @property
    def outcome(self) -> Result | ServiceResult | BaseException | None:
        """Result or exception of the task; None while the task waits."""
        if not self._task.done():
            return None
        if self._task.cancelled():
            return asyncio.CancelledError()
        return self._task.exception() or self._task.result()

    def leave(self) -> None:
        """Cancel the task."""
        self._task.cancel()


class AsyncioReader(AsyncioCaller):
    """A task that sends a request to a service, and reads rows on request."""

    def __init__(self, client: AsyncioClient) -> None:
        self.rows: list[bytes] = []
        self._demand = asyncio.Semaphore(0)
        super().__init__(self._read(client))

    def read_on(self) -> None:
        """Request the next rows."""
        self._demand.release()

    async def _read(self, client: AsyncioClient) -> ServiceResult:
        async with client.request(REQUEST) as rows:
            async for row in rows:
                self.rows.append(row)
                if not rows.arrived:
                    await self._demand.acquire()
        assert rows.result is not None
        return rows.result


class AsyncioDriver:
    """The driver, with its event loop."""

    def __init__(self, client: AsyncioClient, loop: StandingClock) -> None:
        self._client = client
        self._loop = loop

    def submit(self) -> AsyncioCaller:
        """Start a task that performs an operation."""
        return AsyncioCaller(self._client.perform(OPERATION))

    def ask(self) -> AsyncioReader:
        """Start a task that sends a request to a service."""
        return AsyncioReader(self._client)

    def listen(self) -> socket.socket:
        """Listen on loopback."""
        return socket.create_server(("127.0.0.1", 0))

    async def turn(self) -> None:
        """Run a few passes of the event loop."""
        time.sleep(0.001)  # noqa: ASYNC251  # the system's turn; the loop's clock does not move
        for _ in range(5):
            await asyncio.sleep(0)

    def pass_time(self, seconds: float) -> None:
        """Move the clock."""
        self._loop.seconds += seconds

    async def close(self) -> None:
        """Close the driver."""
        self._client.close()


def hold(law: Law, kind: type[AsyncioClient] = AsyncioClient) -> None:
    """Run the scenario of ``law`` with a driver, and check the result."""

    @asynccontextmanager
    async def open_driver(machine: ScriptedClusterMachine) -> AsyncIterator[AsyncioDriver]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, StandingClock)
        client = kind(machine, NO_TLS)
        try:
            yield AsyncioDriver(client, loop)
        finally:
            client.close()

    with asyncio.Runner(loop_factory=StandingClock) as runner:
        runner.run(as_coroutine(law(open_driver)))


async def as_coroutine(awaitable: Awaitable[None]) -> None:
    """Await ``awaitable``."""
    await awaitable


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_driver_keeps(law: Law) -> None:
    """In the scenario of each law, the asyncio driver does what the contract requires."""
    hold(law)
