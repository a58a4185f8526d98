"""Laws of every driver, which the trio driver satisfies over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from tests.trio_client._driver.law_callers import Caller, DriverOnLoopback
from tests.trio_client.doubles import NoRecords
from triclinium._cluster import running
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._cluster_driver.log import Log
from triclinium._driver.connector import TcpConnector
from triclinium_core.kv.operation.results import Result
from triclinium_core.testing.driver_laws import LAWS, OPERATION, REQUEST, Law, ScriptedClusterMachine

pytestmark = pytest.mark.native


class Reader(Caller):
    """Task that sends a request to a service, and reads a batch of rows for each call of ``read_on``."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[bytes] = []
        self._demand = trio.Semaphore(0)

    async def read(self, driver: ClusterDriver) -> object:
        """Store the rows, and return the result."""
        rows = await driver.open_rows(REQUEST, None, None)
        try:
            while rows.result is None:
                self.rows += rows.rows
                await self._demand.acquire()
                await driver.more_rows(rows)
        finally:
            driver.close_rows(rows)
        return rows.result

    def read_on(self) -> None:
        """Read the next batch of rows."""
        self._demand.release()


class TrioDriver(DriverOnLoopback):
    """Driver under test."""

    def __init__(self, driver: ClusterDriver, callers: trio.Nursery, clock: MockClock) -> None:
        super().__init__(driver.close, callers, clock)
        self._driver = driver

    def submit(self) -> Caller:
        """Start a task that performs an operation."""
        caller = Caller()
        self.callers.start_soon(caller.make, partial(self._driver.perform, Result, lambda: OPERATION, None, None))  # type: ignore[arg-type]  # a union
        return caller

    def ask(self) -> Reader:
        """Start a task that reads rows from a service."""
        reader = Reader()
        self.callers.start_soon(reader.make, partial(reader.read, self._driver))
        return reader


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
async def test_the_driver_keeps_the_law(law: Law, mock_clock: MockClock) -> None:
    """The trio driver satisfies each law of the contract, one law in each case."""

    @asynccontextmanager
    async def open_driver(machine: ScriptedClusterMachine) -> AsyncIterator[TrioDriver]:
        driver = ClusterDriver(machine, connector=TcpConnector(), log=Log(), resolver=NoRecords())
        async with trio.open_nursery() as callers, running(driver, "couchbase://a"):
            yield TrioDriver(driver, callers, mock_clock)

    await law(open_driver)
