"""Durable writes of a client to a cluster of three nodes, in memory and in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, Unpack

import pytest
import trio
from trio.testing import MockClock

from tests.trio_client.pair import PATIENCE, Never
from triclinium import Collection, DurabilityLevel, TimeoutOptions, errors, fail_after
from triclinium.subdocument import LookupInSpec, MutateInSpec
from triclinium.testing import ClientArguments, FakeCluster, open_fake_cluster
from triclinium_core.testing import FakeNodeOptions

MAJORITY = DurabilityLevel.MAJORITY

WRITES: Sequence[Callable[[Collection, DurabilityLevel], Awaitable[object]]] = (
    lambda people, level: people.insert("eve", 1, durability=level),
    lambda people, level: people.upsert("ada", 2, durability=level),
    lambda people, level: people.replace("ada", 3, durability=level),
    lambda people, level: people.binary.append("ada", b"2", durability=level),
    lambda people, level: people.binary.prepend("ada", b"2", durability=level),
    lambda people, level: people.binary.increment("ada", durability=level),
    lambda people, level: people.binary.decrement("ada", durability=level),
    lambda people, level: people.remove("ada", durability=level),
)


class Trio(NamedTuple):
    """Cluster, collection, and index of the node with the replica of document "ada"."""

    fake: FakeCluster
    people: Collection
    replica: int


@asynccontextmanager
async def open_trio(**arguments: Unpack[ClientArguments]) -> AsyncIterator[Trio]:
    """Yield three nodes and the collection of a client, with a document "ada" of value 1 and one replica."""
    with trio.fail_after(PATIENCE):
        async with (
            open_fake_cluster(options=FakeNodeOptions(vbuckets=128), nodes=3, replicas=1) as fake,
            fake.open_client(**arguments) as cluster,
        ):
            people = cluster.bucket("default").default_collection()
            await people.upsert("ada", 1)
            (replica,) = fake.nodes.replica_holders_of("ada")
            yield Trio(fake, people, replica)


async def test_every_write_at_every_level(autojump_clock: MockClock) -> None:
    """Every write at every level completes immediately, and leaves the same documents."""
    for level in DurabilityLevel:
        began = trio.current_time()
        found = []
        async with open_trio() as (fake, people, _):
            for write in WRITES:
                await write(people, level)
                stored = [fake.nodes.documents.get("default", key) for key in ("ada", "eve")]
                found.append([document and document.value for document in stored])

        assert [[value, b"1"] for value in (b"1", b"2", b"3", b"32", b"232", b"233", b"232", None)] == found
        assert began == trio.current_time()


async def test_a_durable_subdocument_change(autojump_clock: MockClock) -> None:
    """A durable change of document parts is visible only when a majority has it, including extended attributes."""
    async with open_trio() as (fake, people, replica), trio.open_nursery() as nursery:
        await people.upsert("ada", {"born": 1815})
        fake.nodes.hold_replication(replica)

        async def write() -> None:
            specs = [MutateInSpec.upsert("seen", 1, xattr=True), MutateInSpec.upsert("city", "London")]
            await people.mutate_in("ada", specs, durability=MAJORITY)

        async def read() -> tuple[object, bool]:
            found = await people.lookup_in("ada", [LookupInSpec.exists("seen", xattr=True), LookupInSpec.get("")])
            return found.content_as(object, 1), found.exists(0)

        nursery.start_soon(write)
        await trio.sleep(1)
        meanwhile = await read()
        fake.nodes.release_replication(replica)
        await trio.testing.wait_all_tasks_blocked()

        assert ({"born": 1815}, False) == meanwhile
        assert ({"born": 1815, "city": "London"}, True) == await read()


async def test_a_durable_write_becomes_visible_when_complete(autojump_clock: MockClock) -> None:
    """Readers see the old value until a majority has the new one, and then the writer returns."""
    async with open_trio() as (fake, people, replica), trio.open_nursery() as nursery:
        fake.nodes.hold_replication(replica)
        start = trio.current_time()
        ended = []

        async def write() -> None:
            await people.upsert("ada", 2, durability=MAJORITY)
            ended.append(trio.current_time() - start)

        nursery.start_soon(write)
        await trio.sleep(4)
        meanwhile = (await people.get("ada")).content
        fake.nodes.release_replication(replica)
        await trio.testing.wait_all_tasks_blocked()
        after = (await people.get("ada")).content

    assert (1, 2) == (meanwhile, after)
    assert [pytest.approx(4)] == ended


async def test_the_server_times_out_first(autojump_clock: MockClock) -> None:
    """The server's timeout expires before the client's, so that the caller gets DurabilityAmbiguousException."""
    async with open_trio() as (fake, people, replica):
        fake.nodes.hold_replication(replica)
        start = trio.current_time()
        with pytest.raises(errors.DurabilityAmbiguousException) as caught:
            await people.upsert("ada", 2, durability=MAJORITY)

        assert pytest.approx(9.0) == trio.current_time() - start
        assert 0 == caught.value.context.retry_attempts
        assert 1 == (await people.get("ada")).content


async def test_a_cancelled_durable_write(autojump_clock: MockClock) -> None:
    """``fail_after`` reports a durable write as ambiguous, and the write completes when replication continues."""
    async with open_trio() as (fake, people, replica):
        fake.nodes.hold_replication(replica)
        with pytest.raises(errors.AmbiguousTimeoutException), fail_after(1):
            await people.upsert("ada", 2, durability=MAJORITY)
        fake.nodes.release_replication(replica)
        await trio.testing.wait_all_tasks_blocked()

        assert 2 == (await people.get("ada")).content


async def test_other_writes_wait_for_a_durable_write(autojump_clock: MockClock) -> None:
    """While a durable write is pending, other writes to the document wait; all are applied one after the other."""
    async with open_trio(timeouts=TimeoutOptions(kv=10.0)) as (fake, people, replica):
        fake.nodes.hold_replication(replica)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: people.upsert("ada", 2, durability=MAJORITY))
            await trio.sleep(1)
            nursery.start_soon(lambda: people.binary.append("ada", b"3", durability=MAJORITY))
            nursery.start_soon(lambda: people.binary.append("ada", b"3"))
            await trio.sleep(1)
            with pytest.raises(errors.DurableWriteInProgressException):
                await people.upsert("ada", 4, retry_strategy=Never())
            fake.nodes.release_replication(replica)

        assert 233 == (await people.get("ada")).content


async def test_too_few_replicas(autojump_clock: MockClock) -> None:
    """With too few replicas, a durable write fails immediately and writes nothing; after a rebalance it succeeds."""
    async with open_trio() as (fake, people, replica):
        fake.nodes.fail_over(replica)
        start = trio.current_time()
        with pytest.raises(errors.DurabilityImpossibleException, match="nothing was written"):
            await people.upsert("ada", 2, durability=MAJORITY)
        unchanged = (await people.get("ada")).content
        elapsed = trio.current_time() - start
        fake.nodes.rebalance()
        await people.upsert("ada", 2, durability=MAJORITY)

        assert (1, 0) == (unchanged, elapsed)
        assert 2 == (await people.get("ada")).content
