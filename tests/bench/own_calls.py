"""Own Python calls of one get, or of the rows of one query, counted and not timed: how straight its way is."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Unpack

import trio

import triclinium
import triclinium_core
from triclinium.testing import ClientArguments, FakeAnswer, open_fake_cluster

PACKAGES = tuple(str(Path(package.__file__ or "").parent) for package in (triclinium, triclinium_core))
NOT_THE_CLIENT = tuple(str(Path(package) / "testing") for package in PACKAGES)
TASKS, GETS_OF_A_TASK = 64, 10
GETS = TASKS * GETS_OF_A_TASK
DOCUMENT = {"name": "Ada Lovelace", "born": 1815, "tags": ["poet", "engine"], "about": "x" * 20}
"""Some ninety bytes of JSON."""
STATEMENT = "SELECT p.* FROM people p"
PIECE_SIZE = 65_536
"""Bytes that a driver reads at once."""

PATIENT = triclinium.TimeoutOptions(kv=60.0)
"""Counting slows a get down, and a busy machine does as well."""


class OwnCalls:
    """How often each function of our packages was entered; a coroutine that goes on counts."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()
        self.module_changes: int = 0
        """How often a function was entered that stands in another module than the one before."""
        self._path = ""

    def count(self, frame: FrameType, event: str, _: object) -> None:
        """Take an event of ``sys.setprofile``."""
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGES) and not path.startswith(NOT_THE_CLIENT):
            self.of[f"{Path(path).stem}.{frame.f_code.co_qualname}"] += 1
            self.module_changes += path != self._path
            self._path = path


def own_calls(opened: AbstractAsyncContextManager[triclinium.Collection]) -> OwnCalls:
    """Return what is counted in ``GETS`` gets of ``TASKS`` tasks."""
    found = OwnCalls()

    async def main() -> None:
        async with opened as collection:
            await collection.upsert("ada", DOCUMENT)

            async def get() -> None:
                for _ in range(GETS_OF_A_TASK):
                    await collection.get("ada")

            async def get_in_all_tasks() -> None:
                async with trio.open_nursery() as nursery:
                    for _ in range(TASKS):
                        nursery.start_soon(get)

            await get_in_all_tasks()
            sys.setprofile(found.count)
            try:
                await get_in_all_tasks()
            finally:
                sys.setprofile(None)

    trio.run(main)
    return found


def own_calls_of_rows(rows: int) -> OwnCalls:
    """Return what is counted while a task reads so many rows of one query, after one that is not counted."""
    found = OwnCalls()

    async def main() -> None:
        async with open_fake_cluster(piece_sizes=[PIECE_SIZE]) as fake, fake.open_client() as cluster:
            fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[DOCUMENT], repeat=rows))

            async def read() -> None:
                async with cluster.query(STATEMENT) as result:
                    count = 0
                    async for _ in result:
                        count += 1
                assert rows == count

            await read()
            sys.setprofile(found.count)
            try:
                await read()
            finally:
                sys.setprofile(None)

    trio.run(main)
    return found


@asynccontextmanager
async def of_memcached(
    connection_string: str, **arguments: Unpack[triclinium.ClusterArguments]
) -> AsyncIterator[triclinium.Collection]:
    """Give the block the documents of a memcached."""
    async with triclinium.open_cluster(connection_string, **arguments) as cluster:
        yield cluster.default_collection()


@asynccontextmanager
async def of_fake_cluster(**arguments: Unpack[ClientArguments]) -> AsyncIterator[triclinium.Collection]:
    """Give the block the documents of a bucket inside the process."""
    arguments.setdefault("timeouts", PATIENT)
    async with open_fake_cluster(buckets=["travel"]) as fake, fake.open_client(**arguments) as cluster:
        yield cluster.bucket("travel").default_collection()
