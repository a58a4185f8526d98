"""Clients that the benchmark measures, each used as in its documentation, with the same keys and bytes.

Each is a block that yields a function for reading or writing one document; connecting is not measured. Other clients
are imported when they are used, because they are optional.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, closing, contextmanager
from enum import Enum
from functools import partial
from importlib import import_module
from typing import NamedTuple, Unpack

import trio

from tests.bench.bare import GET, SET, Ask, bare_loop, bare_stream
from tests.bench.servers import BenchServer, TlsServer
from tests.bench.turns import Stopwatch, Turn
from triclinium import ClusterArguments, Collection, PasswordAuthenticator, RawBinaryTranscoder, open_cluster

KEYS = [f"document-{number:04}" for number in range(64)]
WARM_UP = 64
"""Number of operations before the measurement. As many tasks perform them as in the measurement."""


class Kind(Enum):
    """Measured operation."""

    GET = "get"
    SET = "set"


class Job(NamedTuple):
    """Operation, server and value."""

    server: BenchServer
    kind: Kind
    value: bytes


Operate = Callable[[str], Awaitable[object]]
Open = Callable[[Job], AbstractAsyncContextManager[Operate]]
OpenBlocking = Callable[[Job], AbstractContextManager[Callable[[str], object]]]


@asynccontextmanager
async def collection_of(server: BenchServer, **arguments: Unpack[ClusterArguments]) -> AsyncIterator[Collection]:
    """Yield the documents of a server with a new client of triclinium."""
    authenticator = PasswordAuthenticator(server.username, server.password) if server.bucket else None
    async with open_cluster(server.connection_string, authenticator, **arguments) as cluster:
        yield cluster.bucket(server.bucket).default_collection() if server.bucket else cluster.default_collection()


@asynccontextmanager
async def triclinium(job: Job, **arguments: Unpack[ClusterArguments]) -> AsyncIterator[Operate]:
    """Yield an operation of triclinium on plain bytes, because not every other client encodes JSON."""
    as_bytes, value = RawBinaryTranscoder(), job.value
    async with collection_of(job.server, **arguments) as collection:

        async def get(key: str) -> None:
            assert len((await collection.get(key, transcoder=as_bytes)).content_as(bytes)) == len(value)

        async def put(key: str) -> None:
            await collection.upsert(key, value, transcoder=as_bytes)

        yield get if job.kind is Kind.GET else put


@asynccontextmanager
async def bare_trio_loop(job: Job) -> AsyncIterator[Operate]:
    """Yield operations of a trio loop that pipelines the same frames."""
    async with bare_loop(job.server) as ask:
        yield _asking(job, ask)


@asynccontextmanager
async def bare_trio_loop_over_tls(job: Job, tls: TlsServer) -> AsyncIterator[Operate]:
    """Yield operations of the same loop over ``trio.SSLStream``."""
    async with bare_loop(job.server, tls) as ask:
        yield _asking(job, ask)


@asynccontextmanager
async def bare_trio_stream(job: Job) -> AsyncIterator[Operate]:
    """Yield operations of a trio stream for one task."""
    async with bare_stream(job.server) as ask:
        yield _asking(job, ask)


def _asking(job: Job, ask: Ask) -> Operate:
    value = job.value

    async def get(key: str) -> None:
        assert len(await ask(GET, key.encode(), b"")) == len(value) + 4

    async def put(key: str) -> None:
        assert not await ask(SET, key.encode(), value)

    return get if job.kind is Kind.GET else put


@asynccontextmanager
async def of_aiomcache(job: Job) -> AsyncIterator[Operate]:
    """Yield operations of aiomcache, with its pool of two connections."""
    client, value = import_module("aiomcache").Client("127.0.0.1", job.server.port), job.value

    async def get(key: str) -> None:
        assert len(await client.get(key.encode())) == len(value)

    async def put(key: str) -> None:
        await client.set(key.encode(), value)

    try:
        yield get if job.kind is Kind.GET else put
    finally:
        await client.close()


@asynccontextmanager
async def of_emcache(job: Job) -> AsyncIterator[Operate]:
    """Yield operations of emcache, with its pool."""
    emcache, value = import_module("emcache"), job.value
    address = emcache.MemcachedHostAddress("127.0.0.1", job.server.port)
    # Turn off emcache's timeout, because operations would exceed it when the machine is busy.
    client = await emcache.create_client([address], timeout=None)

    async def get(key: str) -> None:
        assert len((await client.get(key.encode())).value) == len(value)

    async def put(key: str) -> None:
        await client.set(key.encode(), value)

    try:
        yield get if job.kind is Kind.GET else put
    finally:
        await client.close()


@contextmanager
def of_pymemcache(job: Job) -> Iterator[Callable[[str], object]]:
    """Yield operations of pymemcache, which is blocking."""
    value = job.value
    with closing(import_module("pymemcache.client.base").Client(("127.0.0.1", job.server.port))) as client:

        def get(key: str) -> None:
            assert len(client.get(key)) == len(value)

        def put(key: str) -> None:
            client.set(key, value, noreply=False)

        yield get if job.kind is Kind.GET else put


@contextmanager
def of_pylibmc(job: Job) -> Iterator[Callable[[str], object]]:
    """Yield operations of pylibmc, which is blocking and written in C."""
    client, value = import_module("pylibmc").Client([f"127.0.0.1:{job.server.port}"], binary=True), job.value

    def get(key: str) -> None:
        assert len(client.get(key)) == len(value)

    def put(key: str) -> None:
        client.set(key, value)

    try:
        yield get if job.kind is Kind.GET else put
    finally:
        client.disconnect_all()


@contextmanager
def official_blocking(job: Job) -> Iterator[Callable[[str], object]]:
    """Yield operations of the official client. The processor time includes that of its C++ threads."""
    server, value = job.server, job.value
    connect = import_module("couchbase.cluster").Cluster.connect
    with closing(connect(server.connection_string, official_options(server))) as cluster:
        collection = cluster.bucket(server.bucket).default_collection()

        def get(key: str) -> None:
            assert len(collection.get(key).content_as[bytes]) == len(value)

        def put(key: str) -> None:
            collection.upsert(key, value)

        yield get if job.kind is Kind.GET else put


@asynccontextmanager
async def official_asyncio(job: Job) -> AsyncIterator[Operate]:
    """Yield operations of the official client's asyncio API."""
    server, value = job.server, job.value
    connect = import_module("acouchbase.cluster").Cluster.connect
    cluster = await connect(server.connection_string, official_options(server))
    bucket = cluster.bucket(server.bucket)
    await bucket.on_connect()
    collection = bucket.default_collection()

    async def get(key: str) -> None:
        assert len((await collection.get(key)).content_as[bytes]) == len(value)

    async def put(key: str) -> None:
        await collection.upsert(key, value)

    try:
        yield get if job.kind is Kind.GET else put
    finally:
        await cluster.close()


