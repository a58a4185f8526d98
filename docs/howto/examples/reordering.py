"""Two concurrent writes may be applied in either order; two that are awaited in turn are applied in that order."""

from __future__ import annotations

import trio
import trio.testing

from triclinium import Collection
from triclinium.testing import Opcode, open_fake_cluster, temporary_failure


async def together(people: Collection) -> None:
    """Write twice at the same time."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(people.upsert, "ada", "first")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(people.upsert, "ada", "second")


async def in_turn(people: Collection) -> None:
    """Write twice, the second time after the first write is done."""
    await people.upsert("ada", "first")
    await people.upsert("ada", "second")


async def main() -> None:
    """Write each pair to a node that is busy for the first of the two writes."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        people = cluster.bucket("default").default_collection()
        await people.upsert("ada", "nothing")
        for write_twice in (together, in_turn):
            fake.node.faults.next(Opcode.SET, temporary_failure())
            await write_twice(people)
            print(f"{write_twice.__name__}: the document is {(await people.get('ada')).content!r}")


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
