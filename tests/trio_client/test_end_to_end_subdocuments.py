"""Parts of documents, with the real driver and machine and a fake node in memory."""

from __future__ import annotations

import msgspec
import pytest
from trio.testing import MockClock

from tests.trio_client.pair import open_pair
from triclinium import errors
from triclinium.subdocument import LookupInMacro, LookupInSpec, MutateInSpec, MutationMacro, StoreSemantics

ADA = {"name": "Ada", "address": {"city": "London", "zip": "W1"}, "tags": ["poet", 1815], "visits": 3}


class Address(msgspec.Struct):
    """Typed part."""

    city: str
    zip: str


async def test_reading_parts(autojump_clock: MockClock) -> None:
    """The result has one entry per spec, at its index, and a failed spec does not affect the others."""
    async with open_pair() as (_, _, people):
        stored = await people.upsert("ada", ADA)
        found = await people.lookup_in(
            "ada",
            [
                LookupInSpec.get("address"),
                LookupInSpec.get("address.street"),
                LookupInSpec.exists("tags[1]"),
                LookupInSpec.exists("tags[2]"),
                LookupInSpec.count("tags"),
                LookupInSpec.get(""),
                LookupInSpec.get("name.first"),
            ],
        )

    assert stored.cas == found.cas
    assert not found.is_deleted
    assert Address("London", "W1") == found.content_as(Address, 0)
    assert (True, False, 2, ADA) == tuple(found.content_as(object, index) for index in (2, 3, 4, 5))
    assert (True, False, True, False) == tuple(found.exists(index) for index in range(4))
    with pytest.raises(
        errors.PathNotFoundException, match=r"lookup_in 'ada': specs\[1\], path 'address.street'"
    ) as caught:
        found.content_as(str, 1)
    assert ("address.street", 1, 0xC0) == (
        caught.value.context.path,
        caught.value.context.path_index,
        caught.value.context.path_status,
    )
    with pytest.raises(errors.PathMismatchException):
        found.exists(6)
    with pytest.raises(errors.DecodingFailureException):
        found.content_as(int, 0)
    for wrong in (-1, 7, True, "0"):
        with pytest.raises(errors.InvalidArgumentException) as refused:
            found.content_as(object, wrong)  # type: ignore[arg-type]
        assert "index" == refused.value.parameter


async def test_changing_parts(autojump_clock: MockClock) -> None:
    """All kinds of changes are applied in one operation, and those with a value return it at their index."""
    async with open_pair() as (_, _, people):
        stored = await people.upsert("ada", ADA)
        changed = await people.mutate_in(
            "ada",
            [
                MutateInSpec.upsert("address.city", "Bath"),
                MutateInSpec.insert("born.year", 1815, create_parents=True),
                MutateInSpec.replace("name", None),
                MutateInSpec.remove("address.zip"),
                MutateInSpec.array_append("tags", "x", ["y"]),
                MutateInSpec.array_prepend("tags", 0),
                MutateInSpec.array_insert("tags[1]", 0.5),
                MutateInSpec.array_add_unique("known", "Babbage", create_parents=True),
                MutateInSpec.increment("visits"),
                MutateInSpec.decrement("left", 7),
                MutateInSpec.upsert("meta.by", "test", xattr=True, create_parents=True),
            ],
            cas=stored.cas,
        )
        ada = await people.get("ada")

    assert {
        "name": None,
        "address": {"city": "Bath"},
        "tags": [0, 0.5, "poet", 1815, "x", ["y"]],
        "visits": 4,
        "born": {"year": 1815},
        "known": ["Babbage"],
        "left": -7,
    } == ada.content
    assert ada.cas == changed.cas > stored.cas
    assert (4, -7) == (changed.content_as(int, 8), changed.content_as(int, 9))
    assert changed.mutation_token is not None
    with pytest.raises(errors.InvalidArgumentException, match="index=0"):
        changed.content_as(int, 0)


async def test_a_failed_change_changes_nothing(autojump_clock: MockClock) -> None:
    """A failed change raises the exception of its path with its index, and the document is unchanged."""
    async with open_pair() as (_, _, people):
        await people.upsert("ada", ADA)
        specs = [
            MutateInSpec.upsert("name", "Countess"),
            MutateInSpec.insert("visits", 1),
            MutateInSpec.upsert("meta", 1, xattr=True),
        ]
        with pytest.raises(
            errors.PathExistsException, match=r"specs\[1\], path 'visits': SUBDOC_PATH_EXISTS \[0xc9\]"
        ) as caught:
            await people.mutate_in("ada", specs)
        found = await people.lookup_in("ada", [LookupInSpec.get(""), LookupInSpec.exists("meta", xattr=True)])

    assert ("visits", 1, 0xC9, 0xCC) == (
        caught.value.context.path,
        caught.value.context.path_index,
        caught.value.context.path_status,
        caught.value.context.status,
    )
    assert (ADA, False) == (found.content_as(object, 0), found.exists(1))


