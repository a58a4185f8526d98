"""Memory of an operation in flight, measured with tracemalloc."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import cache, partial

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.bench.turns import Effort, Row, measure
from triclinium import open_cluster
from triclinium.abc import ConnectedStream

BYTES = "bytes"
ON_A_CONNECTION = 10_000
"""Operations in flight per connection; more would be queued."""


def in_flight(count: int) -> Iterator[Row]:
    """Measure ``count`` gets without responses."""
    turns = {"a get, beside its task": partial(beside_its_task, count), "its task": partial(task, count)}
    yield from measure("core: in flight", f"{count:,} at once", turns, Effort(rounds=1))


@cache
def task(count: int) -> Mapping[str, float]:
    """Return the memory of each of many tasks that only sleep."""

    async def main() -> float:
        return await _weight(count, _sleep)

    return {BYTES: trio.run(main)}


def beside_its_task(count: int) -> Mapping[str, float]:
    """Return the additional memory of a task that waits for a get."""

    async def main() -> float:
        async with _silent_clients(-(-count // ON_A_CONNECTION)) as gets:
            return await _weight(count, lambda number: gets[number % len(gets)]())

    # Run with a clock that stands still, so that no get times out.
    return {BYTES: trio.run(main, clock=MockClock()) - task(count)[BYTES]}


async def _sleep(_: int) -> None:
    await trio.sleep_forever()


async def _weight(count: int, work: Callable[[int], Awaitable[object]]) -> float:
    async with trio.open_nursery() as nursery:
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for number in range(count):
                nursery.start_soon(work, number)
            await wait_all_tasks_blocked()
            gc.collect()
            weight = (tracemalloc.get_traced_memory()[0] - before) / count
        finally:
            tracemalloc.stop()
            gc.enable()
        nursery.cancel_scope.cancel()
    return weight


@asynccontextmanager
async def _silent_clients(count: int) -> AsyncIterator[list[Callable[[], Awaitable[object]]]]:
    """Yield a list with a get of each of ``count`` clients, each with its own connection."""
    if count == 0:
        yield []
        return
    async with (
        open_cluster("memcached://127.0.0.1", connector=_Silence()) as cluster,
        _silent_clients(count - 1) as others,
    ):
        collection = cluster.default_collection()
        yield [partial(collection.get, "ada"), *others]


class _Silence:
    """Connector to nothing."""

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        await trio.lowlevel.checkpoint()
        return ConnectedStream(_SilentStream())


class _SilentStream(trio.abc.Stream):
    """Stream that accepts all data and never receives any."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.sleep_forever()
        raise AssertionError("it sleeps forever")

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
