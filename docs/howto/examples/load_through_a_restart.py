"""Load 50,000 documents while a node restarts, and end with all of them."""

from __future__ import annotations

import random
from collections.abc import Mapping

import trio
import trio.testing

import triclinium
from triclinium import Collection, SimpleRetryStrategy, TimeoutOptions
from triclinium.errors import AmbiguousTimeoutException, RequestCanceledException
from triclinium.testing import Opcode, delay, open_fake_cluster

DOCUMENTS = 50_000
LOST = (RequestCanceledException, AmbiguousTimeoutException)
"""Errors of a write that may have been applied: the connection, or the response, was lost."""

# The client waits for a node longer than a restart takes. That is enough for a write that was not sent yet.
patient = TimeoutOptions(kv=30.0)
# An upsert may be repeated here: there is one writer, and it writes the same value again.
strategy = SimpleRetryStrategy(rng=random.Random(0), max_attempts=5)


@triclinium.retried(strategy=strategy, on=LOST)
async def write(collection: Collection, key: str, value: Mapping[str, int]) -> None:
    """Write a document, even if its connection is lost."""
    await collection.upsert(key, value)


async def load(collection: Collection, items: Mapping[str, Mapping[str, int]]) -> None:
    """Write all documents, and write those again whose response was lost. Any other failure ends the load."""
    lost: list[str] = []
    async with collection.upsert_many(items) as outcomes:
        async for key, outcome in outcomes:
            if isinstance(outcome.error, LOST):
                lost.append(key)
            else:
                outcome.result()
    async with trio.open_nursery() as nursery:
        for key in lost:
            nursery.start_soon(write, collection, key, items[key])
    print("writes whose response was lost:", "some" if lost else "none")


async def main() -> None:
    """Restart the second of three nodes after 20,000 requests; it is down for two seconds."""
    async with open_fake_cluster(nodes=3) as fake, fake.open_client(timeouts=patient) as cluster:
        numbers = cluster.bucket("default").default_collection()
        # As over a network, a response takes time, so that writes are in flight whenever the node restarts.
        fake.nodes[1].faults.always(Opcode.SET, delay(0.001))
        fake.nodes.restart(1, keep_data=True, after_requests=20_000, for_seconds=2)
        await load(numbers, {f"n{number}": {"square": number**2} for number in range(DOCUMENTS)})

        for change in fake.nodes.changes:
            print("end of" if change.is_end else "start of", change.name, "of node", change.node)
        present = sum(fake.nodes.documents.get("default", f"n{number}") is not None for number in range(DOCUMENTS))
        print(present, "of", DOCUMENTS, "documents are there")


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
