"""Read a document whose node is down, and compare two of its copies."""

from __future__ import annotations

import trio
import trio.testing

from triclinium import Collection
from triclinium.testing import open_fake_cluster

ENOUGH = 2


async def newest_copy(collection: Collection, key: str) -> object:
    """Return the newest of the first copies that arrive."""
    found = []
    async with collection.get_all_replicas(key) as copies:
        async for copy in copies:
            found.append(copy)
            if len(found) == ENOUGH:
                break
    return max(found, key=lambda copy: copy.cas).content


async def main() -> None:
    """Write a document, delay one replica, kill the active node, and read the document."""
    async with open_fake_cluster(nodes=3, replicas=2) as fake, fake.open_client() as cluster:
        people = cluster.bucket("default").default_collection()
        await people.upsert("ada", {"born": 1815})
        owner, (first, _) = fake.nodes.owner_of("ada"), fake.nodes.replica_holders_of("ada")
        assert owner is not None
        fake.nodes.hold_replication(first)
        await people.upsert("ada", {"born": 1815, "died": 1852})
        fake.nodes.kill(owner)
        await trio.sleep(0.1)

        found = await people.get_any_replica("ada")
        print("some copy, from a replica:", found.is_replica)
        print("the newest of two copies:", await newest_copy(people, "ada"))


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
