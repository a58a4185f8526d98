"""Doubles of the machine, the network and the streams, which tests of the driver use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import trio
import trio.testing

from triclinium import Cluster
from triclinium._cluster import running
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._cluster_driver.log import Log
from triclinium.abc import ConnectedStream, Connector
from triclinium_core.contract.couchbase import Action, CompleteOperation, Event, OperationSubmitted
from triclinium_core.contract.neutral import BytesReceived, OpenStream, StreamId
from triclinium_core.kv.operation.document_operations import Get, Keyspace
from triclinium_core.kv.operation.results import Done
from triclinium_core.retry.couchbase import RetryRequest, Service
from triclinium_core.testing.driver_laws import ScriptedClusterMachine, on

KEYSPACE = Keyspace("travel")
STREAM = StreamId(1)
OPEN_STREAM = OpenStream(STREAM, "node", 11210, tls=False)

DONE = Done()


class NoRandomness:
    """Random source that is never used."""

    def random(self) -> float:
        """Raise AssertionError."""
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
"""Request that has been retried twice."""


def get(key: str = "ada") -> Get:
    """Return an operation that reads the document ``key``."""
    return Get(KEYSPACE, key)


class FunctionConnector:
    """Connector that calls a function."""

    def __init__(self, function: Callable[[], Awaitable[trio.abc.Stream]]) -> None:
        self._function = function
        self.asked: list[tuple[str, int, bool]] = []

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Return the stream of the function."""
        self.asked.append((host, port, tls))
        return ConnectedStream(await self._function(), "local:1", "remote:2")


class HostConnector:
    """Connector that returns a stream for each host."""

    def __init__(self, make: Callable[[str], trio.abc.Stream]) -> None:
        self._make = make

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Return the stream of the host."""
        await trio.lowlevel.checkpoint()
        return ConnectedStream(self._make(host))


def connector_to(stream: trio.abc.Stream) -> FunctionConnector:
    """Return a connector that always returns ``stream``."""

    async def connect() -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        return stream

    return FunctionConnector(connect)


def connector_that_raises(error: BaseException) -> FunctionConnector:
    """Return a connector that always raises ``error``."""

    async def connect() -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        raise error

    return FunctionConnector(connect)


class NoRecords:
    """Resolver that finds no records for any name."""

    async def look_up(self, service: str) -> Sequence[tuple[str, int]]:
        """Return no records."""
        await trio.lowlevel.checkpoint()
        return ()


def driver_of(machine: ScriptedClusterMachine, connector: Connector | None = None) -> ClusterDriver:
    """Return a driver that runs ``machine``; by default, all connections are refused."""
    return ClusterDriver(
        machine,
        connector=connector or connector_that_raises(ConnectionRefusedError()),
        log=Log(),
        make_nonce=lambda: "a nonce",
        resolver=NoRecords(),
    )


@asynccontextmanager
async def open_driver(
    machine: ScriptedClusterMachine, connector: Connector | None = None
) -> AsyncIterator[ClusterDriver]:
    """Yield a running driver."""
    driver = driver_of(machine, connector)
    async with running(driver, "couchbase://a"):
        yield driver


def settle(event: Event) -> Sequence[Action]:
    """Return the completion of a submitted operation, and nothing for other events."""
    return [CompleteOperation(event.token, DONE)] if isinstance(event, OperationSubmitted) else ()


async def perform(driver: ClusterDriver, key: str = "ada") -> Done:
    """Perform an operation whose result does not matter."""
    return await driver.perform(Done, lambda: get(key), None, None)


async def occur(driver: ClusterDriver, event: Event) -> None:
    """Pass ``event`` to the driver, as a stream would."""
    await trio.lowlevel.checkpoint()
    driver.feed(event)


async def act(driver: ClusterDriver, machine: ScriptedClusterMachine, *actions: Action) -> None:
    """Let received bytes make ``machine`` return ``actions``."""
    machine.answer = on(BytesReceived, *actions)
    await occur(driver, BytesReceived(STREAM, b""))


@asynccontextmanager
async def open_scripted(machine: ScriptedClusterMachine) -> AsyncIterator[Cluster]:
    """Yield a cluster whose machine is scripted."""
    async with running(driver_of(machine), "couchbase://a") as cluster:
        yield cluster


class HalfDeafStream(trio.abc.Stream):
    """Stream whose two directions are functions of the test."""

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
        """Record the data, and call the test's function if there is one."""
        self.sent.append(bytes(data))
        await trio.lowlevel.checkpoint()
        if self._send_all is not None:
            await self._send_all(bytes(data))

    async def wait_send_all_might_not_block(self) -> None:
        """Fail, because the driver does not call it."""
        raise AssertionError

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the result of the test's function."""
        return await self._receive_some()

    async def aclose(self) -> None:
        """Record that the stream was closed, and call the test's function."""
        self.is_closed = True
        await self._aclose()
