"""Scans of a collection by prefix, range and sample, one of which stops early."""

from __future__ import annotations

import trio
import trio.testing

from triclinium import Collection
from triclinium.scans import PrefixScan, RangeScan, SamplingScan, ScanTerm
from triclinium.testing import open_fake_cluster


async def total(collection: Collection, prefix: str) -> int:
    """Return the sum of all counters whose ids begin with a prefix."""
    result = 0
    async with collection.scan(PrefixScan(prefix), concurrency=8) as found:
        async for item in found:
            result += item.content_as(int)
    return result


async def first_above(collection: Collection, limit: int) -> str | None:
    """Return the id of a counter above a limit, or None, and abandon the rest of the scan."""
    async with collection.scan(RangeScan("hits-", ScanTerm("hits.", exclusive=True))) as found:
        async for item in found:
            if item.content_as(int) > limit:
                return item.id
    return None


async def main() -> None:
    """Store some counters, and scan them."""
    async with open_fake_cluster(nodes=3) as fake, fake.open_client() as cluster:
        counters = cluster.bucket("default").default_collection()
        for number in range(100):
            await counters.upsert(f"hits-{number:02}", number)
        await counters.upsert("misses-00", 1)

        print("all hits:", await total(counters, "hits-"))
        print("one above 98:", await first_above(counters, 98))
        async with counters.scan(SamplingScan(5, seed=7), ids_only=True) as found:
            print("some ids:", len([item.id async for item in found]))


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
