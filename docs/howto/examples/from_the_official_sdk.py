"""Idioms of the official client, translated."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import trio
import trio.testing

import triclinium
from triclinium import Collection, DurabilityLevel
from triclinium.errors import CouchbaseException, DocumentNotFoundException, TimeoutException
from triclinium.subdocument import LookupInMacro, LookupInSpec, MutateInSpec
from triclinium.testing import open_fake_cluster


class Person(msgspec.Struct):
    """Content of a document."""

    name: str
    born: int


async def documents(people: Collection) -> None:
    """Pass options as keywords, read the content as an attribute, and pass the type to decode as an argument."""
    await people.upsert(
        "ada", {"name": "Ada", "born": 1815}, expiry=timedelta(hours=1), durability=DurabilityLevel.MAJORITY
    )
    ada = await people.get("ada")
    print(ada.content, "→", ada.content_as(Person))


async def parts(people: Collection) -> None:
    """Create specifications with static methods, and read the expiry through a macro."""
    found = await people.lookup_in("ada", [LookupInSpec.get("name"), LookupInSpec.exists("email")])
    print(found.content_as(str, 0), found.exists(1))
    expiry = await people.lookup_in("ada", [LookupInSpec.get(LookupInMacro.EXPIRY_TIME, xattr=True)])
    print("expires:", expiry.content_as(int, 0) > 0)
    await people.mutate_in("ada", [MutateInSpec.increment("visits", 1)], preserve_expiry=True)


async def many(people: Collection) -> dict[str, object]:
    """Use a nursery instead of ``get_multi``; each task handles its errors."""
    found: dict[str, object] = {}

    async def one(key: str) -> None:
        try:
            found[key] = (await people.get(key)).content
        except DocumentNotFoundException:
            found[key] = None

    async with trio.open_nursery() as nursery:
        for key in ("ada", "nobody"):
            nursery.start_soon(one, key)
    return dict(sorted(found.items()))


async def limits(people: Collection) -> None:
    """Limit the time of a block instead of a call. The error is a TimeoutException and a trio.TooSlowError."""
    try:
        with triclinium.fail_after(0.5):
            await people.get("ada")
    except TimeoutException as error:
        print("too slow:", error.context.retry_reasons)
    except CouchbaseException as error:
        print("failed:", error)


async def main() -> None:
    """Run all functions on a cluster in memory; a program uses open_cluster("couchbase://…", authenticator)."""
    async with open_fake_cluster(nodes=2, replicas=1) as fake, fake.open_client() as cluster:
        people = cluster.bucket("default").default_collection()
        await documents(people)
        await parts(people)
        print(await many(people))
        await limits(people)
        await people.binary.increment("visits", delta=2, initial=10)
        async with cluster.query("SELECT 1 AS one") as result:
            print(await result.rows())


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
