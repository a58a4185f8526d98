"""Time limits: for several calls together, for a write, and for every operation."""

from __future__ import annotations

import math

import trio
import trio.testing

import triclinium
from triclinium import Collection, TimeoutOptions
from triclinium.errors import AmbiguousTooSlowError, UnambiguousTimeoutException
from triclinium.testing import Opcode, delay, open_fake_cluster


async def front_page(pages: Collection) -> list[object]:
    """Return banner and news, or substitutes for both if they take more than 50 ms together."""
    with trio.move_on_after(0.050):
        banner = await pages.get("banner")
        news = await pages.get("news")
        return [banner.content, news.content]
    return ["(no banner today)", "(no news today)"]


async def place_order(orders: Collection) -> str:
    """Write an order. If that takes too long, return the names of the operations in doubt."""
    try:
        with triclinium.fail_after(0.2):
            await orders.upsert("o1", {"total": 42})
    except AmbiguousTooSlowError as error:
        return f"in doubt: {[lost.operation for lost in error.operations]}"
    return "placed"


async def main() -> None:
    """Use a slow node."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        documents = cluster.bucket("default").default_collection()
        await documents.upsert("banner", "Hello")
        await documents.upsert("news", "None")

        print(await front_page(documents))
        fake.node.faults.next(Opcode.GET, delay(0.040), times=2)
        print(await front_page(documents))

        fake.node.faults.next(Opcode.SET, delay(0.3))
        print(await place_order(documents))

        fake.node.faults.next(Opcode.GET, delay(9))
        try:
            await documents.get("banner")
        except UnambiguousTimeoutException as error:
            print(error)

        async with fake.open_client(timeouts=TimeoutOptions(kv=math.inf)) as patient:
            fake.node.faults.next(Opcode.GET, delay(9))
            print((await patient.bucket("default").default_collection().get("banner")).content)


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
