"""Load 50,000 documents while a node restarts, and end with all of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

import trio
import trio.testing

import triclinium
from triclinium import Collection, SimpleRetryStrategy, TimeoutOptions
from triclinium.errors import AmbiguousTimeoutException, RequestCanceledException
from triclinium.testing import open_fake_cluster

DOCUMENTS = 50_000
AT_ONCE = 64
LOST = (RequestCanceledException, AmbiguousTimeoutException)
"""Errors of a write that may have been applied: the connection, or the response, was lost."""

# The client waits for a node longer than a restart takes. A write that was not sent yet needs nothing else.
patient = TimeoutOptions(kv=30.0)
# An upsert may be repeated here: there is one writer, and it writes the same value again.
strategy = SimpleRetryStrategy(rng=random.Random(0), max_attempts=5)


@triclinium.retried(strategy=strategy, on=LOST)
async def write(collection: Collection, key: str, value: Mapping[str, int]) -> None:
    """Write a document, also if its connection is lost."""
    await collection.upsert(key, value)


async def load(collection: Collection, items: Iterable[tuple[str, Mapping[str, int]]]) -> None:
    """Write all documents, at most ``AT_ONCE`` at the same time."""
    remaining = iter(items)

    async def work() -> None:
        for key, value in remaining:
            await write(collection, key, value)

    async with trio.open_nursery() as nursery:
        for _ in range(AT_ONCE):
            nursery.start_soon(work)


async def main() -> None:
    """Restart the second of three nodes after 20,000 requests; it is down for two seconds."""
    async with open_fake_cluster(nodes=3) as fake, fake.open_client(timeouts=patient) as cluster:
        numbers = cluster.bucket("default").default_collection()
        fake.nodes.restart(1, keep_data=True, after_requests=20_000, for_seconds=2)
        await load(numbers, ((f"n{number}", {"square": number**2}) for number in range(DOCUMENTS)))

        for change in fake.nodes.changes:
            print("end of" if change.is_end else "start of", change.name, "of node", change.node)
        present = sum(fake.nodes.documents.get("default", f"n{number}") is not None for number in range(DOCUMENTS))
        print(present, "of", DOCUMENTS, "documents are there")


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
