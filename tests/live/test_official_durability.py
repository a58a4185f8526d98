"""Durable writes of the official client to a fake cluster of three nodes with replicas."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
import trio

from tests.live.official import Official, official_client
from tests.live.waiting import until
from triclinium.testing import FakeNodes, open_tcp_cluster
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.testing import FakeNodeOptions

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("couchbase_package")]

LEVELS = [level.name for level in DurabilityLevel if level is not DurabilityLevel.NONE]
SHORTEST = 1.5
"""Minimum timeout in seconds that the official client accepts for a durable write."""


class OfficialCluster(NamedTuple):
    """Three nodes, the official client, and the indexes of the nodes with the document "ada"."""

    nodes: FakeNodes
    official: Official
    owner: int
    replicas: tuple[int, ...]

    async def write(self, do: str = "upsert", key: str = "ada", **options: Any) -> str | None:
        """Write durably, and return the name of the exception that the client raises, if any."""
        answer = await self.official.ask(do=do, key=key, **{"durability": "MAJORITY", **options})
        return answer.get("error")

    @property
    def is_pending(self) -> bool:
        """Whether a durable write of "ada" is pending."""
        return self.nodes.documents.get_prepared("default", "ada") is not None

    def value(self, key: str = "ada") -> bytes | None:
        """Return the value that the nodes store."""
        document = self.nodes.documents.get("default", key)
        return None if document is None else document.value


@asynccontextmanager
async def open_cluster(replicas: int = 1) -> AsyncIterator[OfficialCluster]:
    """Yield the nodes and the client."""
    nodes = FakeNodes(FakeNodeOptions(replicas=replicas), nodes=3)
    async with open_tcp_cluster(nodes) as fake, official_client(fake) as official:
        assert "error" not in await official.ask(do="upsert", key="ada", value=1)
        owner = nodes.owner_of("ada")
        assert owner is not None
        yield OfficialCluster(nodes, official, owner, nodes.replica_holders_of("ada"))


@pytest.mark.parametrize("replicas", [1, 2])
async def test_every_write_at_every_level(safety_net: None, replicas: int) -> None:
    """Every write at every level succeeds."""
    async with open_cluster(replicas) as cluster:
        for level in LEVELS:
            for do, value, stored in (
                ("upsert", 1, b"1"),
                ("replace", 2, b"2"),
                ("append", {"bytes": "33"}, b"23"),
                ("prepend", {"bytes": "34"}, b"423"),
                ("increment", None, b"424"),
                ("decrement", None, b"423"),
                ("remove", None, None),
                ("insert", 5, b"5"),
            ):
                error = await cluster.write(do, value=value, durability=level)
                assert (do, level, None, stored) == (do, level, error, cluster.value())


async def test_subdocument_changes_at_every_level(safety_net: None) -> None:
    """A subdocument change succeeds at every level."""
    async with open_cluster() as cluster:
        await cluster.write(value={})
        for level in LEVELS:
            spec = {"do": "upsert", "path": "level", "values": [level]}
            error = await cluster.write("mutate_in", specs=[spec], durability=level)
            assert (None, b'{"level":"%s"}' % level.encode()) == (error, cluster.value())


async def test_a_durable_write_waits_for_a_majority(safety_net: None) -> None:
    """A durable write completes when a majority has it."""
    async with open_cluster() as cluster, trio.open_nursery() as nursery:
        cluster.nodes.hold_replication(cluster.replicas[0])
        errors = []

        async def write() -> None:
            errors.append(await cluster.write(value=2))

        nursery.start_soon(write)
        await until(lambda: cluster.is_pending)
        meanwhile = cluster.value()
        cluster.nodes.release_replication(cluster.replicas[0])
        await until(lambda: bool(errors))

        assert (b"1", [None], b"2") == (meanwhile, errors, cluster.value())


async def test_durability_errors(safety_net: None) -> None:
    """The official client raises durability errors with the names of RFC 0058, except one with another name."""
    async with open_cluster() as cluster:
        cluster.nodes.hold_replication(cluster.replicas[0])
        ambiguous = await cluster.write(value=2, timeout=SHORTEST)
        after_it = cluster.value()
        cluster.nodes.fail_over(cluster.replicas[0])
        impossible = await cluster.write(value=3)

        assert ("DurabilitySyncWriteAmbiguousException", b"1") == (ambiguous, after_it)
        assert ("DurabilityImpossibleException", b"1") == (impossible, cluster.value())
