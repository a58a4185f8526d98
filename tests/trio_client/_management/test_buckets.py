"""Bucket management."""

from __future__ import annotations

from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from triclinium import Cluster, errors
from triclinium.management import BucketSettings, BucketType, CreateBucketSettings, EvictionPolicy
from triclinium.testing import Service, delay, http_status, open_fake_cluster

TRAVEL = CreateBucketSettings(name="travel", ram_quota_mb=128, flush_enabled=True)


async def names(cluster: Cluster) -> list[str]:
    """Return the names of all buckets."""
    return sorted(bucket.name for bucket in await cluster.buckets().get_all_buckets())


async def test_create_use_and_drop_a_bucket(autojump_clock: MockClock) -> None:
    """A created bucket can be used immediately, and a dropped bucket is not found."""
    async with open_fake_cluster(nodes=3) as fake, fake.open_client() as cluster:
        manager = cluster.buckets()
        await manager.create_bucket(TRAVEL)
        collection = cluster.bucket("travel").default_collection()
        await collection.upsert("ada", 1)

        assert ["default", "travel"] == await names(cluster)

        await manager.flush_bucket("travel")
        with pytest.raises(errors.DocumentNotFoundException):
            await collection.get("ada")

        await manager.drop_bucket("travel")
        assert ["default"] == await names(cluster)
        with pytest.raises(errors.BucketNotFoundException):
            await manager.get_bucket("travel")


async def test_settings_of_a_bucket_are_updated(autojump_clock: MockClock) -> None:
    """``get_bucket`` returns the settings that the program wrote, and an update changes single settings."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        manager = cluster.buckets()
        settings = BucketSettings(
            name="cache",
            ram_quota_mb=128,
            bucket_type=BucketType.EPHEMERAL,
            eviction_policy=EvictionPolicy.NO_EVICTION,
            max_expiry=60,
        )
        await manager.create_bucket(settings)
        found = await manager.get_bucket("cache")

        assert (128, BucketType.EPHEMERAL, EvictionPolicy.NO_EVICTION, 60, False) == (
            found.ram_quota_mb,
            found.bucket_type,
            found.eviction_policy,
            found.max_expiry,
            found.flush_enabled,
        )

        await manager.update_bucket(replace(found, ram_quota_mb=256, flush_enabled=True))
        assert replace(found, ram_quota_mb=256, flush_enabled=True) == await manager.get_bucket("cache")


async def test_a_missing_bucket_is_named(autojump_clock: MockClock) -> None:
    """The error of each call names a missing bucket, and a quota that the server refuses is a wrong argument."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        manager = cluster.buckets()
        with pytest.raises(errors.InvalidArgumentException):
            await manager.create_bucket(BucketSettings(name="small", ram_quota_mb=1))
        for call in (manager.get_bucket, manager.drop_bucket, manager.flush_bucket):
            with pytest.raises(errors.BucketNotFoundException) as caught:
                await call("travel")

            assert ("travel", 404) == (caught.value.context.bucket, caught.value.context.http_status)


async def test_a_bucket_unknown_to_a_node(autojump_clock: MockClock) -> None:
    """A new bucket is requested again until the node knows it."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        fake.node.faults.next(Service.MANAGEMENT, delay(0.01))
        for _ in range(3):
            fake.node.faults.next(Service.MANAGEMENT, http_status(404, body=b"Requested resource not found.\r\n"))
        await cluster.buckets().create_bucket(TRAVEL)

        assert ["POST", *["GET"] * 4] == [request.method for request in fake.node.request_log]


async def test_create_waits_for_every_node(autojump_clock: MockClock) -> None:
    """``create_bucket`` returns when the slowest node serves the bucket; every node then accepts writes immediately."""
    async with open_fake_cluster(nodes=3) as fake, fake.open_client() as cluster:
        await cluster.wait_until_ready()
        fake.nodes.learn_late(1, 2.0)
        fake.nodes.learn_late(2, 5.0)
        began_at = trio.current_time()
        await cluster.buckets().create_bucket(TRAVEL)

        assert 5.0 <= trio.current_time() - began_at <= 7.0

        before = cluster.statistics().retries_by_reason
        began_at = trio.current_time()
        for key in map(str, range(50)):
            await cluster.bucket("travel").default_collection().upsert(key, 1)

        assert {0, 1, 2} == {fake.nodes.owner_of(key) for key in map(str, range(50))}
        assert before == cluster.statistics().retries_by_reason
        assert began_at == pytest.approx(trio.current_time(), abs=0.01)


async def test_cancelling_create_bucket(autojump_clock: MockClock) -> None:
    """A cancelled ``create_bucket`` stops waiting for the nodes, and the client continues."""
    async with open_fake_cluster(nodes=2) as fake, fake.open_client() as cluster:
        await cluster.wait_until_ready()
        fake.nodes.kill(1)
        with trio.move_on_after(30) as scope:
            await cluster.buckets().create_bucket(TRAVEL)

        assert scope.cancelled_caught
        fake.nodes.revive(1)
        assert "travel" in await names(cluster)
