"""Load many documents with progress, repeat the writes that connections lost, and read all of them."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import trio
import trio.testing
from rich.progress import Progress

import triclinium
from triclinium import Collection, StandardRetryStrategy
from triclinium.errors import AmbiguousTimeoutException, DocumentNotFoundException, RequestCanceledException
from triclinium.testing import Opcode, hang_up, hang_up_after_applying, open_fake_cluster

COUNT = 5_000


def documents() -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the documents to load. A source may also be asynchronous, such as the lines of a file."""
    for number in range(COUNT):
        yield f"n{number:04}", {"number": number}


async def load(numbers: Collection) -> list[str]:
    """Write all documents and show the progress. Return the keys whose writes were not acknowledged."""
    lost: list[str] = []
    with Progress(disable=not sys.stdout.isatty()) as progress:
        bar = progress.add_task("Loading", total=COUNT)
        async with numbers.upsert_many(documents(), concurrency=256) as outcomes:
            async for key, outcome in outcomes:
                if outcome.error is not None:
                    lost.append(key)
                progress.advance(bar)
    print(f"{outcomes.succeeded} of {outcomes.taken} written")
    print(f"{outcomes.not_applied_count} certainly not, {outcomes.ambiguous_count} perhaps")
    return lost


@triclinium.retried(
    strategy=StandardRetryStrategy(rng=random.Random(0)), on=(RequestCanceledException, AmbiguousTimeoutException)
)
async def write(numbers: Collection, key: str, value: object) -> None:
    """Write a document. Only this program writes it, and always the same value, so that repeating it is safe."""
    await numbers.upsert(key, value)


async def main() -> None:
    """Load documents into three nodes, two of which lose a connection, and count what is there."""
    async with open_fake_cluster(nodes=3) as fake, fake.open_client() as cluster:
        numbers = cluster.bucket("default").default_collection()
        fake.nodes[0].faults.next(Opcode.SET, hang_up())
        fake.nodes[1].faults.next(Opcode.SET, hang_up_after_applying())

        lost = await load(numbers)
        values = dict(documents())
        async with trio.open_nursery() as nursery:
            for key in lost:
                nursery.start_soon(write, numbers, key, values[key])

        found = missing = 0
        async with numbers.get_many(values) as outcomes:
            async for _, outcome in outcomes:
                try:
                    outcome.result()
                except DocumentNotFoundException:
                    missing += 1
                else:
                    found += 1
        print(f"{len(lost)} written again; {found} found, {missing} missing")


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
