"""The way of one get through the code, drawn for the page on the architecture.

``uv run python -m tests.docs.way_of_a_get`` prints it.
"""

from __future__ import annotations

import sys

import trio
import trio.testing

from tests.bench.own_calls import of_fake_cluster
from tests.docs.ways import Way


def way_of_a_get() -> str:
    """Return the functions that a lone task's get enters."""
    way = Way()

    async def main() -> None:
        async with of_fake_cluster() as collection:
            await collection.upsert("ada", 1)
            await collection.get("ada")
            await trio.testing.wait_all_tasks_blocked()
            with way.watched():
                await collection.get("ada")

    trio.run(main)
    return way.drawn()


if __name__ == "__main__":
    sys.stdout.write(way_of_a_get() + "\n")