async def test_store_semantics(autojump_clock: MockClock) -> None:
    """Depending on the store semantics, ``mutate_in`` requires the document, creates it, or refuses an existing one."""
    spec = MutateInSpec.upsert("a.b", 1)
    async with open_pair() as (_, _, people):
        with pytest.raises(errors.DocumentNotFoundException):
            await people.mutate_in("ada", [spec])
        await people.mutate_in("ada", [spec], store_semantics=StoreSemantics.INSERT)
        with pytest.raises(errors.DocumentExistsException):
            await people.mutate_in("ada", [spec], store_semantics=StoreSemantics.INSERT)
        await people.mutate_in("ada", [MutateInSpec.upsert("c", 2)], store_semantics=StoreSemantics.UPSERT)
        await people.mutate_in("bob", [MutateInSpec.array_append("", 1)], store_semantics=StoreSemantics.UPSERT)

        assert {"a": {"b": 1}, "c": 2} == (await people.get("ada")).content
        assert [1] == (await people.get("bob")).content


async def test_attributes_and_macros(autojump_clock: MockClock) -> None:
    """Attributes and macros may follow other specs; results keep the caller's order, and the server expands macros."""
    async with open_pair() as (_, _, people):
        await people.upsert("ada", ADA)
        changed = await people.mutate_in(
            "ada",
            [
                MutateInSpec.upsert("name", "Countess"),
                MutateInSpec.upsert("meta.cas", MutationMacro.CAS, create_parents=True),
                MutateInSpec.upsert("meta.seqno", MutationMacro.SEQ_NO),
                MutateInSpec.upsert("meta.crc", MutationMacro.VALUE_CRC32C),
                MutateInSpec.increment("visits"),
                MutateInSpec.increment("meta.changes", xattr=True),
            ],
        )
        found = await people.lookup_in(
            "ada",
            [
                LookupInSpec.get("name"),
                LookupInSpec.get("meta", xattr=True),
                LookupInSpec.exists("tags"),
                LookupInSpec.get(LookupInMacro.DOCUMENT, xattr=True),
                LookupInSpec.get("$nobody", xattr=True),
            ],
        )
        await people.upsert("ada", {})
        kept = await people.lookup_in("ada", [LookupInSpec.exists("meta", xattr=True)])

    assert changed.mutation_token is not None
    assert (4, 1) == (changed.content_as(int, 4), changed.content_as(int, 5))
    document = found.content_as(dict[str, object], 3)
    assert {
        "cas": f"0x{found.cas.to_bytes(8, 'little').hex()}",
        "seqno": f"0x{changed.mutation_token.sequence_number:016x}",
        "crc": document["value_crc32c"],
        "changes": 1,
    } == found.content_as(object, 1)
    assert ("Countess", True) == (found.content_as(str, 0), found.exists(2))
    assert f"0x{found.cas:016x}" == document["CAS"]
    with pytest.raises(errors.XattrUnknownVirtualAttributeException):
        found.content_as(object, 4)
    assert kept.exists(0)


async def test_attributes_of_a_removed_document(autojump_clock: MockClock) -> None:
    """System attributes of a removed document can be read and changed with ``access_deleted``."""
    async with open_pair() as (_, _, people):
        await people.upsert("ada", ADA)
        await people.mutate_in("ada", [MutateInSpec.upsert(key, 1, xattr=True) for key in ("_sync", "mine")])
        await people.remove("ada")
        ask = [LookupInSpec.get("_sync", xattr=True), LookupInSpec.get("mine", xattr=True), LookupInSpec.get("")]
        with pytest.raises(errors.DocumentNotFoundException):
            await people.lookup_in("ada", ask)
        found = await people.lookup_in("ada", ask, access_deleted=True)
        changed = await people.mutate_in("ada", [MutateInSpec.increment("_sync", xattr=True)], access_deleted=True)

        assert not await people.exists("ada")
    assert (True, True) == (found.is_deleted, changed.is_deleted)
    assert (1, False, False) == (found.content_as(int, 0), found.exists(1), found.exists(2))
    assert 2 == changed.content_as(int, 0)
