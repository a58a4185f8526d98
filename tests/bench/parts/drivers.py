"""Gets through the drivers of the page "Embed the core" beside the trio client, on a real memcached."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager

from docs.howto.examples.asyncio_driver import AsyncioClient
from docs.howto.examples.selectors_driver import SelectorsClient
from tests.bench import clients
from tests.bench.servers import memcached
from tests.bench.turns import Effort, Row, Stopwatch, Turn, measure
from triclinium import RawBinaryTranscoder
from triclinium_core import ClientMachine, ClientOptions
from triclinium_core.kv.operation.document_operations import Get, Keyspace
from triclinium_core.kv.operation.results import GetResult

SIZE = 100
TASKS: Mapping[int, int] = {1: 2_000, 64: 20_480}
"""Number of gets in flight, and the number of gets in a turn."""
EVERYWHERE = Keyspace(None)
BYTES = RawBinaryTranscoder()


def machine_of(job: clients.Job) -> ClientMachine:
    """Return the machine of a client of the server."""
    return ClientMachine(ClientOptions(connection_string=job.server.connection_string), rng=random.Random())


@asynccontextmanager
async def through_asyncio(job: clients.Job) -> AsyncIterator[clients.Operate]:
    """Yield gets of the asyncio driver."""
    with AsyncioClient(machine_of(job)) as client:

        async def get(key: str) -> None:
            found = await client.perform(Get(EVERYWHERE, key, BYTES))
            assert isinstance(found, GetResult)
            assert len(found.content_as(bytes)) == len(job.value)

        yield get


def through_selectors(job: clients.Job, tasks: int, operations: int) -> Turn:
    """Return the turn of the driver without an event loop, which performs ``tasks`` gets together."""

    def at_once(client: SelectorsClient) -> None:
        gets = [Get(EVERYWHERE, key, BYTES) for key in clients.KEYS[:tasks]]
        for found in client.perform(*gets):
            assert isinstance(found, GetResult)
            assert len(found.content_as(bytes)) == len(job.value)

    def turn() -> Mapping[str, float]:
        rounds = -(-operations // tasks)
        with SelectorsClient(machine_of(job)) as client:
            for _ in range(-(-clients.WARM_UP // tasks)):
                at_once(client)
            with Stopwatch() as watch:
                for _ in range(rounds):
                    at_once(client)
        return watch.both(rounds * tasks)

    return turn


DRIVERS: Mapping[str, clients.Client] = {
    **clients.OURS,
    "asyncio driver": clients.Client("triclinium", clients.on_asyncio(through_asyncio)),
    "selectors driver": clients.Client("triclinium", through_selectors),
}


def rows(effort: Effort) -> Iterator[Row]:
    """Measure."""
    with memcached() as server:
        if server is None:
            yield from measure("drivers: gets of 100 B", "1 in flight", {"memcached": None}, effort)
            return
        clients.fill(job := clients.Job(server, clients.Kind.GET, bytes(SIZE)))
        for tasks, operations in TASKS.items():
            turns = clients.turns_of(DRIVERS, job, tasks=tasks, operations=effort.of(operations))
            yield from measure("drivers: gets of 100 B", f"{tasks} in flight", turns, effort.short)
