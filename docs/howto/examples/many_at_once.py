"""Read many documents at the same time, with a bound on the operations in flight."""

from __future__ import annotations

from collections.abc import Iterable

import trio
import trio.testing

from triclinium import Collection, GetResult
from triclinium.testing import open_fake_cluster

AT_ONCE = 64


async def get_many(collection: Collection, keys: Iterable[str]) -> dict[str, GetResult]:
    """Return the documents that exist. An error other than a missing document cancels all reads."""
    found: dict[str, GetResult] = {}
    limit = trio.CapacityLimiter(AT_ONCE)

    async def get(key: str) -> None:
        async with limit:
            document = await collection.get_or_none(key)
        if document is not None:
            found[key] = document

    async with trio.open_nursery() as nursery:
        for key in keys:
            nursery.start_soon(get, key)
    return found


async def main() -> None:
    """Read a thousand keys, half of which exist."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        numbers = cluster.bucket("default").default_collection()
        for number in range(0, 1000, 2):
            await numbers.upsert(f"n{number}", number)

        found = await get_many(numbers, (f"n{number}" for number in range(1000)))
        print(len(found), "of 1000 exist; n42 is", found["n42"].content)
        print("connections:", len(cluster.statistics().connections))


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
