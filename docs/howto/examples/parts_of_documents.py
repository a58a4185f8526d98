"""Read and change parts of a document, without transferring the rest."""

from __future__ import annotations

import trio
import trio.testing

from triclinium import Collection
from triclinium.errors import PathExistsException, PathNotFoundException
from triclinium.subdocument import LookupInMacro, LookupInSpec, MutateInSpec, MutationMacro, StoreSemantics
from triclinium.testing import open_fake_cluster


async def read(people: Collection) -> None:
    """Read several parts, all of the same version."""
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
    """Change several parts, all of them or none."""
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
    """Create a document with its first part, or add a missing part to the existing document."""
    try:
        await people.mutate_in("seats", [MutateInSpec.insert("front", name)], store_semantics=StoreSemantics.UPSERT)
        print(name, "sits in front")
    except PathExistsException:
        print(name, "came too late")


async def leave_a_note(people: Collection) -> None:
    """Write an extended attribute, which is not part of the content. The server replaces the macro with its value."""
    await people.mutate_in("ada", [MutateInSpec.upsert("audit.seqno", MutationMacro.SEQ_NO, create_parents=True)])
    found = await people.lookup_in(
        "ada", [LookupInSpec.get("audit.seqno", xattr=True), LookupInSpec.get(LookupInMacro.SEQ_NO, xattr=True)]
    )
    print("noted:", found.content_as(str, 0) == found.content_as(str, 1))


async def main() -> None:
    """Run everything in memory."""
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
