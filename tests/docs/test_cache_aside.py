"""The cache of its page: crashes, failures of the source, and lost responses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest
import trio
import trio.testing

from docs.howto.examples.cache_aside import LOADS_AT_ONCE, SECONDS_TO_LOAD, TIMEOUTS, Cache, Entry, State
from triclinium import CircuitBreakerOptions, Cluster, Collection
from triclinium.errors import DocumentNotFoundException
from triclinium.testing import FakeCluster, Opcode, drop_response, open_fake_cluster, status
from triclinium_core.retry.couchbase import BreakerState, Status

pytestmark = pytest.mark.native


class Source:
    """Source that counts its loads. Each takes ``seconds``, and the next ``failures`` fail."""

    def __init__(self) -> None:
        self.seconds = 1.0
        self.failures = 0
        self.started = 0
        self.at_once = 0
        self.at_once_max = 0

    async def load(self, key: str) -> str:
        """Return the number of the load."""
        self.started += 1
        self.at_once += 1
        self.at_once_max = max(self.at_once, self.at_once_max)
        number = self.started
        try:
            await trio.sleep(self.seconds)
        finally:
            self.at_once -= 1
        if self.failures:
            self.failures -= 1
            raise OSError("the source failed")
        return f"load {number}"


class Setup(NamedTuple):
    """A cache, its source, and its cluster."""

    fake: FakeCluster
    cluster: Cluster
    documents: Collection
    cache: Cache
    source: Source


@asynccontextmanager
async def cached() -> AsyncIterator[Setup]:
    """Open a cache for a block."""
    source = Source()
    async with open_fake_cluster() as fake, fake.open_client(timeouts=TIMEOUTS) as cluster:
        documents = cluster.bucket("default").default_collection()
        yield Setup(fake, cluster, documents, Cache(documents, source.load), source)


async def test_a_crashed_load_is_repeated(autojump_clock: trio.testing.MockClock) -> None:
    """If a call is cancelled while it loads a value, the next call loads it when the claim has expired."""
    async with cached() as setup:
        with trio.move_on_after(0.5):
            await setup.cache.get("key")
        value = await setup.cache.get("key")

    assert ("load 2", 2) == (value, setup.source.started)


async def test_a_failure_of_the_source_ends_the_claim(autojump_clock: trio.testing.MockClock) -> None:
    """A load that fails raises in its own call only, and a waiting call loads before the claim would expire."""
    async with cached() as setup:
        setup.source.failures = 1
        results: list[str | None] = []

        async def get() -> None:
            try:
                results.append(await setup.cache.get("key"))
            except OSError:
                results.append("failed")

        with trio.fail_after(SECONDS_TO_LOAD):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(get)
                nursery.start_soon(get)

    assert ["failed", "load 2"] == results


async def test_a_failed_replace_ends_the_claim(autojump_clock: trio.testing.MockClock) -> None:
    """If the value cannot be stored, the call returns it, and the next call loads before the claim would expire."""
    async with cached() as setup:
        setup.fake.node.faults.next(Opcode.REPLACE, status(Status.TOO_BIG))
        values = [await setup.cache.get("key")]
        with trio.fail_after(SECONDS_TO_LOAD):
            values.append(await setup.cache.get("key"))

    assert ["load 1", "load 2"] == values


async def test_a_silent_node_opens_its_breaker(autojump_clock: trio.testing.MockClock) -> None:
    """If a node stops answering reads, the values come from the source, and the node's circuit breaker opens."""
    async with cached() as setup:
        setup.source.seconds = 0.0
        await setup.cache.get("key")
        setup.fake.node.faults.always(Opcode.GET, drop_response())
        count = CircuitBreakerOptions().volume_threshold
        values = [await setup.cache.get("key") for _ in range(count)]
        breakers = [each.circuit_breaker for each in setup.cluster.statistics().connections]

    assert [f"load {number}" for number in range(2, count + 2)] == values
    assert BreakerState.OPEN in [breaker.state for breaker in breakers if breaker is not None]


async def test_a_late_value_replaces_nothing(autojump_clock: trio.testing.MockClock) -> None:
    """The value of a load that outlasts its claim is returned, and the value that another task has stored stays."""
    async with cached() as setup:
        setup.source.seconds = SECONDS_TO_LOAD + 2
        late: list[str | None] = []

        async def load_late() -> None:
            late.append(await setup.cache.get("key"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(load_late)
            await trio.sleep(SECONDS_TO_LOAD + 1)
            setup.source.seconds = 0.5
            quick = await setup.cache.get("key")
        stored = (await setup.documents.get("key")).content_as(Entry)

    assert (["load 1"], "load 2", Entry(State.PRESENT, "load 2")) == (late, quick, stored)


async def test_lost_responses_delay_only_a_later_load(autojump_clock: trio.testing.MockClock) -> None:
    """If the response to a claim or value is lost, the call succeeds, and the claim expires or the value is stored."""
    async with cached() as setup:
        for opcode in (Opcode.ADD, Opcode.REPLACE):
            setup.fake.node.faults.next(opcode, drop_response())
            await setup.cache.get(opcode.name)
        await trio.sleep(SECONDS_TO_LOAD + 1)
        claimed = await setup.documents.get_or_none("ADD")
        stored = (await setup.documents.get("REPLACE")).content_as(Entry)

    assert claimed is None
    assert Entry(State.PRESENT, "load 2") == stored


async def test_a_failing_cluster_limits_loads(autojump_clock: trio.testing.MockClock) -> None:
    """Without the cluster every call loads, at most as many at the same time as the limiter permits."""
    async with cached() as setup:
        setup.fake.nodes.kill(0)
        async with trio.open_nursery() as nursery:
            for _ in range(5 * LOADS_AT_ONCE):
                nursery.start_soon(setup.cache.get, "key")

    assert (5 * LOADS_AT_ONCE, LOADS_AT_ONCE) == (setup.source.started, setup.source.at_once_max)


async def test_invalidation_is_repeatable(autojump_clock: trio.testing.MockClock) -> None:
    """A key that was invalidated can be invalidated again."""
    async with cached() as setup:
        await setup.cache.get("key")
        await setup.cache.invalidate("key")
        await setup.cache.invalidate("key")
        with pytest.raises(DocumentNotFoundException):
            await setup.documents.get("key")
