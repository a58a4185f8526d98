"""Find out whether a write that timed out was applied."""

from __future__ import annotations

import trio
import trio.testing

import triclinium
from triclinium import Collection
from triclinium.errors import AmbiguousTimeoutException, CasMismatchException, RequestCanceledException
from triclinium.testing import Opcode, drop_response, open_fake_cluster


async def pay(orders: Collection, order: str, payment: str) -> str:
    """Mark an order as paid exactly once, even if a response is lost."""
    found = await orders.get(order)
    paid = {"state": "paid", "payment": payment}
    while True:
        try:
            with triclinium.fail_after(0.2):
                # The CAS makes a second attempt safe: if the first is applied after all, the second one is refused.
                await orders.replace(order, paid, cas=found.cas)
            return "paid"
        except (AmbiguousTimeoutException, RequestCanceledException) as error:
            print("in doubt:", error)
        except CasMismatchException:
            print("something was written meanwhile")
        now = await orders.get(order)
        if now.content_as(dict[str, str]).get("payment") == payment:
            return "paid, although the response was lost"
        if now.cas != found.cas:
            return f"another client has written: {now.content}"


async def main() -> None:
    """Pay one order whose write gets a response, and one whose write gets none."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        orders = cluster.bucket("default").default_collection()
        await orders.insert("order-1", {"state": "open"})
        await orders.insert("order-2", {"state": "open"})

        print("order-1:", await pay(orders, "order-1", "p1"))
        fake.node.faults.next(Opcode.REPLACE, drop_response())
        print("order-2:", await pay(orders, "order-2", "p2"))


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
