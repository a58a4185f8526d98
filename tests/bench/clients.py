"""Who is measured: every client as its own documentation has it used, with the same keys and the same bytes.

Those of others are imported where they are used, for they need not be installed.

Each is a block that gives a function which reads or writes one document; connecting is not measured.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from enum import Enum
from functools import partial
from importlib import import_module

import trio

from tests.bench.bare import GET, SET, bare_loop, bare_stream
from tests.bench.turns import Turn
from triclinium import RawBinaryTranscoder, open_cluster

KEYS = [f"document-{number:04}" for number in range(64)]
WARM_UP = 64
"""Operations before the clock is looked at, by as many tasks as then work."""


class Kind(Enum):
    """What is done."""

    GET = "get"
    SET = "set"


Operate = Callable[[str], Awaitable[object]]
Open = Callable[[int, Kind, bytes], AbstractAsyncContextManager[Operate]]
"""Takes the port of a memcached, what to do, and the value."""


@asynccontextmanager
async def triclinium(port: int, kind: Kind, value: bytes) -> AsyncIterator[Operate]:
    """Ours, without JSON, which the others do not have."""
    as_bytes = RawBinaryTranscoder()
    async with open_cluster(f"memcached://127.0.0.1:{port}") as cluster:
        collection = cluster.default_collection()

        async def get(key: str) -> None:
            assert len((await collection.get(key, transcoder=as_bytes)).content_as(bytes)) == len(value)

        async def put(key: str) -> None:
            await collection.upsert(key, value, transcoder=as_bytes)

        yield get if kind is Kind.GET else put


@asynccontextmanager
async def bare_trio(port: int, kind: Kind, value: bytes) -> AsyncIterator[Operate]:
    """A loop of trio that pipelines the same frames."""
    async with bare_loop(port) as loop:

        async def get(key: str) -> None:
            assert len(await loop.ask(GET, key.encode())) == len(value) + 4

        async def put(key: str) -> None:
            await loop.ask(SET, key.encode(), value)

        yield get if kind is Kind.GET else put


@asynccontextmanager
async def bare_trio_stream(port: int, kind: Kind, value: bytes) -> AsyncIterator[Operate]:
    """A stream of trio, for one task."""
    async with bare_stream(port) as stream:

        async def get(key: str) -> None:
            assert len(await stream.ask(GET, key.encode())) == len(value) + 4

        async def put(key: str) -> None:
            await stream.ask(SET, key.encode(), value)

        yield get if kind is Kind.GET else put


@asynccontextmanager
async def of_aiomcache(port: int, kind: Kind, value: bytes) -> AsyncIterator[Operate]:
    """aiomcache, with its pool of two connections."""
    aiomcache = import_module("aiomcache")
    client = aiomcache.Client("127.0.0.1", port)

    async def get(key: str) -> None:
        found = await client.get(key.encode())
        assert found is not None
        assert len(found) == len(value)

    async def put(key: str) -> None:
        await client.set(key.encode(), value)

    try:
        yield get if kind is Kind.GET else put
    finally:
        await client.close()


@asynccontextmanager
async def of_emcache(port: int, kind: Kind, value: bytes) -> AsyncIterator[Operate]:
    """emcache, with its pool."""
    emcache = import_module("emcache")
    client = await emcache.create_client([emcache.MemcachedHostAddress("127.0.0.1", port)], timeout=None)

    async def get(key: str) -> None:
        found = await client.get(key.encode())
        assert found is not None
        assert len(found.value) == len(value)

    async def put(key: str) -> None:
        await client.set(key.encode(), value)

    try:
        yield get if kind is Kind.GET else put
    finally:
        await client.close()


@asynccontextmanager
async def of_pymemcache(port: int, kind: Kind, value: bytes) -> AsyncIterator[Operate]:
    """pymemcache, which blocks; for one task."""
    client = import_module("pymemcache.client.base").Client(("127.0.0.1", port))

    async def get(key: str) -> None:
        assert len(client.get(key)) == len(value)

    async def put(key: str) -> None:
        client.set(key, value, noreply=False)

    try:
        yield get if kind is Kind.GET else put
    finally:
        client.close()


@asynccontextmanager
async def of_pylibmc(port: int, kind: Kind, value: bytes) -> AsyncIterator[Operate]:
    """pylibmc, which blocks and is C; for one task."""
    pylibmc = import_module("pylibmc")
    client = pylibmc.Client([f"127.0.0.1:{port}"], binary=True)

    async def get(key: str) -> None:
        assert len(client.get(key)) == len(value)

    async def put(key: str) -> None:
        client.set(key, value)

    try:
        yield get if kind is Kind.GET else put
    finally:
        client.disconnect_all()


ON_TRIO: Mapping[str, Open] = {"triclinium": triclinium, "bare trio loop": bare_trio}
ON_ASYNCIO: Mapping[str, Open] = {"aiomcache": of_aiomcache, "emcache": of_emcache}
OF_ONE_TASK: Mapping[str, Open] = {
    "bare trio stream": bare_trio_stream,
    "pymemcache": of_pymemcache,
    "pylibmc": of_pylibmc,
}


def _keys(count: int, offset: int) -> Iterator[str]:
    return (KEYS[(number + offset) % len(KEYS)] for number in range(count))


def on_trio(open_client: Open, port: int, kind: Kind, value: bytes, *, tasks: int, operations: int) -> Turn:
    """Return a turn on trio: ``tasks`` tasks share the operations."""

    async def work(operate: Operate, count: int, offset: int) -> None:
        for key in _keys(count, offset):
            await operate(key)

    async def all_of(operate: Operate, each: int) -> None:
        async with trio.open_nursery() as nursery:
            for number in range(tasks):
                nursery.start_soon(work, operate, each, number)

    async def main() -> float:
        async with open_client(port, kind, value) as operate:
            await all_of(operate, -(-WARM_UP // tasks))
            began = time.process_time()
            await all_of(operate, operations // tasks)
            return (time.process_time() - began) / (operations // tasks * tasks)

    return partial(trio.run, main)


def on_asyncio(open_client: Open, port: int, kind: Kind, value: bytes, *, tasks: int, operations: int) -> Turn:
    """Return the same turn on asyncio."""

    async def work(operate: Operate, count: int, offset: int) -> None:
        for key in _keys(count, offset):
            await operate(key)

    async def all_of(operate: Operate, each: int) -> None:
        await asyncio.gather(*(work(operate, each, number) for number in range(tasks)))

    async def main() -> float:
        async with open_client(port, kind, value) as operate:
            await all_of(operate, -(-WARM_UP // tasks))
            began = time.process_time()
            await all_of(operate, operations // tasks)
            return (time.process_time() - began) / (operations // tasks * tasks)

    return lambda: asyncio.run(main())
