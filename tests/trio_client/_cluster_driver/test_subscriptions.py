"""Topology subscriptions, which merge the unread changes of each bucket into one."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from tests.trio_client.cancelling import Moments, at_every_moment
from tests.trio_client.pair import OPTIONS
from triclinium.testing import FakeCluster, open_fake_cluster
from triclinium.topology import Topology, TopologyChange, TopologyChanges, TopologyNode


def node(port: int) -> TopologyNode:
    """Return a node that has only the key-value service."""
    return TopologyNode("127.0.0.1", {"kv": port})


def version(revision: int, *ports: int, bucket: str | None = "travel") -> Topology:
    """Return one version of a topology."""
    return Topology(bucket, (1, revision), tuple(map(node, ports)))


def ports(nodes: tuple[TopologyNode, ...]) -> list[int]:
    """Return the key-value ports of the nodes."""
    return [each.ports["kv"] for each in nodes]


async def test_known_topologies_are_the_first_changes() -> None:
    """The first change of each known topology is from None to its current version."""
    changes = TopologyChanges([version(1, 1, 2), version(1, 1, bucket=None)])

    assert TopologyChange(None, version(1, 1, 2)) == await anext(changes)
    assert TopologyChange(None, version(1, 1, bucket=None)) == await anext(changes)


async def test_unread_changes_are_merged() -> None:
    """Unread changes are merged into one change, which compares the newest version with the last one that was read."""
    changes = TopologyChanges([version(1, 1, 2)])
    await anext(changes)
    for old, new in (
        (version(1, 1, 2), version(2, 1, 2, 3)),
        (version(2, 1, 2, 3), version(3, 1, 2, 3, 4)),
        (version(3, 1, 2, 3, 4), version(4, 1, 4)),
    ):
        changes.offer(TopologyChange(old, new))
    change = await anext(changes)

    assert ((1, 1), (1, 4)) == (change.old and change.old.revision, change.new.revision)
    assert ([4], [2]) == (ports(change.added), ports(change.removed))


async def test_buckets_have_separate_changes() -> None:
    """A change of one bucket does not replace a change of another, and the bucket that changed first is read first."""
    changes = TopologyChanges([])
    for bucket in ("b", "a", "b"):
        changes.offer(TopologyChange(None, version(1, 1, bucket=bucket)))

    assert ["b", "a"] == [(await anext(changes)).bucket, (await anext(changes)).bucket]


async def test_iteration_ends_after_close(autojump_clock: MockClock) -> None:
    """After ``close``, an unread change is still returned and then the iteration ends, even for a waiting reader."""
    changes = TopologyChanges([version(1, 1)])
    waiting = TopologyChanges([])
    found: list[TopologyChange] = []

    async def read() -> None:
        found.extend([change async for change in waiting])
        found.extend([change async for change in changes])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        nursery.start_soon(anext, waiting, None)
        await trio.testing.wait_all_tasks_blocked()
        changes.close()
        waiting.close()

    assert [TopologyChange(None, version(1, 1))] == found


async def test_every_read_is_a_checkpoint() -> None:
    """A read that finds a change immediately is still a checkpoint and can be cancelled."""
    changes = TopologyChanges([version(1, 1)])
    with trio.testing.assert_checkpoints():
        await anext(changes)
    changes.offer(TopologyChange(version(1, 1), version(2, 1)))
    with trio.CancelScope() as scope:
        scope.cancel()
        await anext(changes)

    assert scope.cancelled_caught
    assert (1, 2) == (await anext(changes)).new.revision


async def test_a_change_reaches_its_watcher(autojump_clock: MockClock) -> None:
    """A rebalance is reported with the names of added and removed nodes when the client receives it."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        fake.nodes.remove_node(2)
        await cluster.bucket("travel").wait_until_ready()
        async with cluster.subscribe_topology() as changes:
            present = {change.bucket: change for change in [await anext(changes), await anext(changes)]}
            fake.nodes.remove_node(0)
            fake.nodes.add_node(2)
            with trio.fail_after(1.0):
                (change,) = [
                    change for change in [await anext(changes), await anext(changes)] if change.bucket == "travel"
                ]

        assert {None, "travel"} == set(present)
        assert [None] * 2 == [change.old for change in present.values()]
        assert [11210, 11212] == ports(present["travel"].added) == ports(present["travel"].new.nodes)
        assert ["127.0.0.1:11214"] == [each.name for each in change.added]
        assert ["127.0.0.1:11210"] == [each.name for each in change.removed]


async def test_closing_the_cluster_ends_subscriptions(autojump_clock: MockClock) -> None:
    """Closing the cluster ends the iteration, even in a task outside it; a later subscription raises."""
    seen: list[TopologyChange] = []
    async with open_fake_cluster(options=OPTIONS) as fake, trio.open_nursery() as nursery:
        async with fake.open_client() as cluster:
            await cluster.wait_until_ready()

            async def watch() -> None:
                async with cluster.subscribe_topology() as changes:
                    seen.extend([change async for change in changes])

            nursery.start_soon(watch)
            await trio.sleep(1.0)
        with pytest.raises(trio.ClosedResourceError, match="inside its block"):
            async with cluster.subscribe_topology():
                raise AssertionError

    assert [None] == [change.old for change in seen]


async def test_a_closed_subscription_is_released(autojump_clock: MockClock) -> None:
    """After its block, a subscription is removed from the driver and its iteration ends."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        await cluster.wait_until_ready()
        async with cluster.subscribe_topology() as changes:
            assert 1 == len(cluster._driver.subscriptions)
            await anext(changes)

        assert 0 == len(cluster._driver.subscriptions)
        assert [] == [change async for change in changes]


async def watch(moments: Moments) -> tuple[bool, int, list[int]]:
    """Return whether the read was cancelled, the number of subscriptions afterwards, and the revisions read later."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        await cluster.wait_until_ready()
        async with cluster.subscribe_topology() as changes:
            await anext(changes)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_change, fake)
                with trio.CancelScope() as scope, moments.of_call(scope):
                    await anext(changes)
            later = [] if not scope.cancelled_caught else [(await anext(changes)).new.revision[1]]
        return scope.cancelled_caught, len(cluster._driver.subscriptions), later


async def _change(fake: FakeCluster) -> None:
    await trio.sleep(0.5)
    fake.set_config_revision(2)


def test_a_cancelled_read_loses_no_change() -> None:
    """A change that a cancelled read would have returned is returned by the next read."""
    runs = at_every_moment(watch)

    assert (False, 0, []) == runs.undisturbed == runs.cancelled[-1]
    assert {(True, 0, (2,)), (False, 0, ())} == {(caught, left, tuple(later)) for caught, left, later in runs.cancelled}


async def test_a_subscriber_keeps_a_dropped_bucket(autojump_clock: MockClock) -> None:
    """The client forgets a dropped bucket when no subscription is open any more; a later call can use it again."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        buckets = fake.node.cluster.buckets

        def known() -> set[str | None]:
            return {each.bucket for each in cluster.statistics().topologies}

        await cluster.bucket("travel").default_collection().upsert("ada", 1)
        async with cluster.subscribe_topology():
            async with cluster.subscribe_topology():
                await cluster.buckets().drop_bucket("travel")
                await trio.sleep(10.0)
                with_two = known()
            await trio.sleep(10.0)
            with_one = known()
        with_none, connections = known(), len(cluster.statistics().connections)
        buckets.create("travel", {})
        await cluster.bucket("travel").default_collection().upsert("ada", 1)

        assert {None, "travel"} == with_two == with_one == known()
        assert ({None}, 1) == (with_none, connections)
