"""Traces of one get and of one query against an in-memory cluster."""

from __future__ import annotations

import trio
import trio.testing

from tests.bench.own_calls import of_fake_cluster
from tests.docs.map.calls import CallTrace
from triclinium import Cluster
from triclinium.testing import open_fake_cluster


def calls_of_a_get() -> str:
    """Return the functions that the get of a single task enters."""
    trace = CallTrace()

    async def main() -> None:
        async with of_fake_cluster() as collection:
            await collection.upsert("ada", 1)
            await collection.get("ada")
            await trio.testing.wait_all_tasks_blocked()
            with trace.watched():
                await collection.get("ada")

    trio.run(main)
    return trace.drawn()


async def _ask(cluster: Cluster) -> None:
    async with cluster.query("SELECT 1 AS one") as result:
        async for _ in result:
            pass


def calls_of_a_query() -> str:
    """Return the calls between files of a query with one row, on an open connection."""
    trace = CallTrace(only_entries=True)

    async def main() -> None:
        async with open_fake_cluster() as fake, fake.open_client() as cluster:
            await _ask(cluster)
            await trio.testing.wait_all_tasks_blocked()
            with trace.watched():
                await _ask(cluster)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    return trace.drawn()
