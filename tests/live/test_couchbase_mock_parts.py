"""Subdocuments and replicas with CouchbaseMock."""

from __future__ import annotations

import pytest

from tests.live.couchbase_mock import CouchbaseMock
from triclinium import Collection, errors
from triclinium.subdocument import LookupInSpec, MutateInSpec, StoreSemantics
from triclinium_core.kv.wire.constants import Opcode

pytestmark = pytest.mark.live

ADA = {"name": "Ada", "born": 1815, "tags": ["b", "c"], "home": {"city": "London"}}


async def test_lookup_in_reads_parts(store: Collection, key: str) -> None:
    """``lookup_in`` returns a result for each spec; reading the result of a failed spec raises."""
    stored = await store.upsert(key, ADA)
    found = await store.lookup_in(
        key,
        [
            LookupInSpec.get("name"),
            LookupInSpec.get("home.city"),
            LookupInSpec.get("tags[-1]"),
            LookupInSpec.exists("born"),
            LookupInSpec.exists("died"),
            LookupInSpec.count("tags"),
            LookupInSpec.get("died"),
            LookupInSpec.get("name.first"),
        ],
    )

    assert ["Ada", "London", "c"] == [found.content_as(str, index) for index in range(3)]
    assert (True, False, 2) == (found.exists(3), found.exists(4), found.content_as(int, 5))
    assert stored.cas == found.cas
    with pytest.raises(errors.PathNotFoundException):
        found.content_as(str, 6)
    with pytest.raises(errors.PathMismatchException):
        found.content_as(str, 7)


async def test_mutate_in_changes_parts(store: Collection, key: str) -> None:
    """All kinds of changes are applied in one operation and in order."""
    old = await store.upsert(key, ADA)
    changed = await store.mutate_in(
        key,
        [
            MutateInSpec.upsert("name", "Countess"),
            MutateInSpec.insert("died", 1852),
            MutateInSpec.replace("home.city", "Ockham"),
            MutateInSpec.remove("born"),
            MutateInSpec.array_append("tags", "d", "e"),
            MutateInSpec.array_prepend("tags", "a"),
            MutateInSpec.array_insert("tags[1]", "a2"),
            MutateInSpec.array_add_unique("tags", "f"),
            MutateInSpec.increment("visits.all", 3, create_parents=True),
            MutateInSpec.decrement("visits.all"),
        ],
        cas=old.cas,
    )

    after = (await store.get(key)).content_as(dict[str, object])
    tags = after.pop("tags")
    assert {"name": "Countess", "died": 1852, "home": {"city": "Ockham"}, "visits": {"all": 2}} == after
    # Accept two orders, because this server inserts unique values at the beginning.
    assert tags in (["a", "a2", "b", "c", "d", "e", "f"], ["f", "a", "a2", "b", "c", "d", "e"])
    assert [3, 2] == [changed.content_as(int, index) for index in (8, 9)]
    assert changed.mutation_token is not None
    with pytest.raises(errors.CasMismatchException):
        await store.mutate_in(key, [MutateInSpec.upsert("name", "?")], cas=old.cas)


async def test_a_failed_path_changes_nothing(store: Collection, key: str) -> None:
    """A failed path raises its own error with its index, and the document is unchanged."""
    await store.upsert(key, ADA)
    for spec, error in (
        (MutateInSpec.insert("name", 1), errors.PathExistsException),
        (MutateInSpec.replace("died", 1), errors.PathNotFoundException),
        (MutateInSpec.upsert("name.first", 1), errors.PathMismatchException),
        (MutateInSpec.array_add_unique("tags", "b"), errors.PathExistsException),
        (MutateInSpec.increment("name"), errors.PathMismatchException),
    ):
        with pytest.raises(error) as caught:
            await store.mutate_in(key, [MutateInSpec.upsert("touched", 1), spec])
        assert 1 == caught.value.context.path_index

    assert ADA == (await store.get(key)).content


async def test_unsuitable_documents(store: Collection, key: str) -> None:
    """A missing document, an insert of an existing one, and a document that is not JSON each raise their own error."""
    touch = [MutateInSpec.upsert("touched", 1)]
    with pytest.raises(errors.DocumentNotFoundException):
        await store.lookup_in(key, [LookupInSpec.get("name")])
    with pytest.raises(errors.DocumentNotFoundException):
        await store.mutate_in(key, touch)
    await store.mutate_in(key, touch, store_semantics=StoreSemantics.INSERT)
    with pytest.raises(errors.DocumentExistsException):
        await store.mutate_in(key, touch, store_semantics=StoreSemantics.INSERT)
    await store.mutate_in(key, [MutateInSpec.upsert("a.b", 2)], store_semantics=StoreSemantics.UPSERT)
    assert {"touched": 1, "a": {"b": 2}} == (await store.get(key)).content

    await store.binary.append(key, b"}")
    with pytest.raises(errors.DocumentNotJsonException):
        (await store.lookup_in(key, [LookupInSpec.get("touched")])).content_as(int, 0)


async def test_extended_attributes(store: Collection, key: str) -> None:
    """Extended attributes are stored next to the document, which does not contain them."""
    await store.upsert(key, ADA)
    await store.mutate_in(
        key,
        [MutateInSpec.upsert("name", "Countess"), MutateInSpec.upsert("meta.seen", 7, xattr=True, create_parents=True)],
    )
    found = await store.lookup_in(key, [LookupInSpec.get("name"), LookupInSpec.get("meta.seen", xattr=True)])

    assert ("Countess", 7) == (found.content_as(str, 0), found.content_as(int, 1))
    assert {**ADA, "name": "Countess"} == (await store.get(key)).content


async def test_replicas_are_read(couchbase_mock: CouchbaseMock, store: Collection, key: str) -> None:
    """All three copies are read, no replica from the active node, and ``get_any_replica`` returns a copy."""
    await store.upsert(key, ADA)
    couchbase_mock.log_commands()
    async with store.get_all_replicas(key) as found:
        copies = [copy async for copy in found]
    first = await store.get_any_replica(key)
    with pytest.raises(errors.DocumentUnretrievableException):
        await store.get_any_replica(f"{key}+")

    assert [ADA] * 3 == [copy.content for copy in copies]
    assert [False, True, True] == sorted(copy.is_replica for copy in copies)
    assert ADA == first.content
    assert 0 == couchbase_mock.commands(Opcode.GET_REPLICA)[couchbase_mock.owner_of(key)]


async def test_a_replica_replaces_the_active_copy(couchbase_mock: CouchbaseMock, store: Collection, key: str) -> None:
    """If the active node fails every read, the document is read from a replica."""
    await store.upsert(key, ADA)
    couchbase_mock.fail(0x84, opcode=Opcode.GET)
    found = await store.get_any_replica(key)

    assert (ADA, True) == (found.content, found.is_replica)
