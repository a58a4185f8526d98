"""The way of one query through the code, drawn for the page on the architecture.

``uv run python -m tests.docs.way_of_a_query`` prints it.
"""

from __future__ import annotations

import sys

import trio
import trio.testing

from tests.docs.ways import Way
from triclinium import Cluster
from triclinium.testing import open_fake_cluster


async def _ask(cluster: Cluster) -> None:
    async with cluster.query("SELECT 1 AS one") as result:
        async for _ in result:
            pass


def way_of_a_query() -> str:
    """Return where a query with one row enters one file from another, on a connection that is open."""
    way = Way(only_doors=True)

    async def main() -> None:
        async with open_fake_cluster() as fake, fake.open_client() as cluster:
            await _ask(cluster)
            await trio.testing.wait_all_tasks_blocked()
            with way.watched():
                await _ask(cluster)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    return way.drawn()


if __name__ == "__main__":
    sys.stdout.write(way_of_a_query() + "\n")