def official_options(server: BenchServer) -> object:
    """Return the official client's options for a server: raw bytes, as in the other clients."""
    authenticator = import_module("couchbase.auth").PasswordAuthenticator(server.username, server.password)
    transcoder = import_module("couchbase.transcoder").RawBinaryTranscoder()
    return import_module("couchbase.options").ClusterOptions(authenticator, transcoder=transcoder)


class Client(NamedTuple):
    """Client that takes part in the benchmark."""

    needs: str
    """Package that must be installed to measure the client."""
    turn: Callable[[Job, int, int], Turn]
    """Function of the job, the number of concurrent tasks, and the number of operations that the tasks share."""


def turns_of(clients: Mapping[str, Client], job: Job, *, tasks: int, operations: int) -> Mapping[str, Turn | None]:
    """Return the turns of all clients; None for one that is not installed."""
    return {
        name: client.turn(job, tasks, operations) if importlib.util.find_spec(client.needs) is not None else None
        for name, client in clients.items()
    }


def on_trio(open_client: Open) -> Callable[[Job, int, int], Turn]:
    """Return a function that returns the turn of a trio client."""

    async def at_once(operate: Operate, tasks: int, each: int) -> None:
        async with trio.open_nursery() as nursery:
            for number in range(tasks):
                nursery.start_soon(_work, operate, each, number)

    return lambda job, tasks, operations: lambda: trio.run(_timed, open_client(job), at_once, tasks, operations)


