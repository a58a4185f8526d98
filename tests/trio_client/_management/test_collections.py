"""The scopes and collections of a bucket, managed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest
import trio
from trio.testing import MockClock

from triclinium import (
    CollectionSpec,
    CreateCollectionSettings,
    RetryAction,
    RetryReason,
    RetryRequest,
    UpdateCollectionSettings,
)
from triclinium.errors import (
    BucketNotFoundException,
    CollectionExistsException,
    CollectionNotFoundException,
    FeatureNotAvailableException,
    InvalidArgumentException,
    ScopeExistsException,
    ScopeNotFoundException,
    TemporaryFailureException,
)
from triclinium.testing import open_fake_cluster
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing import FakeNodeOptions, temporary_failure

OPTIONS = FakeNodeOptions(collections={"_default": {"_default": 0}, "inventory": {"hotel": 8}})


class NeverRetry:
    """Gives up at the first failure."""

    def retry_after(self, request: RetryRequest, reason: RetryReason) -> RetryAction:
        """Refuse."""
        return RetryAction.no_retry()


async def test_all_scopes(autojump_clock: MockClock) -> None:
    """As the cluster has them now, by every name that a collection can be asked for."""
    async with open_fake_cluster(nodes=3, options=OPTIONS) as fake, fake.open_client() as cluster:
        bucket = cluster.bucket("default")
        fake.nodes.collections.create("inventory", "airline")
        scopes = await bucket.collections().get_all_scopes()

        assert ["_default", "inventory"] == [scope.name for scope in scopes]
        assert CollectionSpec(name="hotel", scope_name="inventory", id=8) == scopes[1].collections[0]

        for scope in scopes:
            for collection in scope.collections:
                await bucket.scope(collection.scope_name).collection(collection.name).upsert("ada", 1)


async def test_a_collection_comes_and_goes(autojump_clock: MockClock) -> None:
    """What was made can be used at once, and what was dropped is gone."""
    async with open_fake_cluster(nodes=3) as fake, fake.open_client() as cluster:
        bucket = cluster.bucket("default")
        manager = bucket.collections()
        await manager.create_scope("inventory")
        await manager.create_collection("inventory", "hotel", CreateCollectionSettings(max_expiry=60))
        await bucket.scope("inventory").collection("hotel").upsert("ada", 1)
        await manager.update_collection("inventory", "hotel", UpdateCollectionSettings(max_expiry=120))
        hotel = (await manager.get_all_scopes())[-1].collections[0]

        assert ("hotel", "inventory", 120) == (hotel.name, hotel.scope_name, hotel.max_expiry)

        await manager.drop_collection("inventory", "hotel")
        assert () == (await manager.get_all_scopes())[-1].collections

        await manager.drop_scope("inventory")
        assert ["_default"] == [scope.name for scope in await manager.get_all_scopes()]


async def test_what_is_there_and_what_is_not(autojump_clock: MockClock) -> None:
    """Each has an error of its own."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        manager = cluster.bucket("default").collections()
        settings = UpdateCollectionSettings(max_expiry=1)
        with pytest.raises(ScopeExistsException):
            await manager.create_scope("inventory")
        with pytest.raises(CollectionExistsException):
            await manager.create_collection("inventory", "hotel")
        with pytest.raises(ScopeNotFoundException):
            await manager.create_collection("nowhere", "hotel")
        with pytest.raises(ScopeNotFoundException):
            await manager.drop_scope("nowhere")
        with pytest.raises(CollectionNotFoundException):
            await manager.drop_collection("inventory", "airline")
        with pytest.raises(CollectionNotFoundException) as caught:
            await manager.update_collection("inventory", "airline", settings)

        context = caught.value.context
        assert ("update_collection", "default", "inventory", "airline") == (
            context.operation,
            context.bucket,
            context.scope,
            context.collection,
        )

        with pytest.raises(BucketNotFoundException):
            await cluster.bucket("other").collections().get_all_scopes()


async def test_history(autojump_clock: MockClock) -> None:
    """A bucket that keeps none is not asked to."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        manager = cluster.bucket("default").collections()
        with pytest.raises(FeatureNotAvailableException):
            await manager.create_collection("_default", "hotel", CreateCollectionSettings(history=True))

        assert 1 == len((await manager.get_all_scopes())[0].collections)


async def test_bad_names(autojump_clock: MockClock) -> None:
    """They raise before anything is sent, and that is a checkpoint."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        manager = cluster.bucket("default").collections()
        calls: Sequence[Callable[[], Awaitable[None]]] = (
            lambda: manager.create_scope("a/b"),
            lambda: manager.drop_scope(".."),
            lambda: manager.create_collection("_default", ""),
            lambda: manager.drop_collection("_default", "a b"),
        )
        for call in calls:
            with pytest.raises(InvalidArgumentException), trio.testing.assert_checkpoints():
                await call()

        assert [] == list(fake.node.request_log)


async def test_the_strategy_of_the_call(autojump_clock: MockClock) -> None:
    """It is asked about every request of a call."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        fake.node.faults.next(Opcode.GET_COLLECTIONS_MANIFEST, temporary_failure())
        manager = cluster.bucket("default").collections()
        with pytest.raises(TemporaryFailureException):
            await manager.create_scope("other", retry_strategy=NeverRetry())

        assert 3 == len(await manager.get_all_scopes())


async def test_it_says_what_it_is() -> None:
    """For people who print it."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        assert "<CollectionManager default>" == repr(cluster.bucket("default").collections())
