"""Protocol-neutral half of the driver, which runs an echo machine with a real server, and its laws."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.trio_client._driver.echo.driver import EchoDriver
from tests.trio_client._driver.echo.machine import (
    EchoAbandoned,
    EchoAction,
    Echoed,
    EchoError,
    EchoEvent,
    EchoMachine,
    EchoSubmitted,
)
from tests.trio_client._driver.law_callers import Caller, DriverOnLoopback
from triclinium._driver.connector import TcpConnector
from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract.neutral import NeutralAction, NeutralEvent, Token
from triclinium_core.testing.driver_laws import NEUTRAL_LAWS, NeutralLaw, ScriptedMachine

pytestmark = pytest.mark.native

Serve = Callable[[trio.SocketStream], Awaitable[None]]


async def echo(stream: trio.SocketStream) -> None:
    """Send all received data back."""
    async for data in stream:
        await stream.send_all(data)


@asynccontextmanager
async def running(driver: EchoDriver) -> AsyncIterator[EchoDriver]:
    """Yield a running driver."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(driver.run)
        await driver.started.wait()
        try:
            yield driver
        finally:
            driver.close()


@asynccontextmanager
async def client_of(serve: Serve) -> AsyncIterator[EchoDriver]:
    """Yield a client of a server on loopback."""
    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        port = listener.socket.getsockname()[1]
        try:
            async with running(EchoDriver(EchoMachine("127.0.0.1", port), TcpConnector())) as driver:
                yield driver
        finally:
            nursery.cancel_scope.cancel()


async def test_a_hundred_texts_are_echoed() -> None:
    """A hundred concurrent tasks get their own texts over one connection."""
    texts: list[str] = []

    async def ask(driver: EchoDriver, text: str) -> None:
        texts.append(await driver.echo(text))

    async with client_of(echo) as driver:
        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(ask, driver, f"text {number}")
        opened = [line for line in driver.log.lines if line.endswith("is open")]

    assert {f"text {number}" for number in range(100)} == set(texts)
    assert 1 == len(opened)


async def test_a_deadline_passes(mock_clock: MockClock) -> None:
    """A text without an echo fails at its deadline; other texts are still echoed."""
    swallowed = trio.Event()

    async def swallow(stream: trio.SocketStream) -> None:
        async for data in stream:
            if b"lost" in data:
                swallowed.set()
            else:
                await stream.send_all(data)

    async with client_of(swallow) as driver:
        caller = Caller()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(caller.make, lambda: driver.echo("lost", seconds=2.5))
            await swallowed.wait()
            mock_clock.jump(2.4)
            await wait_all_tasks_blocked()
            early = caller.outcome
            mock_clock.jump(0.1)
        found = await driver.echo("found")

    assert (None, "found") == (early, found)
    assert isinstance(caller.outcome, EchoError)
    assert "it was sent" in str(caller.outcome)


async def test_a_lost_connection_fails_sent_texts() -> None:
    """A sent text fails with the connection; the next one is echoed on a new connection."""
    connections = 0

    async def hang_up_first(stream: trio.SocketStream) -> None:
        nonlocal connections
        connections += 1
        if connections == 1:
            await stream.receive_some()
        else:
            await echo(stream)

    async with client_of(hang_up_first) as driver:
        with pytest.raises(EchoError, match="the connection was lost"):
            await driver.echo("one")
        second = await driver.echo("two")

    assert "two" == second
    assert 2 == connections


async def test_an_invalid_line_closes_the_connection() -> None:
    """A line that the client did not request closes the connection, and the text fails."""

    async def babble(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"77 seven\n")
        await trio.sleep_forever()

    async with client_of(babble) as driver:
        with pytest.raises(EchoError, match="the connection was lost"):
            await driver.echo("one")

    assert driver.log.lines[-1].endswith("is lost: closed by the client")


async def test_an_invalid_text_raises_in_its_task() -> None:
    """A text of two lines raises before any byte is sent, and the client continues."""
    async with client_of(echo) as driver:
        with pytest.raises(ArgumentError):
            await driver.echo("one\ntwo")
        text = await driver.echo("three")

    assert "three" == text


