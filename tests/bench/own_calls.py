"""Number of triclinium's Python function calls for many gets, or for the rows of one query."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import TypeVar, Unpack

import trio

import triclinium
import triclinium_core
from triclinium.testing import ClientArguments, FakeAnswer, open_fake_cluster

T = TypeVar("T")

PACKAGES = tuple(str(Path(package.__file__ or "").parent) for package in (triclinium, triclinium_core))
NOT_THE_CLIENT = tuple(str(Path(package) / "testing") for package in PACKAGES)
TASKS, GETS_OF_A_TASK = 64, 10
GETS = TASKS * GETS_OF_A_TASK
DOCUMENT = {"name": "Ada Lovelace", "born": 1815, "tags": ["poet", "engine"], "about": "x" * 20}
"""About ninety bytes of JSON."""
STATEMENT = "SELECT p.* FROM people p"
PIECE_SIZE = 65_536
"""Number of bytes that a driver reads in one call."""

PATIENT = triclinium.TimeoutOptions(kv=60.0)
"""Timeouts that are long enough for gets on a busy machine, even though counting calls slows the gets down."""


class OwnCalls:
    """Number of calls of each function of triclinium's packages, including resumed coroutines."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()
        self.module_changes: int = 0
        """Number of calls of a function in a different module from the function that was called before."""
        self._path = ""

    def count(self, frame: FrameType, event: str, _: object) -> None:
        """Handle an event of ``sys.setprofile``."""
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGES) and not path.startswith(NOT_THE_CLIENT):
            self.of[f"{Path(path).stem}.{frame.f_code.co_qualname}"] += 1
            self.module_changes += path != self._path
            self._path = path


@contextmanager
def profiled(note: Callable[[FrameType, str, object], None]) -> Iterator[None]:
    """Call ``note`` for each event of ``sys.setprofile`` in a block."""
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


def counted(opened: AbstractAsyncContextManager[T], work: Callable[[T], Awaitable[None]]) -> OwnCalls:
    """Return the counts of some work on a client, after the same work without counting."""
    found = OwnCalls()

    async def main() -> None:
        async with opened as client:
            await work(client)
            with profiled(found.count):
                await work(client)

    trio.run(main)
    return found


def own_calls(opened: AbstractAsyncContextManager[triclinium.Collection]) -> OwnCalls:
    """Return the counts of ``GETS`` gets by ``TASKS`` tasks."""

    async def get(collection: triclinium.Collection) -> None:
        for _ in range(GETS_OF_A_TASK):
            await collection.get("ada")

    async def get_in_all_tasks(collection: triclinium.Collection) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(TASKS):
                nursery.start_soon(get, collection)

    return counted(opened, get_in_all_tasks)


def own_calls_of_rows(rows: int) -> OwnCalls:
    """Return the counts while a task reads ``rows`` rows of one query, after an uncounted query."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[triclinium.Cluster]:
        async with open_fake_cluster(piece_sizes=[PIECE_SIZE]) as fake, fake.open_client() as cluster:
            fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[DOCUMENT], repeat=rows))
            yield cluster

    async def read(cluster: triclinium.Cluster) -> None:
        async with cluster.query(STATEMENT) as result:
            count = 0
            async for _ in result:
                count += 1
        assert rows == count

    return counted(opened(), read)


@asynccontextmanager
async def of_memcached(
    connection_string: str, **arguments: Unpack[triclinium.ClusterArguments]
) -> AsyncIterator[triclinium.Collection]:
    """Yield the documents of a memcached, one of which is "ada"."""
    async with triclinium.open_cluster(connection_string, **arguments) as cluster:
        await cluster.default_collection().upsert("ada", DOCUMENT)
        yield cluster.default_collection()


@asynccontextmanager
async def of_fake_cluster(**arguments: Unpack[ClientArguments]) -> AsyncIterator[triclinium.Collection]:
    """Yield the documents of a bucket inside the process, one of which is "ada"."""
    arguments.setdefault("timeouts", PATIENT)
    async with open_fake_cluster(buckets=["travel"]) as fake, fake.open_client(**arguments) as cluster:
        await cluster.bucket("travel").default_collection().upsert("ada", DOCUMENT)
        yield cluster.bucket("travel").default_collection()
