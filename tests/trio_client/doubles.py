"""What stands in for the machine, the network and the streams in the tests of the driver."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import trio
import trio.testing

from triclinium import Cluster
from triclinium._cluster import running
from triclinium._driver import Driver
from triclinium._log import Log
from triclinium.abc import ConnectedStream, Connector
from triclinium_core.kv.actions import Action, CompleteOperation, OpenStream
from triclinium_core.kv.events import Event, OperationSubmitted, StreamId, TimePassed, Token
from triclinium_core.kv.operation.reports import ClusterState, DiagnosticsResult
from triclinium_core.kv.operation.requests import Get, Keyspace
from triclinium_core.kv.operation.results import Done
from triclinium_core.kv.statistics import ClientStatistics
from triclinium_core.kv.topology.topology import Topology
from triclinium_core.options import Authenticator
from triclinium_core.retry.request import RetryRequest
from triclinium_core.retry.service import Service

KEYSPACE = Keyspace("travel")
STREAM = StreamId(1)
OPEN_STREAM = OpenStream(STREAM, "node", 11210, tls=False)

DONE = Done()


class NoRandomness:
    """Nothing in these tests draws."""

    def random(self) -> float:
        """Raise."""
        raise AssertionError


REQUEST = RetryRequest(
    service=Service.KV,
    operation="upsert",
    idempotent=False,
    rng=NoRandomness(),
    key="ada",
    retry_attempts=2,
    age=0.25,
    remaining=2.25,
)
"""A request that was retried twice already."""

Answer = Callable[[Event], Sequence[Action]]


def get(key: str = "ada") -> Get:
    """Return an operation to be performed."""
    return Get(KEYSPACE, key)


class ScriptedMachine:
    """Remembers what it hears and orders what the test has written down."""

    def __init__(self, answer: Answer = lambda event: ()) -> None:
        self.answer = answer
        self.events: list[Event] = []
        self.times: list[float] = []
        self.wakeup = math.inf
        self.ambiguous: set[Token] = set()
        self.is_busy = False
        self.topologies: Sequence[Topology] = ()

    def handle(self, event: Event, now: float) -> Sequence[Action]:
        """Return what ``answer`` says; the time never goes back, and there is one call at a time."""
        assert not self.is_busy, "the machine is not re-entrant"
        assert now >= max(self.times, default=-math.inf), "the time went back"
        self.is_busy = True
        self.events.append(event)
        self.times.append(now)
        try:
            return self.answer(event)
        finally:
            self.is_busy = False

    def check_authenticator(self, authenticator: Authenticator) -> None:
        """Mind nothing."""

    def is_ambiguous(self, token: Token) -> bool:
        """Return what the test has said."""
        return token in self.ambiguous

    def statistics(self) -> ClientStatistics:
        """Return a snapshot that can be told from others."""
        return ClientStatistics(open_operations=42)

    def diagnostics(self, report_id: str, now: float) -> DiagnosticsResult:
        """Return a report that can be told from others."""
        return DiagnosticsResult(id=report_id, sdk=f"at {now:g}", state=ClusterState.DEGRADED, endpoints={})

    def vbucket_count(self, bucket: str | None) -> int:
        """Return a number that can be told from others."""
        return 4

    @property
    def submitted(self) -> list[OperationSubmitted]:
        """The submissions among the events."""
        return [event for event in self.events if isinstance(event, OperationSubmitted)]

    @property
    def later_events(self) -> list[Event]:
        """All events but the one that starts the client."""
        assert isinstance(self.events[0], TimePassed)
        return self.events[1:]


def on(kind: type[Event], *actions: Action) -> Answer:
    """Return a script that orders ``actions`` at every event of one kind."""
    return lambda event: actions if isinstance(event, kind) else ()


class FunctionConnector:
    """Connects by calling a function."""

    def __init__(self, function: Callable[[], Awaitable[trio.abc.Stream]]) -> None:
        self._function = function
        self.asked: list[tuple[str, int, bool]] = []

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Return whatever stream the function returns."""
        self.asked.append((host, port, tls))
        return ConnectedStream(await self._function(), "local:1", "remote:2")


def connector_to(stream: trio.abc.Stream) -> FunctionConnector:
    """Return a connector that always gives ``stream``."""

    async def connect() -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        return stream

    return FunctionConnector(connect)


def connector_that_raises(error: BaseException) -> FunctionConnector:
    """Return a connector that never succeeds."""

    async def connect() -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        raise error

    return FunctionConnector(connect)


class NoRecords:
    """A resolver that finds no cluster under any name."""

    async def look_up(self, service: str) -> Sequence[tuple[str, int]]:
        """Return nothing."""
        await trio.lowlevel.checkpoint()
        return ()


def driver_of(machine: ScriptedMachine, connector: Connector | None = None) -> Driver:
    """Return a driver that runs ``machine``; unless it gets a connector, nothing can be reached."""
    return Driver(
        machine,
        connector=connector or connector_that_raises(ConnectionRefusedError()),
        log=Log(),
        make_nonce=lambda: "a nonce",
        resolver=NoRecords(),
    )


@asynccontextmanager
async def open_driver(machine: ScriptedMachine, connector: Connector | None = None) -> AsyncIterator[Driver]:
    """Give the block a driver at work."""
    driver = driver_of(machine, connector)
    async with running(driver):
        yield driver


def settle(event: Event) -> Sequence[Action]:
    """Complete every operation while it is submitted: a script."""
    return [CompleteOperation(event.token, DONE)] if isinstance(event, OperationSubmitted) else ()


async def perform(driver: Driver, key: str = "ada") -> Done:
    """Perform an operation whose result does not matter."""
    return await driver.perform(Done, lambda: get(key), None)


async def occur(driver: Driver, event: Event) -> None:
    """Let ``event`` happen, as a stream would."""
    await trio.lowlevel.checkpoint()
    driver._feed(event)


@asynccontextmanager
async def open_scripted(machine: ScriptedMachine) -> AsyncIterator[Cluster]:
    """Give the block a cluster whose machine is scripted."""
    async with running(driver_of(machine)) as cluster:
        yield cluster


class HalfDeafStream(trio.abc.Stream):
    """A stream whose two directions do what the test says."""

    def __init__(
        self,
        *,
        send_all: Callable[[bytes], Awaitable[None]] | None = None,
        receive_some: Callable[[], Awaitable[bytes]] = trio.sleep_forever,
        aclose: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
    ) -> None:
        self.sent: list[bytes] = []
        self._send_all = send_all
        self._receive_some = receive_some
        self._aclose = aclose
        self.is_closed = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Note what one call was given."""
        self.sent.append(bytes(data))
        await trio.lowlevel.checkpoint()
        if self._send_all is not None:
            await self._send_all(bytes(data))

    async def wait_send_all_might_not_block(self) -> None:
        """Nobody asks."""
        raise AssertionError

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return what the test returns."""
        return await self._receive_some()

    async def aclose(self) -> None:
        """Note that the stream was closed."""
        self.is_closed = True
        await self._aclose()
