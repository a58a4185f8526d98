"""Read and change parts of a document, without the rest of it travelling."""

from __future__ import annotations

import trio
import trio.testing

from triclinium import Collection, LookupInMacro, LookupInSpec, MutateInSpec, MutationMacro, StoreSemantics
from triclinium.errors import PathExistsException, PathNotFoundException
from triclinium.testing import open_fake_cluster


async def read(people: Collection) -> None:
    """Read what is needed, all of the same version."""
    found = await people.lookup_in(
        "ada",
        [
            LookupInSpec.get("address.city"),
            LookupInSpec.exists("email"),
            LookupInSpec.count("tags"),
            LookupInSpec.get("tags[-1]"),
            LookupInSpec.get("phone"),
        ],
    )
    print(found.content_as(str, 0), found.exists(1), found.content_as(int, 2), found.content_as(str, 3))
    try:
        found.content_as(str, 4)
    except PathNotFoundException as error:
        print("no", error.context.path)


async def change(people: Collection) -> None:
    """Change several parts at once, all of them or none."""
    changed = await people.mutate_in(
        "ada",
        [
            MutateInSpec.upsert("address.city", "Bath"),
            MutateInSpec.upsert("contact.mail", "ada@example.org", create_parents=True),
            MutateInSpec.array_append("tags", "countess", "reader"),
            MutateInSpec.increment("visits"),
        ],
    )
    print("visit", changed.content_as(int, 3))


async def claim(people: Collection, name: str) -> None:
    """Create a document with its first part, or add one to the document that there is, unless it is there already."""
    try:
        await people.mutate_in("seats", [MutateInSpec.insert("front", name)], store_semantics=StoreSemantics.UPSERT)
        print(name, "sits in front")
    except PathExistsException:
        print(name, "came too late")


async def leave_a_note(people: Collection) -> None:
    """Write beside the document: attributes do not show in it, and the server knows what is written in them."""
    await people.mutate_in("ada", [MutateInSpec.upsert("audit.seqno", MutationMacro.SEQ_NO, create_parents=True)])
    found = await people.lookup_in(
        "ada", [LookupInSpec.get("audit.seqno", xattr=True), LookupInSpec.get(LookupInMacro.SEQ_NO, xattr=True)]
    )
    print("noted:", found.content_as(str, 0) == found.content_as(str, 1))


async def main() -> None:
    """Do all of it in memory."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        people = cluster.bucket("default").default_collection()
        await people.insert("ada", {"address": {"city": "London"}, "tags": ["poet", "mathematician"], "visits": 3})

        await read(people)
        await change(people)
        await claim(people, "ada")
        await claim(people, "bob")
        await leave_a_note(people)
        print((await people.get("ada")).content)


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
