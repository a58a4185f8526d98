"""Wrong arguments of management calls, which the client refuses before it sends anything, and reprs of the managers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.rows import rows
from triclinium import Cluster
from triclinium.errors import EncodingFailureException, InvalidArgumentException
from triclinium.management import CollectionQueryIndexManager, SearchIndex
from triclinium.testing import open_fake_cluster

HOTELS = SearchIndex(name="hotels", source_name="default")
WRONG: Any = "of a wrong type"


def collections(cluster: Cluster) -> Any:
    """Return the manager of the collections of a bucket."""
    return cluster.bucket("default").collections()


def indexes(cluster: Cluster) -> Any:
    """Return the manager of the query indexes of a collection."""
    return cluster.bucket("default").default_collection().query_indexes()


CALLS: Mapping[str, Callable[[Cluster], Awaitable[object]]] = {
    "create_bucket(WRONG)": lambda c: c.buckets().create_bucket(WRONG),
    "update_bucket(None)": lambda c: c.buckets().update_bucket(None),  # type: ignore[arg-type]
    "get_bucket('..')": lambda c: c.buckets().get_bucket(".."),
    "drop_bucket('a/b')": lambda c: c.buckets().drop_bucket("a/b"),
    "flush_bucket('')": lambda c: c.buckets().flush_bucket(""),
    "create_scope('a/b')": lambda c: collections(c).create_scope("a/b"),
    "drop_scope('..')": lambda c: collections(c).drop_scope(".."),
    "create_collection('_default', '')": lambda c: collections(c).create_collection("_default", ""),
    "drop_collection('_default', 'a b')": lambda c: collections(c).drop_collection("_default", "a b"),
    "create_index('', ['a'])": lambda c: indexes(c).create_index("", ["a"]),
    "create_index('a', [])": lambda c: indexes(c).create_index("a", []),
    "create_primary_index(num_replicas=-1)": lambda c: indexes(c).create_primary_index(num_replicas=-1),
    "drop_index('')": lambda c: indexes(c).drop_index(""),
    "drop_primary_index(ignore_if_not_exists=1)": lambda c: indexes(c).drop_primary_index(ignore_if_not_exists=1),
    "watch_indexes([])": lambda c: indexes(c).watch_indexes([]),
    "get_all_indexes('a`b')": lambda c: c.query_indexes().get_all_indexes("a`b"),
    "build_deferred_indexes('..')": lambda c: c.query_indexes().build_deferred_indexes(".."),
    "get_index('')": lambda c: c.search_indexes().get_index(""),
    "drop_index('..')": lambda c: c.search_indexes().drop_index(".."),
    "upsert_index(WRONG)": lambda c: c.search_indexes().upsert_index(WRONG),
    "get_user('')": lambda c: c.users().get_user(""),
    "drop_user('..')": lambda c: c.users().drop_user(".."),
    "get_all_users(domain=WRONG)": lambda c: c.users().get_all_users(domain=WRONG),
    "upsert_user(WRONG)": lambda c: c.users().upsert_user(WRONG),
    "upsert_group(WRONG)": lambda c: c.users().upsert_group(WRONG),
    "get_group('a,b')": lambda c: c.users().get_group("a,b"),
    "drop_group('')": lambda c: c.users().drop_group(""),
    "change_password('')": lambda c: c.users().change_password(""),
}


@rows("name", CALLS)
async def test_invalid_arguments(autojump_clock: MockClock, name: str) -> None:
    """An invalid argument raises at a checkpoint before anything is sent."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        with pytest.raises(InvalidArgumentException), trio.testing.assert_checkpoints():
            await CALLS[name](cluster)

        assert [] == list(fake.node.request_log)


async def test_values_that_cannot_be_encoded(autojump_clock: MockClock) -> None:
    """A value that cannot be encoded raises at a checkpoint before anything is sent."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        manager = cluster.search_indexes()
        for call in (
            lambda: manager.upsert_index(replace(HOTELS, params={"a": object()})),
            lambda: manager.analyze_document("hotels", float("nan")),
        ):
            with pytest.raises(EncodingFailureException), trio.testing.assert_checkpoints():
                await call()

        assert [] == list(fake.node.request_log)


async def test_reprs_name_the_subject() -> None:
    """The repr of a manager names its bucket, scope or collection, if it has one."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        of_scope = cluster.bucket("default").default_scope().search_indexes()

        assert isinstance(indexes(cluster), CollectionQueryIndexManager)
        assert "<CollectionQueryIndexManager default._default._default>" == repr(indexes(cluster))
        assert "<CollectionManager default>" == repr(collections(cluster))
        assert ("<BucketManager>", "<SearchIndexManager>") == (repr(cluster.buckets()), repr(cluster.search_indexes()))
        assert "<SearchIndexManager default._default>" == repr(of_scope)
