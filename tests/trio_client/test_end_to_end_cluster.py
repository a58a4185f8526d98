"""Results of a client while the map of its cluster changes, and while nodes fail and return."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock

import triclinium
from tests.trio_client.pair import OPTIONS, PATIENCE
from triclinium import errors
from triclinium.testing import FakeCluster, Opcode, open_fake_cluster, open_tcp_cluster

KEYS = [f"key-{number}" for number in range(40)]


async def write_all(people: triclinium.Collection, value: int) -> None:
    """Write all documents concurrently."""
    async with trio.open_nursery() as nursery:
        for key in KEYS:
            nursery.start_soon(people.upsert, key, value)


async def read_all(people: triclinium.Collection) -> set[object]:
    """Return the set of values of all documents."""
    return {(await people.get(key)).content for key in KEYS}


def people_of(cluster: triclinium.Cluster) -> triclinium.Collection:
    """Return the collection of the tests."""
    return cluster.bucket("travel").default_collection()


def stores(fake: FakeCluster) -> list[int]:
    """Return the number of writes that each node applied."""
    return [
        sum(command.opcode == Opcode.SET and command.applied for command in node.command_log) for node in fake.nodes
    ]


async def test_documents_are_spread_over_all_nodes(autojump_clock: MockClock) -> None:
    """The writes are spread over all nodes, and every document is found again."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        people = people_of(cluster)
        await write_all(people, 1)

        assert {1} == await read_all(people)
        assert all(stores(fake))
        assert len(KEYS) == sum(stores(fake))
        assert 3 == len({each.node for each in cluster.statistics().connections if each.bucket == "travel"})


async def test_a_rebalance_is_transparent(autojump_clock: MockClock) -> None:
    """During a rebalance that moves vbuckets and changes nodes, no call fails and no write is applied twice."""
    with trio.fail_after(PATIENCE):
        async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
            people = people_of(cluster)
            fake.nodes.remove_node(2)
            for value in range(8):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(write_all, people, value)
                    match value:
                        case 1:
                            fake.nodes.move(fake.nodes.vbuckets_of(0)[:20], to=1)
                        case 3:
                            fake.nodes.add_node(2)
                            fake.nodes.rebalance()
                        case 5:
                            fake.nodes.remove_node(0)
                        case 6:
                            fake.nodes.add_node(0)
                            fake.nodes.rebalance()
                        case _:
                            pass
                assert {value} == await read_all(people)

            assert 8 * len(KEYS) == sum(stores(fake))


async def test_a_dead_node_and_its_failover(autojump_clock: MockClock) -> None:
    """Until the failover, a write to a document of a dead node times out; afterwards, writes and reads succeed."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        people = people_of(cluster)
        await write_all(people, 1)
        lost = next(key for key in KEYS if fake.nodes.owner_of(key) == 1)
        fake.nodes.kill(1)
        await trio.sleep(0.1)
        with pytest.raises(errors.UnambiguousTimeoutException) as caught, triclinium.fail_after(1.0):
            await people.upsert(lost, 2)
        fake.nodes.remove_node(1)
        await trio.sleep(1.0)
        await write_all(people, 3)

        assert isinstance(caught.value, trio.TooSlowError)
        assert {3} == await read_all(people)


async def test_a_removed_node_is_logged(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """At level INFO, a node that leaves the map is logged."""
    caplog.set_level(logging.INFO, "triclinium")
    async with open_fake_cluster(options=OPTIONS, nodes=2) as fake, fake.open_client() as cluster:
        await write_all(people_of(cluster), 1)
        fake.nodes.remove_node(1)
        await trio.sleep(1.0)

    assert any("not in the cluster map any more" in record.getMessage() for record in caplog.records)


async def test_over_tcp() -> None:
    """Real sockets to three nodes work while the map changes."""
    async with open_tcp_cluster(nodes=3) as fake, fake.open_client() as cluster:
        people = cluster.bucket(fake.node.options.buckets[0]).default_collection()
        await write_all(people, 1)
        fake.nodes.remove_node(2)
        await write_all(people, 2)

        assert {2} == await read_all(people)
        assert all(stores(fake))


async def test_a_partitioned_node(autojump_clock: MockClock) -> None:
    """Calls for an unreachable node's documents time out; when it is reachable again, writes that were sent arrive."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        people = people_of(cluster)
        await write_all(people, 1)
        lost = next(key for key in KEYS if fake.nodes.owner_of(key) == 1)
        others = [key for key in KEYS if fake.nodes.owner_of(key) != 1]
        fake.nodes.cut_off(1)
        began = trio.current_time()
        with pytest.raises(errors.AmbiguousTimeoutException):
            await people.upsert(lost, 2)

        assert 2.5 == pytest.approx(trio.current_time() - began)
        assert {1} == {(await people.get(key)).content for key in others}
        fake.nodes.rejoin(1)
        assert 2 == (await people.get(lost)).content


class Listing:
    """Resolver that lists the current nodes."""

    def __init__(self, nodes: Sequence[tuple[str, int]]) -> None:
        self.nodes = nodes

    async def look_up(self, service: str) -> Sequence[tuple[str, int]]:
        """Return the current nodes."""
        await trio.lowlevel.checkpoint()
        return self.nodes


async def test_all_nodes_are_replaced_in_dns(autojump_clock: MockClock) -> None:
    """If all nodes are replaced at the same time, the client looks up its name again and uses the new nodes."""
    nodes = [(f"{name}.cluster.test", 11210) for name in "abcd"]
    listing = Listing(nodes[:2])
    with trio.fail_after(PATIENCE):
        async with open_fake_cluster(options=OPTIONS, nodes=nodes) as fake:
            fake.nodes.remove_node(2)
            fake.nodes.remove_node(3)
            async with triclinium.open_cluster(
                "couchbase://cluster.test", fake.authenticator, connector=fake.connector, resolver=listing
            ) as cluster:
                people = people_of(cluster)
                await write_all(people, 1)
                for new, old in ((2, 0), (3, 1)):
                    fake.nodes.add_node(new)
                    # Keep the old nodes from sending a config that has the new ones.
                    fake.nodes.hold_config(old)
                for old in (0, 1):
                    fake.nodes.kill(old)
                    fake.nodes.remove_node(old)
                listing.nodes = nodes[2:]
                await trio.sleep(5.0)
                await write_all(people, 2)

                assert {2} == await read_all(people)
