"""Over real sockets, the trio driver satisfies the laws that hold for every driver."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from tests.trio_client.doubles import NoRecords
from triclinium._cluster import running
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._cluster_driver.log import Log
from triclinium._driver.connector import TcpConnector
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.results import Result
from triclinium_core.services.service_request import ServiceRequest, ServiceResult
from triclinium_core.testing.driver_laws import LAWS, OPERATION, REQUEST, Law, ScriptedClusterMachine

pytestmark = pytest.mark.native


class TrioCaller:
    """Task that performs an operation."""

    def __init__(self) -> None:
        self.outcome: Result | ServiceResult | BaseException | None = None
        self._scope = trio.CancelScope()

    async def perform(self, driver: ClusterDriver, operation: Operation) -> None:
        """Store the operation's result or exception."""
        with self._scope:
            try:
                self.outcome = await driver.perform(Result, lambda: operation, None, None)  # type: ignore[arg-type]  # a union
            except Exception as error:
                self.outcome = error
            except trio.Cancelled as error:
                self.outcome = error
                raise

    def leave(self) -> None:
        """Cancel the operation."""
        self._scope.cancel()


class TrioReader:
    """Task that sends a request to a service, and reads a batch of rows each time the law asks for one."""

    def __init__(self) -> None:
        self.outcome: Result | ServiceResult | BaseException | None = None
        self.rows: list[bytes] = []
        self._demand = trio.Semaphore(0)
        self._scope = trio.CancelScope()

    async def read(self, driver: ClusterDriver, request: ServiceRequest) -> None:
        """Store the rows, and then the result or exception."""
        with self._scope:
            try:
                rows = await driver.open_rows(request, None, None)
                try:
                    while rows.result is None:
                        self.rows += rows.rows
                        await self._demand.acquire()
                        await driver.more_rows(rows)
                finally:
                    driver.close_rows(rows)
                self.outcome = rows.result
            except Exception as error:
                self.outcome = error
            except trio.Cancelled as error:
                self.outcome = error
                raise

    def read_on(self) -> None:
        """Read the next batch of rows."""
        self._demand.release()

    def leave(self) -> None:
        """Cancel the read."""
        self._scope.cancel()


class TrioDriver:
    """Driver under test, with the nursery of its callers."""

    def __init__(self, driver: ClusterDriver, callers: trio.Nursery, clock: MockClock) -> None:
        self._driver = driver
        self._callers = callers
        self.pass_time = clock.jump

    def submit(self) -> TrioCaller:
        """Start a task that performs an operation."""
        caller = TrioCaller()
        self._callers.start_soon(caller.perform, self._driver, OPERATION)
        return caller

    def ask(self) -> TrioReader:
        """Start a task that reads rows from a service."""
        reader = TrioReader()
        self._callers.start_soon(reader.read, self._driver, REQUEST)
        return reader

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
        self._driver.close()
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
async def test_the_driver_keeps_the_law(law: Law, mock_clock: MockClock) -> None:
    """The trio driver satisfies each law of the contract, one law in each case."""

    @asynccontextmanager
    async def open_driver(machine: ScriptedClusterMachine) -> AsyncIterator[TrioDriver]:
        driver = ClusterDriver(machine, connector=TcpConnector(), log=Log(), resolver=NoRecords())
        async with trio.open_nursery() as callers, running(driver, "couchbase://a"):
            yield TrioDriver(driver, callers, mock_clock)

    await law(open_driver)
