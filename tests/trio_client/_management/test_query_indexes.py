"""Management of the query indexes of buckets and collections."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from triclinium import Service, errors
from triclinium.management import QueryIndexType
from triclinium.testing import open_fake_cluster
from triclinium_core.testing import FakeNodeOptions

OPTIONS = FakeNodeOptions(collections={"_default": {"_default": 0}, "inventory": {"hotel": 8}})
HOSTILE = "x` ON `other` -- 'ü %2F"


async def test_indexes_of_a_collection(autojump_clock: MockClock) -> None:
    """Indexes of a collection are created, listed, watched and dropped, even with a hostile name."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        manager = cluster.bucket("default").scope("inventory").collection("hotel").query_indexes()
        await manager.create_primary_index()
        await manager.create_index(HOSTILE, ["name", "a.b"], num_replicas=0)
        primary, by_name = await manager.get_all_indexes()

        assert ("#primary", True, "online", ()) == (primary.name, primary.is_primary, primary.state, primary.index_key)
        assert (HOSTILE, False, QueryIndexType.GSI, ("`name`", "`a.b`")) == (
            by_name.name,
            by_name.is_primary,
            by_name.type,
            by_name.index_key,
        )
        assert ("default", "inventory", "hotel") == (by_name.bucket_name, by_name.scope_name, by_name.collection_name)

        await manager.watch_indexes([HOSTILE], watch_primary=True)
        await manager.drop_index(HOSTILE)
        await manager.drop_primary_index()
        assert [] == list(await manager.get_all_indexes())


async def test_indexes_of_a_bucket(autojump_clock: MockClock) -> None:
    """Indexes are created on the bucket's default collection, and the list includes those of all collections."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        manager = cluster.query_indexes()
        hotels = cluster.bucket("default").scope("inventory").collection("hotel").query_indexes()
        await manager.create_primary_index("default", index_name="all")
        await manager.create_index("default", "by_name", ["name"])
        await hotels.create_index("by_city", ["city"])

        assert ["all", "by_city", "by_name"] == [index.name for index in await manager.get_all_indexes("default")]
        assert ["by_city"] == [index.name for index in await hotels.get_all_indexes()]
        default = cluster.bucket("default").default_collection().query_indexes()
        assert ["all", "by_name"] == [index.name for index in await default.get_all_indexes()]

        await manager.watch_indexes("default", ["by_name"], watch_primary=True)
        with pytest.raises(errors.IndexNotFoundException):
            await manager.watch_indexes("default", ["by_city"])
        await manager.drop_index("default", "by_name")
        await manager.drop_primary_index("default", index_name="all")
        assert ["by_city"] == [index.name for index in await manager.get_all_indexes("default")]


async def test_deferred_indexes_are_built(autojump_clock: MockClock) -> None:
    """Deferred indexes stay deferred until they are built, and ``watch_indexes`` waits until they are online."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        hotels = cluster.bucket("default").scope("inventory").collection("hotel").query_indexes()
        await hotels.create_index("a", ["a"], deferred=True)
        await hotels.create_primary_index(deferred=True)

        assert ["deferred", "deferred"] == [index.state for index in await hotels.get_all_indexes()]

        with trio.move_on_after(10) as scope:
            await hotels.watch_indexes(["a"])
        assert scope.cancelled_caught

        assert {"a", "#primary"} == set(await hotels.build_deferred_indexes())
        await hotels.watch_indexes(["a"], watch_primary=True)
        assert ["online", "online"] == [index.state for index in await hotels.get_all_indexes()]
        assert [] == list(await hotels.build_deferred_indexes())


async def test_deferred_indexes_of_a_bucket(autojump_clock: MockClock) -> None:
    """``build_deferred_indexes`` of a bucket builds those of its default collection."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        manager = cluster.query_indexes()
        await manager.create_index("default", "a", ["a"], deferred=True)

        assert ["a"] == list(await manager.build_deferred_indexes("default"))
        await manager.watch_indexes("default", ["a"])


@pytest.mark.parametrize("of_bucket", [False, True])
async def test_existing_and_missing_indexes(autojump_clock: MockClock, of_bucket: bool) -> None:
    """An option of the call ignores an existing or a missing index."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        collection = cluster.bucket("default").default_collection()
        manager: Any = cluster.query_indexes() if of_bucket else collection.query_indexes()
        place = ["default"] if of_bucket else []
        await manager.drop_index(*place, "a", ignore_if_not_exists=True)
        await manager.drop_primary_index(*place, ignore_if_not_exists=True)
        for _ in range(2):
            await manager.create_index(*place, "a", ["a"], ignore_if_exists=True)
            await manager.create_primary_index(*place, ignore_if_exists=True)

        assert ["#primary", "a"] == sorted(index.name for index in await manager.get_all_indexes(*place))


async def test_statements_have_client_context_ids(autojump_clock: MockClock) -> None:
    """Each statement about indexes has a unique client context id, which its error repeats."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        of_bucket = cluster.query_indexes()
        of_collection = cluster.bucket("default").scope("inventory").collection("hotel").query_indexes()
        await of_bucket.create_primary_index("default")
        await of_bucket.create_index("default", "later", ["name"], deferred=True)
        await of_bucket.build_deferred_indexes("default")
        await of_bucket.watch_indexes("default", ["later"])
        await of_bucket.get_all_indexes("default")
        await of_bucket.drop_index("default", "later")
        await of_collection.create_index("by_name", ["name"])
        await of_collection.drop_index("by_name")
        with pytest.raises(errors.IndexNotFoundException) as caught:
            await of_collection.drop_primary_index()
        bodies = [json.loads(each.body) for each in fake.node.request_log if each.service is Service.QUERY]

    ids = [body["client_context_id"] for body in bodies]
    assert len(ids) == len({*ids}) >= 10
    assert all(ids)
    assert ids[-1] == caught.value.context.client_context_id
