"""Laws of a driver, run inside Pyodide with the driver for Node. ``laws.mjs`` provides the module ``law_host``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import law_host  # type: ignore[import-not-found]  # only Pyodide has these modules
import msgspec
from pyodide.ffi import create_proxy  # type: ignore[import-not-found]

from hosts.js.host import Host
from hosts.js.values import described
from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.operation.results import Cas, MutationResult
from triclinium_core.services.query.result import QueryMetaData
from triclinium_core.testing.driver_laws import LAWS, OPERATION, REQUEST, LawBroken, ScriptedClusterMachine


class LawHost(Host):
    """Host that keeps the errors of its callers, so that a law recognizes them."""

    def __init__(self, machine: ScriptedClusterMachine, js: Any) -> None:
        super().__init__(machine, js)
        self.errors: list[Exception] = []

    def wake(self, waiter: neutral.Token, outcome: object) -> None:
        """Keep an error, and pass the outcome on."""
        if isinstance(outcome, Exception):
            self.errors.append(outcome)
        super().wake(waiter, outcome)

    def start(self, token: neutral.Token, event: couchbase.Event) -> None:
        """Feed the submission of a law."""
        self.wait({token: token}, event)


class ForgetfulHost(LawHost):
    """Host that reports no bytes as handed over."""

    def write(self, number: neutral.StreamId) -> None:
        """Write, and forget it."""
        super().write(number)
        if number in self.streams:
            self.streams[number].outbox.handed_over = 0


class Task:
    """A task in JavaScript that waits for a call or reads rows."""

    def __init__(self, host: LawHost, task: Any, convert: Callable[[Any], object]) -> None:
        self._host = host
        self._task = task
        self._convert = convert

    @property
    def outcome(self) -> object:
        """Result or exception; None while the task waits."""
        if self._task.outcome is not None:
            return self._convert(self._task.outcome[1])
        error = self._task.error
        if error is None:
            return None
        if getattr(error, "name", "") == "AbortError":
            return asyncio.CancelledError()
        if getattr(error, "name", "") == "ClosedError":
            return RuntimeError(error.message)
        return next(each for each in self._host.errors if described(each) == error.to_py())

    @property
    def rows(self) -> list[bytes]:
        """Rows that the task has read."""
        return [row.to_bytes() for row in self._task.rows]

    def leave(self) -> None:
        """Abort the task."""
        self._task.leave()

    def read_on(self) -> None:
        """Request the next rows."""
        self._task.readOn()


class Listener:
    """Listening socket of Node."""

    def __init__(self) -> None:
        self._server = law_host.listen()

    def setblocking(self, flag: bool, /) -> None:
        """Do nothing: it never blocks."""

    def getsockname(self) -> tuple[str, int]:
        """Return the address."""
        return "127.0.0.1", self._server.port

    def accept(self) -> tuple[PeerSocket, object]:
        """Return the next connection."""
        peer = self._server.accept()
        if peer is None:
            raise BlockingIOError
        return PeerSocket(peer), None

    def close(self) -> None:
        """Stop listening."""
        self._server.close()


class PeerSocket:
    """Peer's end of a stream."""

    def __init__(self, peer: Any) -> None:
        self._peer = peer

    def setblocking(self, flag: bool, /) -> None:
        """Do nothing: it never blocks."""

    def recv(self, size: int, /) -> bytes:
        """Return bytes that have arrived."""
        data = self._peer.recv(size)
        if data is None:
            raise BlockingIOError
        found: bytes = data.to_bytes()
        return found

    def send(self, data: bytes, /) -> int:
        """Send bytes."""
        proxy = create_proxy(data)
        try:
            return int(self._peer.send(proxy))
        finally:
            proxy.destroy()

    def close(self) -> None:
        """Close the connection."""
        self._peer.close()


class NodeDriver:
    """The driver for Node as a law sees it."""

    def __init__(self, host: LawHost, driver: Any) -> None:
        self._host = host
        self._driver = driver

    def submit(self) -> Task:
        """Submit an operation."""

        def start(token: int) -> None:
            self._host.start(neutral.Token(token), couchbase.OperationSubmitted(neutral.Token(token), OPERATION))

        task = law_host.submitTo(self._driver, create_proxy(start))
        return Task(self._host, task, lambda fields: MutationResult(Cas(fields.cas)))

    def ask(self) -> Task:
        """Send a query."""

        def start(token: int) -> None:
            self._host.start(neutral.Token(token), couchbase.RequestSubmitted(neutral.Token(token), REQUEST))

        task = law_host.askOf(self._driver, create_proxy(start))
        return Task(self._host, task, lambda fields: msgspec.convert(fields.to_py(), QueryMetaData))

    def listen(self) -> Listener:
        """Listen on loopback."""
        return Listener()

    async def turn(self) -> None:
        """Let Node run."""
        await law_host.turn()

    def pass_time(self, seconds: float) -> None:
        """Block Node."""
        law_host.sleep(seconds)

    async def close(self) -> None:
        """Close the driver."""
        self._driver.close()


@asynccontextmanager
async def open_driver(machine: ScriptedClusterMachine) -> AsyncIterator[NodeDriver]:
    """Yield a driver of ``machine``."""
    driver = law_host.newDriver()
    host = (ForgetfulHost if getattr(driver, "isForgetful", False) else LawHost)(machine, driver)
    driver.start(create_proxy(host))
    try:
        yield NodeDriver(host, driver)
    finally:
        driver.close()


async def run(show: Callable[[str, str | None], None]) -> None:
    """Show the name of each law, and how the driver breaks it."""
    for law in LAWS:
        broken: str | None = None
        try:
            await law(open_driver)
        except (LawBroken, ArgumentError) as error:
            broken = str(error)
        show(law.__name__, broken)
