"""Create a bucket, a collection, indexes, a group and a user, and remove them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import token_urlsafe

import trio
import trio.testing

from triclinium import Cluster, Collection, fail_after
from triclinium.errors import BucketExistsException, IndexNotFoundException
from triclinium.management import CreateBucketSettings, CreateCollectionSettings, Group, Role, User
from triclinium.testing import open_fake_cluster

TRAVEL = CreateBucketSettings(name="travel", ram_quota_mb=128, flush_enabled=True)


@asynccontextmanager
async def travel_bucket(cluster: Cluster) -> AsyncIterator[Collection]:
    """Yield a collection in a new bucket, and drop the bucket at the end of the block."""
    await cluster.buckets().create_bucket(TRAVEL)
    try:
        collections = cluster.bucket("travel").collections()
        await collections.create_scope("inventory")
        await collections.create_collection("inventory", "hotel", CreateCollectionSettings(max_expiry=86400))
        yield cluster.bucket("travel").scope("inventory").collection("hotel")
    finally:
        # A cancelled block must drop its bucket too.
        with trio.move_on_after(30, shield=True):
            await cluster.buckets().drop_bucket("travel")


async def index(hotels: Collection) -> None:
    """Create two indexes, build them together, and wait until both can be used."""
    indexes = hotels.query_indexes()
    await indexes.create_primary_index(deferred=True)
    await indexes.create_index("by_city", ["city"], deferred=True)
    print("building", sorted(await indexes.build_deferred_indexes()))
    with fail_after(60):
        await indexes.watch_indexes(["by_city"], watch_primary=True)
    print({each.name: each.state for each in await indexes.get_all_indexes()})


async def let_in(cluster: Cluster) -> None:
    """Create a group and a user who has the rights of the group, and remove both."""
    users = cluster.users()
    await users.upsert_group(Group(name="readers", roles={Role("data_reader", "travel", "inventory")}))
    await users.upsert_user(User(username="ada", groups={"readers"}, password=token_urlsafe()))
    ada = await users.get_user("ada")
    print(ada.user.username, [str(each.role) for each in ada.effective_roles])
    await users.drop_user("ada")
    await users.drop_group("readers")


async def main() -> None:
    """Run everything with a cluster in memory."""
    async with open_fake_cluster(nodes=3) as fake, fake.open_client() as cluster:
        async with travel_bucket(cluster) as hotels:
            await hotels.upsert("ritz", {"city": "Paris"})
            print((await hotels.get("ritz")).content_as(dict[str, str]))
            await index(hotels)
            await let_in(cluster)
            try:
                await cluster.buckets().create_bucket(TRAVEL)
            except BucketExistsException as error:
                print(error.context.bucket, "is there")
            try:
                await hotels.query_indexes().drop_index("by_name")
            except IndexNotFoundException:
                print("no index by_name")
        print([bucket.name for bucket in await cluster.buckets().get_all_buckets()])


trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
