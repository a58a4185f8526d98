"""Management of the scopes and collections of a bucket."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
import trio
from trio.testing import MockClock

from tests.trio_client.pair import Waits
from triclinium import Cluster, TimeoutOptions, errors
from triclinium.management import CollectionSpec, CreateCollectionSettings, UpdateCollectionSettings
from triclinium.retries import RetryReason
from triclinium.testing import FakeCluster, Service, hang_up, open_fake_cluster
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing import FakeNodeOptions
from triclinium_core.testing.fakes.store.documents import vbucket_of

OPTIONS = FakeNodeOptions(collections={"_default": {"_default": 0}, "inventory": {"hotel": 8}})
VBUCKETS = 128


async def test_get_all_scopes_lists_current_collections(autojump_clock: MockClock) -> None:
    """``get_all_scopes`` returns the current scopes, and every collection it lists can be used."""
    async with open_fake_cluster(nodes=3, options=OPTIONS) as fake, fake.open_client() as cluster:
        bucket = cluster.bucket("default")
        fake.nodes.collections.create("inventory", "airline")
        scopes = await bucket.collections().get_all_scopes()

        assert ["_default", "inventory"] == [scope.name for scope in scopes]
        hotel = CollectionSpec(name="hotel", scope_name="inventory", id=8, max_expiry=0, history=False)
        assert hotel == scopes[1].collections[0]

        for scope in scopes:
            for collection in scope.collections:
                await bucket.scope(collection.scope_name).collection(collection.name).upsert("ada", 1)


async def test_create_use_and_drop_a_collection(autojump_clock: MockClock) -> None:
    """A created collection can be used immediately, and a dropped one is not listed."""
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


async def test_a_missing_collection_is_named(autojump_clock: MockClock) -> None:
    """The error of a missing collection names it with its bucket and scope."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        with pytest.raises(errors.CollectionNotFoundException) as caught:
            await cluster.bucket("default").collections().drop_collection("inventory", "airline")

    context = caught.value.context
    assert ("drop_collection", "default", "inventory", "airline") == (
        context.operation,
        context.bucket,
        context.scope,
        context.collection,
    )


async def test_history_without_support(autojump_clock: MockClock) -> None:
    """If the bucket does not keep history, a collection with history is refused and not created."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        manager = cluster.bucket("default").collections()
        with pytest.raises(errors.FeatureNotAvailableException):
            await manager.create_collection("_default", "hotel", CreateCollectionSettings(history=True))

        assert 1 == len((await manager.get_all_scopes())[0].collections)


async def test_the_strategy_of_the_call(autojump_clock: MockClock) -> None:
    """The strategy of a call decides about the retries of its requests."""
    strategy = Waits(0.1)
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        fake.node.faults.next(Service.MANAGEMENT, hang_up())
        with pytest.raises(errors.RequestCanceledException):
            await cluster.bucket("default").collections().create_scope("other", retry_strategy=strategy)

    assert [("create_scope", RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, 0)] == strategy.asked


async def write_everywhere(fake: FakeCluster, cluster: Cluster, collection: str) -> None:
    """Write to every vbucket of a collection; check that every node got writes, and that none was retried."""
    hotels, left = cluster.bucket("default").scope("inventory").collection(collection), set(range(VBUCKETS))
    before = cluster.statistics().retries_by_reason
    for key in map(str, count()):
        vbucket = vbucket_of(key.encode(), VBUCKETS)
        if vbucket in left:
            left.remove(vbucket)
            await hotels.upsert(key, 1)
        if not left:
            break

    assert before == cluster.statistics().retries_by_reason
    assert {0, 1, 2} == {
        place
        for place, node in enumerate(fake.nodes)
        if any(command.opcode == Opcode.SET and command.applied for command in node.command_log)
    }


async def test_create_waits_for_every_node(autojump_clock: MockClock) -> None:
    """``create_collection`` returns when the slowest node knows the collection; no first write is then retried."""
    options = replace(OPTIONS, vbuckets=VBUCKETS)
    async with open_fake_cluster(nodes=3, options=options) as fake, fake.open_client() as cluster:
        manager = cluster.bucket("default").collections()
        await cluster.wait_until_ready()
        for late, index in ((0.0, 0), (3.0, 1), (8.0, 2)):
            fake.nodes.learn_late(index, late)
        began_at = trio.current_time()
        await manager.create_collection("inventory", "airport")

        assert 8.0 <= trio.current_time() - began_at <= 9.5

        await write_everywhere(fake, cluster, "airport")


async def test_a_collection_that_is_recreated(autojump_clock: MockClock) -> None:
    """A recreated collection has a new id, and no later request uses the old id."""
    options = replace(OPTIONS, vbuckets=VBUCKETS)
    async with open_fake_cluster(nodes=3, options=options) as fake, fake.open_client() as cluster:
        manager = cluster.bucket("default").collections()
        await write_everywhere(fake, cluster, "hotel")
        fake.nodes.learn_late(1, 3.0)
        await manager.drop_collection("inventory", "hotel")
        with pytest.raises(errors.CollectionNotFoundException):
            await cluster.bucket("default").scope("inventory").collection("hotel").upsert("ada", 1)
        await manager.create_collection("inventory", "hotel")

        await write_everywhere(fake, cluster, "hotel")


async def test_create_with_a_node_down(autojump_clock: MockClock) -> None:
    """If a node is down, the call ends at the management timeout and names the node; the change itself persists."""
    timeouts = TimeoutOptions(management=5.0)
    async with (
        open_fake_cluster(nodes=3, options=OPTIONS) as fake,
        fake.open_client(timeouts=timeouts) as cluster,
    ):
        manager = cluster.bucket("default").collections()
        await cluster.wait_until_ready()
        await cluster.bucket("default").default_collection().upsert("ada", 1)
        fake.nodes.kill(2)
        began_at = trio.current_time()
        with pytest.raises(errors.AmbiguousTimeoutException, match=f":{fake.nodes[2].options.port}") as caught:
            await manager.create_collection("inventory", "airline")

        assert 5.0 == pytest.approx(trio.current_time() - began_at, abs=0.5)
        context = caught.value.context
        assert ("create_collection", "inventory", "airline") == (context.operation, context.scope, context.collection)
        (down,) = context.connections
        assert str(fake.nodes[2].options.port) in down

        fake.nodes.revive(2)
        with pytest.raises(errors.CollectionExistsException):
            await manager.create_collection("inventory", "airline")
