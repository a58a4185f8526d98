"""Which scopes and collections a bucket has."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from tests.never_retry import NeverRetry
from triclinium import CollectionSpec
from triclinium.errors import FeatureNotAvailableException, TemporaryFailureException
from triclinium.testing import open_fake_cluster
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.testing import FakeNodeOptions, temporary_failure
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES

OPTIONS = FakeNodeOptions(collections={"_default": {"_default": 0}, "inventory": {"hotel": 8}})


async def test_all_scopes(autojump_clock: MockClock) -> None:
    """As the nodes have them now, by every name that a collection can be asked for."""
    async with open_fake_cluster(nodes=3, options=OPTIONS) as fake, fake.open_client() as cluster:
        bucket = cluster.bucket("default")
        fake.nodes.collections.create("inventory", "airline")
        scopes = await bucket.collections().get_all_scopes()

        assert ["_default", "inventory"] == [scope.name for scope in scopes]
        assert CollectionSpec(name="hotel", scope_name="inventory", id=8) == scopes[1].collections[0]

        for scope in scopes:
            for collection in scope.collections:
                await bucket.scope(collection.scope_name).collection(collection.name).upsert("ada", 1)


async def test_the_strategy_of_the_call(autojump_clock: MockClock) -> None:
    """It is asked like that of any other operation."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        fake.node.faults.next(Opcode.GET_COLLECTIONS_MANIFEST, temporary_failure())
        manager = cluster.bucket("default").collections()
        with pytest.raises(TemporaryFailureException):
            await manager.get_all_scopes(retry_strategy=NeverRetry())

        assert 2 == len(await manager.get_all_scopes())


async def test_a_server_without_collections(autojump_clock: MockClock) -> None:
    """The error says what it lacks."""
    options = FakeNodeOptions(features=IMPLEMENTED_FEATURES - {HelloFeature.COLLECTIONS})
    async with open_fake_cluster(options=options) as fake, fake.open_client() as cluster:
        with pytest.raises(FeatureNotAvailableException, match="COLLECTIONS"):
            await cluster.bucket("default").collections().get_all_scopes()


async def test_it_says_what_it_is() -> None:
    """For people who print it."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        assert "<CollectionManager default>" == repr(cluster.bucket("default").collections())
