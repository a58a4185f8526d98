"""A payment that must survive the loss of a node, and the errors if the cluster cannot promise this."""

from __future__ import annotations

import trio
import trio.testing

from triclinium import Cas, Collection, DurabilityLevel
from triclinium.errors import (
    AmbiguousTimeoutException,
    DurabilityAmbiguousException,
    DurabilityImpossibleException,
    RequestCanceledException,
)
from triclinium.testing import open_fake_cluster


async def pay(orders: Collection, order: str, payment: str, cas: Cas) -> str:
    """Mark an order as paid, with a write that survives the loss of a node."""
    paid = {"state": "paid", "payment": payment}
    try:
        await orders.replace(order, paid, cas=cas, durability=DurabilityLevel.MAJORITY)
    except DurabilityImpossibleException:
        return "not paid: there are too few nodes for such a promise"
    except (DurabilityAmbiguousException, AmbiguousTimeoutException, RequestCanceledException):
        return "perhaps paid: read before paying again"
    return "paid"


async def main() -> None:
    """Pay under normal conditions, while replication is stopped, after a failover, and after a rebalance."""
    async with open_fake_cluster(nodes=3, replicas=1) as fake, fake.open_client() as cluster:
        orders = cluster.bucket("default").default_collection()
        opened = await orders.insert("order-1", {"state": "open"})
        print(await pay(orders, "order-1", "p1", opened.cas))

        opened = await orders.insert("order-2", {"state": "open"})
        (replica,) = fake.nodes.replica_holders_of("order-2")
        fake.nodes.hold_replication(replica)
        start = trio.current_time()
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def reader() -> None:
                await trio.sleep(1)
                print("meanwhile a reader finds:", (await orders.get("order-2")).content)

            print(await pay(orders, "order-2", "p2", opened.cas))
        print(f"told after {trio.current_time() - start:.0f} s; now it is:", (await orders.get("order-2")).content)

        fake.nodes.fail_over(replica)
        print(await pay(orders, "order-2", "p2", opened.cas))
        fake.nodes.release_replication(replica)
        fake.nodes.rebalance()
        print(await pay(orders, "order-2", "p2", opened.cas))


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
