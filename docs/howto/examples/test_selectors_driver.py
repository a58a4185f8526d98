"""Test that the driver without an event loop fulfils the contract of a driver. Run it with pytest."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from docs.howto.examples.selectors_driver import SelectorsClient
from triclinium_core.contract.neutral import Token
from triclinium_core.testing.driver_laws import LAWS, OPERATION, Law, Reader, ScriptedClusterMachine

OF_ROWS = {
    "readers_are_settled_at_the_close",
    "rows_come_as_they_are_wanted",
    "a_reader_that_leaves_is_reported",
}
"""Laws that do not apply: they read the rows of an HTTP service, and this driver has key-value operations only."""


class SelectorsCaller:
    """An operation of a program that calls ``turn`` until it has ended."""

    def __init__(self, client: SelectorsClient) -> None:
        self._client = client
        self._tokens: list[Token] = []
        self._raised: Exception | None = None
        try:
            self._tokens += client.submit(OPERATION)
        except Exception as error:
            self._raised = error

    @property
    def outcome(self) -> object:
        """Result or exception of the operation; None while the program waits."""
        outcomes = (self._client.outcomes.get(token) for token in self._tokens)
        return self._raised or next(outcomes, None)

    def leave(self) -> None:
        """Stop waiting, as an interrupted program does."""
        self._client.leave(*self._tokens)
        self._raised = self._raised or InterruptedError()


class SelectorsDriver:
    """The driver, with a clock that moves only on request."""

    def __init__(self, machine: ScriptedClusterMachine) -> None:
        self._seconds = 1000.0
        self._client = SelectorsClient(machine, clock=lambda: self._seconds)

    def submit(self) -> SelectorsCaller:
        """Submit an operation."""
        return SelectorsCaller(self._client)

    def ask(self) -> Reader:
        """Send a request to a service; no law that applies to this driver does."""
        raise AssertionError("a law of rows is not in OF_ROWS")

    def listen(self) -> socket.socket:
        """Listen on loopback."""
        return socket.create_server(("127.0.0.1", 0))

    async def turn(self) -> None:
        """Let the driver read and write a few times."""
        time.sleep(0.001)  # noqa: ASYNC251  # the system's turn; there is no event loop
        for _ in range(5):
            self._client.turn(0.0)

    def pass_time(self, seconds: float) -> None:
        """Move the clock."""
        self._seconds += seconds

    async def close(self) -> None:
        """Close the driver."""
        self._client.close()


@asynccontextmanager
async def open_driver(machine: ScriptedClusterMachine) -> AsyncIterator[SelectorsDriver]:
    """Yield a driver of ``machine``, and close it."""
    driver = SelectorsDriver(machine)
    try:
        yield driver
    finally:
        await driver.close()


@pytest.mark.parametrize("law", [law for law in LAWS if law.__name__ not in OF_ROWS], ids=lambda law: law.__name__)
def test_the_driver_keeps(law: Law) -> None:
    """In the scenario of each law, the driver does what the contract requires."""
    # The methods of this driver never wait for an event loop, so a law ends in its first step.
    with pytest.raises(StopIteration):
        next(law(open_driver).__await__())


def test_the_other_laws_are_laws() -> None:
    """Each law that does not apply to this driver is a law."""
    assert {law.__name__ for law in LAWS} >= OF_ROWS
