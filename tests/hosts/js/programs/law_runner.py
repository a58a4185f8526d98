"""Laws of a driver, run inside Pyodide with the driver for Node. ``laws.mjs`` provides the module ``law_host``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import law_host  # type: ignore[import-not-found]  # only Pyodide has these modules
import msgspec
from pyodide.ffi import create_proxy, to_js  # type: ignore[import-not-found]

from hosts.js.host import Host
from hosts.js.values import described
from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract import neutral
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


class ForgetfulHost(LawHost):
    """Host that reports no bytes as handed over."""

    def write(self, number: neutral.StreamId) -> None:
        """Write, and forget it."""
        super().write(number)
        if number in self.streams:
            self.streams[number].outbox.handed_over = 0


# The public members of the following classes are those of the interfaces in ``triclinium_core.testing.driver_laws``.


class Task:
    """A task in JavaScript that waits for a call or reads rows."""

    def __init__(self, host: LawHost, task: Any, convert: Callable[[Any], object]) -> None:
        self._host = host
        self._task = task
        self._convert = convert
        self.leave, self.read_on = task.leave, task.readOn

    @property
    def outcome(self) -> object:
        if self._task.outcome is not None:
            kind, fields = self._task.outcome
            if kind == "error":
                return next(each for each in self._host.errors if described(each) == fields.to_py())
            return self._convert(fields)
        error = self._task.error
        if error is None:
            return None
        return asyncio.CancelledError() if error.name == "AbortError" else RuntimeError(error.message)

    @property
    def rows(self) -> list[bytes]:
        return [row.to_bytes() for row in self._task.rows]


class Socket:
    """Socket of Node, which never blocks."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self.close = socket.close

    def setblocking(self, flag: bool, /) -> None:
        pass

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", self._socket.port

    def accept(self) -> tuple[Socket, object]:
        return Socket(self._ready(self._socket.accept())), None

    def recv(self, size: int, /) -> bytes:
        found: bytes = self._ready(self._socket.recv(size)).to_bytes()
        return found

    def send(self, data: bytes, /) -> int:
        return int(self._socket.send(to_js(data)))

    def _ready(self, found: Any) -> Any:
        if found is None:
            raise BlockingIOError
        return found


class NodeDriver:
    """The driver for Node as a law sees it."""

    def __init__(self, host: LawHost, driver: Any) -> None:
        self._host = host
        self._driver = driver

    def submit(self) -> Task:
        return self._task(law_host.submitTo, OPERATION, lambda fields: MutationResult(Cas(fields.cas)))

    def ask(self) -> Task:
        return self._task(law_host.askOf, REQUEST, lambda fields: msgspec.convert(fields.to_py(), QueryMetaData))

    def _task(self, start: Any, request: Any, convert: Callable[[Any], object]) -> Task:
        def submit(number: int) -> None:
            token = neutral.Token(number)
            self._host.wait({token: token}, self._host.submission(token, request))

        return Task(self._host, start(self._driver, create_proxy(submit)), convert)

    def listen(self) -> Socket:
        return Socket(law_host.listen())

    async def turn(self) -> None:
        await law_host.turn()

    def pass_time(self, seconds: float) -> None:
        law_host.sleep(seconds)

    async def close(self) -> None:
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
    """Show the name of each law, and how the driver breaks it, if it does."""
    for law in LAWS:
        broken: str | None = None
        try:
            await law(open_driver)
        except (LawBroken, ArgumentError) as error:
            broken = str(error)
        show(law.__name__, broken)