async def test_a_cancelled_task_abandons_its_text() -> None:
    """A task may be cancelled before or after its text is sent."""

    async def late(stream: trio.SocketStream) -> None:
        data = await stream.receive_some()
        await trio.sleep(0.01)
        await stream.send_all(bytes(data))

    async with client_of(late) as driver:
        with trio.move_on_after(0) as scope:
            await driver.echo("one")
        with trio.CancelScope() as later:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(driver.echo, "two")
                await wait_all_tasks_blocked()
                later.cancel()

    assert scope.cancelled_caught
    assert later.cancelled_caught


async def test_a_closed_client_raises_immediately() -> None:
    """A task that waits for its text when the client closes, and a later call, raise ``ClosedResourceError``."""

    async def deaf(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    errors: list[Exception] = []

    async def ask(driver: EchoDriver) -> None:
        try:
            await driver.echo("text")
        except trio.ClosedResourceError as error:
            errors.append(error)

    async with client_of(deaf) as driver, trio.open_nursery() as nursery:
        nursery.start_soon(ask, driver)
        await wait_all_tasks_blocked()
        driver.close()
        await ask(driver)

    assert 2 == len(errors)


async def test_events_are_protected_from_keyboard_interrupt() -> None:
    """While the machine handles an event of a call, the task is protected from KeyboardInterrupt."""
    protected: dict[str, bool] = {}

    def note(event: EchoEvent | NeutralEvent) -> list[EchoAction]:
        protected[type(event).__name__] = trio.lowlevel.currently_ki_protected()
        return [Echoed(event.token, event.text)] if isinstance(event, EchoSubmitted) and event.text == "one" else []

    machine: ScriptedMachine[EchoEvent, EchoAction | NeutralAction] = ScriptedMachine(note)
    async with running(EchoDriver(machine, TcpConnector())) as driver:
        text = await driver.echo("one")
        with trio.move_on_after(0.01) as scope:
            await driver.echo("two")

    assert "one" == text
    assert scope.cancelled_caught
    assert dict.fromkeys(("TimePassed", "EchoSubmitted", "EchoAbandoned"), True) == protected


class EchoDriverUnderTest(DriverOnLoopback):
    """Driver under test."""

    def __init__(self, driver: EchoDriver, callers: trio.Nursery, clock: MockClock) -> None:
        super().__init__(driver.close, callers, clock)
        self._driver = driver

    def submit(self) -> Caller:
        """Start a task that echoes a text."""
        caller = Caller()
        self.callers.start_soon(caller.make, lambda: self._driver.echo("text"))
        return caller


class EchoBench:
    """Echo protocol as a test bench for the laws."""

    def __init__(self, clock: MockClock) -> None:
        self._clock = clock

    @asynccontextmanager
    async def open(
        self,
    ) -> AsyncIterator[tuple[ScriptedMachine[EchoEvent, EchoAction | NeutralAction], EchoDriverUnderTest]]:
        """Yield a scripted machine and a running driver."""
        machine: ScriptedMachine[EchoEvent, EchoAction | NeutralAction] = ScriptedMachine()
        driver = EchoDriver(machine, TcpConnector())
        async with trio.open_nursery() as callers, running(driver):
            yield machine, EchoDriverUnderTest(driver, callers, self._clock)

    def submitted(self, event: EchoEvent | NeutralEvent) -> Token | None:
        """Return the token of a submitted text."""
        return event.token if isinstance(event, EchoSubmitted) else None

    def abandoned(self, event: EchoEvent | NeutralEvent) -> Token | None:
        """Return the token of an abandoned text."""
        return event.token if isinstance(event, EchoAbandoned) else None

    def completion(self, token: Token) -> Echoed:
        """Return the echo of a text."""
        return Echoed(token, self.result(token))

    def result(self, token: Token) -> str:
        """Return the text of this token, which no other token has."""
        return f"text {token}"


@pytest.mark.parametrize("law", NEUTRAL_LAWS, ids=lambda law: law.__name__)
async def test_the_echo_driver_keeps_the_law(law: NeutralLaw, mock_clock: MockClock) -> None:
    """A driver of a protocol other than Couchbase's satisfies the protocol-neutral laws."""
    await law(EchoBench(mock_clock))
