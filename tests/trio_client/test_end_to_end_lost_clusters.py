"""Replacement of all nodes of a cluster at the same time, while tasks read and write."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock

import triclinium
from tests.trio_client.pair import OPTIONS, PATIENCE
from tests.trio_client.test_end_to_end_cluster import people_of, read_all, write_all
from triclinium.testing import FakeCluster, open_fake_cluster

NODES = [(f"{name}.test", 11210) for name in "abcdef"]
OLD, NEW = range(3), range(3, 6)


class Listing:
    """Resolver with the current nodes."""

    def __init__(self, places: Sequence[int]) -> None:
        self.places = places
        self.asked = 0

    async def look_up(self, service: str) -> Sequence[tuple[str, int]]:
        """Return the current nodes."""
        self.asked += 1
        await trio.lowlevel.checkpoint()
        return [NODES[place] for place in self.places]


def replace_all(fake: FakeCluster) -> None:
    """Replace all nodes with new ones before an old node can send a config that has the new ones."""
    for place in NEW:
        fake.nodes.add_node(place)
    for place in OLD:
        fake.nodes.hold_config(place)
        fake.nodes.kill(place)
        fake.nodes.remove_node(place)


@pytest.mark.parametrize("in_dns", [True, False], ids=["in DNS", "in the connection string"])
async def test_all_nodes_are_replaced_together(autojump_clock: MockClock, in_dns: bool) -> None:
    """The client finds the new nodes through its connection string, and running tasks continue."""
    with trio.fail_after(PATIENCE):
        async with open_fake_cluster(options=OPTIONS, nodes=NODES) as fake:
            for place in NEW:
                fake.nodes.remove_node(place)
            listing = Listing(OLD)
            seeds = "cluster.test" if in_dns else "a.test:11210,f.test:11210"
            async with triclinium.open_cluster(
                f"couchbase://{seeds}",
                fake.authenticator,
                connector=fake.connector,
                resolver=listing,
                dns_srv_domains=["test"],
            ) as cluster:
                people = people_of(cluster)
                await write_all(people, 1)
                replace_all(fake)
                listing.places = NEW
                await trio.sleep(5.0)
                await write_all(people, 2)

                assert {2} == await read_all(people)
                assert {f"{host}:{port}" for host, port in NODES[3:]} == {
                    each.node for each in cluster.statistics().connections if each.bucket == "travel"
                }
                assert in_dns == (listing.asked >= 2)
