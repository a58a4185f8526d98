"""Watching the topology: a slot that keeps only what is newest."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from tests.trio_client.cancelling import Moments, at_every_moment
from tests.trio_client.pair import OPTIONS
from triclinium import Topology, TopologyChange, TopologyChanges, TopologyNode
from triclinium.testing import FakeCluster, open_fake_cluster


def node(port: int) -> TopologyNode:
    """Return a node with nothing but key-value service."""
    return TopologyNode("127.0.0.1", {"kv": port})


def version(revision: int, *ports: int, bucket: str | None = "travel") -> Topology:
    """Return one version of a topology."""
    return Topology(bucket, (1, revision), tuple(map(node, ports)))


def ports(nodes: tuple[TopologyNode, ...]) -> list[int]:
    """Return where the nodes listen."""
    return [each.ports["kv"] for each in nodes]


async def test_what_is_there_comes_first() -> None:
    """Each topology that is known is the first change, from nothing to what it is."""
    changes = TopologyChanges([version(1, 1, 2), version(1, 1, bucket=None)])

    assert TopologyChange(None, version(1, 1, 2)) == await anext(changes)
    assert TopologyChange(None, version(1, 1, bucket=None)) == await anext(changes)


async def test_changes_that_nobody_has_read_become_one() -> None:
    """It leads from what was read last to the newest; nodes that came and went in between are no news."""
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


async def test_buckets_are_kept_apart() -> None:
    """The changes of one never hide those of another; whoever changed first comes first."""
    changes = TopologyChanges([])
    for bucket in ("b", "a", "b"):
        changes.offer(TopologyChange(None, version(1, 1, bucket=bucket)))

    assert ["b", "a"] == [(await anext(changes)).bucket, (await anext(changes)).bucket]


async def test_the_end(autojump_clock: MockClock) -> None:
    """What was not read yet is still there, then the iteration ends, for those who wait too."""
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
    """A reader that always finds something lets others run, and can be cancelled."""
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
    """A node that leaves and one that comes are told by name, as soon as the client hears of them."""
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


async def test_the_cluster_is_closed(autojump_clock: MockClock) -> None:
    """The iteration ends, also for a task outside; nobody can subscribe any more."""
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


async def test_a_subscription_that_was_left(autojump_clock: MockClock) -> None:
    """Nothing is kept for it any more, and what reads from it ends."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        await cluster.wait_until_ready()
        async with cluster.subscribe_topology() as changes:
            assert 1 == len(cluster._driver.subscriptions)
            await anext(changes)

        assert 0 == len(cluster._driver.subscriptions)
        assert [] == [change async for change in changes]


async def watch(moments: Moments) -> tuple[bool, int, list[int]]:
    """Return whether a read was cancelled, how many subscribe afterwards, and which revisions come after it."""
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


def test_a_read_may_be_cancelled_at_any_moment() -> None:
    """What it would have read is there for the next one."""
    runs = at_every_moment(watch)

    assert (False, 0, []) == runs.undisturbed == runs.cancelled[-1]
    assert {(True, 0, (2,)), (False, 0, ())} == {(caught, left, tuple(later)) for caught, left, later in runs.cancelled}


async def test_a_subscriber_keeps_a_dropped_bucket(autojump_clock: MockClock) -> None:
    """A bucket that is dropped stays known while any subscriber is open, is forgotten afterwards, and can be used again."""
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