def on_asyncio(open_client: Open) -> Callable[[Job, int, int], Turn]:
    """Return a function that returns the turn of an asyncio client."""

    async def at_once(operate: Operate, tasks: int, each: int) -> None:
        await asyncio.gather(*(_work(operate, each, number) for number in range(tasks)))

    return lambda job, tasks, operations: lambda: asyncio.run(_timed(open_client(job), at_once, tasks, operations))


async def _timed(
    opened: AbstractAsyncContextManager[Operate],
    at_once: Callable[[Operate, int, int], Awaitable[None]],
    tasks: int,
    operations: int,
) -> Mapping[str, float]:
    each = -(-operations // tasks)
    async with opened as operate:
        await at_once(operate, tasks, -(-WARM_UP // tasks))
        with Stopwatch() as watch:
            await at_once(operate, tasks, each)
    return watch.both(each * tasks)


async def _work(operate: Operate, each: int, number: int) -> None:
    for key in _keys(each, number):
        await operate(key)


def in_threads(open_client: OpenBlocking) -> Callable[[Job, int, int], Turn]:
    """Return a function that returns the turn of a blocking client, with one thread per task."""

    def turn(job: Job, tasks: int, operations: int) -> Turn:
        def main() -> Mapping[str, float]:
            each = -(-operations // tasks)
            with open_client(job) as operate, ThreadPoolExecutor(tasks) as threads:

                def at_once(each: int) -> None:
                    list(threads.map(partial(_work_blocking, operate, each), range(tasks)))

                at_once(-(-WARM_UP // tasks))
                with Stopwatch() as watch:
                    at_once(each)
            return watch.both(each * tasks)

        return main

    return turn


def _work_blocking(operate: Callable[[str], object], each: int, number: int) -> None:
    for key in _keys(each, number):
        operate(key)


def _keys(count: int, offset: int) -> Iterator[str]:
    return (KEYS[(number + offset) % len(KEYS)] for number in range(count))


OURS: Mapping[str, Client] = {"triclinium": Client("triclinium", on_trio(triclinium))}
BARE_LOOP: Mapping[str, Client] = {"bare trio loop": Client("trio", on_trio(bare_trio_loop))}
BARE_STREAM: Mapping[str, Client] = {"bare trio stream": Client("trio", on_trio(bare_trio_stream))}
OF_MEMCACHED: Mapping[str, Client] = {
    "aiomcache": Client("aiomcache", on_asyncio(of_aiomcache)),
    "emcache": Client("emcache", on_asyncio(of_emcache)),
}
OF_MEMCACHED_BLOCKING: Mapping[str, Client] = {
    "pymemcache": Client("pymemcache", in_threads(of_pymemcache)),
    "pylibmc": Client("pylibmc", in_threads(of_pylibmc)),
}
OFFICIAL: Mapping[str, Client] = {
    "couchbase, asyncio": Client("couchbase", on_asyncio(official_asyncio)),
    "couchbase, blocking": Client("couchbase", in_threads(official_blocking)),
}


def fill(job: Job) -> None:
    """Write the documents that are read later."""

    async def main() -> None:
        # Write documents without flags to memcached: some clients refuse flags that they have not written themselves.
        async with (triclinium if job.server.bucket else bare_trio_stream)(job._replace(kind=Kind.SET)) as put:
            for key in KEYS:
                await put(key)

    trio.run(main)
