"""A cluster whose nodes have several addresses, seen from the inside and from the outside."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trio.testing import MockClock

import triclinium
from tests.trio_client.pair import OPTIONS
from tests.trio_client.test_end_to_end_cluster import KEYS, people_of, read_all, write_all
from triclinium.errors import UnambiguousTimeoutException
from triclinium.testing import open_fake_cluster

FORWARDED = replace(OPTIONS, alternate_addresses={"external": ("ext.example", 31210)})
OUTSIDE = "couchbase://ext.example:31210"


@pytest.mark.parametrize("network", ["auto", "external"])
async def test_from_the_outside(autojump_clock: MockClock, network: str) -> None:
    """All nodes are reached by the addresses that they have there, although their own would not lead anywhere."""
    async with (
        open_fake_cluster(options=FORWARDED, nodes=3) as fake,
        triclinium.open_cluster(OUTSIDE, fake.authenticator, connector=fake.connector, network=network) as cluster,
    ):
        people = people_of(cluster)
        await write_all(people, 1)

        assert {1} == await read_all(people)
        assert {f"ext.example:{port}" for port in (31210, 31212, 31214)} == {
            each.node for each in cluster.statistics().connections if each.bucket == "travel"
        }


async def test_a_node_that_the_outside_cannot_reach(autojump_clock: MockClock) -> None:
    """The error of its documents says what is missing."""
    async with open_fake_cluster(options=FORWARDED, nodes=2) as fake:
        fake.nodes.set_alternate_addresses(1, {})
        lost = next(key for key in KEYS if fake.nodes.owner_of(key) == 1)
        async with triclinium.open_cluster(OUTSIDE, fake.authenticator, connector=fake.connector) as cluster:
            with pytest.raises(UnambiguousTimeoutException, match="no address in network 'external'"):
                await people_of(cluster).upsert(lost, 1)
