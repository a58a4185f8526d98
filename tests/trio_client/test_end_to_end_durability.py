"""Durable writes of a client to a cluster of three nodes, in memory and in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest
import trio
from trio.testing import MockClock

import triclinium
from tests.rows import rows
from tests.trio_client.pair import PATIENCE, Never
from triclinium import errors
from triclinium.testing import FakeCluster, Opcode, drop_response, open_fake_cluster
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.testing import IMPLEMENTED_FEATURES, FakeNodeOptions

MAJORITY = triclinium.DurabilityLevel.MAJORITY

WRITES: Sequence[Callable[[triclinium.Collection, triclinium.DurabilityLevel], Awaitable[object]]] = (
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
    """Cluster, collection, and the owner and replicas of the document that most tests use."""

    fake: FakeCluster
    people: triclinium.Collection
    owner: int
    replicas: tuple[int, ...]


@asynccontextmanager
async def open_trio(
    replicas: int = 1,
    *,
    timeouts: triclinium.TimeoutOptions | None = None,
    features: frozenset[HelloFeature] = IMPLEMENTED_FEATURES,
) -> AsyncIterator[Trio]:
    """Yield three nodes and a client, with a document "ada" of value 1."""
    options = FakeNodeOptions(vbuckets=128, features=features)
    with trio.fail_after(PATIENCE):
        async with (
            open_fake_cluster(options=options, nodes=3, replicas=replicas) as fake,
            fake.open_client(timeouts=timeouts or triclinium.TimeoutOptions()) as cluster,
        ):
            people = cluster.bucket("default").default_collection()
            await people.upsert("ada", 1)
            owner = fake.nodes.owner_of("ada")
            assert owner is not None
            yield Trio(fake, people, owner, fake.nodes.replica_holders_of("ada"))


async def test_every_write_at_every_level(autojump_clock: MockClock) -> None:
    """Every write at every level completes immediately, with the same result as a write without durability."""
    for level in triclinium.DurabilityLevel:
        began = trio.current_time()
        found = []
        async with open_trio() as (fake, people, *_):
            for write in WRITES:
                await write(people, level)
                stored = [fake.nodes.documents.get("default", key) for key in ("ada", "eve")]
                found.append([document and document.value for document in stored])

        assert [[value, b"1"] for value in (b"1", b"2", b"3", b"32", b"232", b"233", b"232", None)] == found
        assert began == trio.current_time()


async def test_a_durable_subdocument_change(autojump_clock: MockClock) -> None:
    """A durable change of document parts is visible only when a majority has it, including extended attributes."""
    async with open_trio() as (fake, people, _, replicas), trio.open_nursery() as nursery:
        await people.upsert("ada", {"born": 1815})
        fake.nodes.hold_replication(replicas[0])

        async def write() -> None:
            specs = [
                triclinium.subdocument.MutateInSpec.upsert("seen", 1, xattr=True),
                triclinium.subdocument.MutateInSpec.upsert("city", "London"),
            ]
            await people.mutate_in("ada", specs, durability=MAJORITY)

        async def read() -> tuple[object, bool]:
            found = await people.lookup_in(
                "ada",
                [
                    triclinium.subdocument.LookupInSpec.exists("seen", xattr=True),
                    triclinium.subdocument.LookupInSpec.get(""),
                ],
            )
            return found.content_as(object, 1), found.exists(0)

        nursery.start_soon(write)
        await trio.sleep(1)
        meanwhile = await read()
        fake.nodes.release_replication(replicas[0])
        await trio.testing.wait_all_tasks_blocked()

        assert ({"born": 1815}, False) == meanwhile
        assert ({"born": 1815, "city": "London"}, True) == await read()


async def test_a_durable_write_becomes_visible_when_complete(autojump_clock: MockClock) -> None:
    """Readers see the old value until a majority has the new one, and then the writer returns."""
    async with open_trio() as (fake, people, _, replicas), trio.open_nursery() as nursery:
        fake.nodes.hold_replication(replicas[0])
        start = trio.current_time()
        ended = []

        async def write() -> None:
            await people.upsert("ada", 2, durability=MAJORITY)
            ended.append(trio.current_time() - start)

        nursery.start_soon(write)
        await trio.sleep(4)
        meanwhile = (await people.get("ada")).content
        fake.nodes.release_replication(replicas[0])
        await trio.testing.wait_all_tasks_blocked()
        after = (await people.get("ada")).content

    assert (1, 2) == (meanwhile, after)
    assert [pytest.approx(4)] == ended


async def test_the_server_times_out_first(autojump_clock: MockClock) -> None:
    """The server's timeout expires before the client's, so that the caller gets DurabilityAmbiguousException."""
    async with open_trio() as (fake, people, _, replicas):
        fake.nodes.hold_replication(replicas[0])
        start = trio.current_time()
        with pytest.raises(errors.DurabilityAmbiguousException) as caught:
            await people.upsert("ada", 2, durability=MAJORITY)

        assert pytest.approx(9.0) == trio.current_time() - start
        assert 0 == caught.value.context.retry_attempts
        assert 1 == (await people.get("ada")).content


async def test_a_lost_response_is_ambiguous(autojump_clock: MockClock) -> None:
    """A durable write without a response times out after ten seconds, ambiguously."""
    async with open_trio() as (fake, people, owner, _):
        fake.nodes[owner].faults.next(Opcode.SET, drop_response())
        start = trio.current_time()
        with pytest.raises(errors.AmbiguousTimeoutException):
            await people.upsert("ada", 2, durability=MAJORITY)

        assert pytest.approx(10) == trio.current_time() - start
        assert 2 == (await people.get("ada")).content


async def test_a_cancelled_durable_write(autojump_clock: MockClock) -> None:
    """``fail_after`` reports a durable write as ambiguous, and the write completes when replication continues."""
    async with open_trio() as (fake, people, _, replicas):
        fake.nodes.hold_replication(replicas[0])
        with pytest.raises(errors.AmbiguousTimeoutException), triclinium.fail_after(1):
            await people.upsert("ada", 2, durability=MAJORITY)
        fake.nodes.release_replication(replicas[0])
        await trio.testing.wait_all_tasks_blocked()

        assert 2 == (await people.get("ada")).content


async def test_other_writes_wait_for_a_durable_write(autojump_clock: MockClock) -> None:
    """While a durable write is pending, other writes to the document wait; all are applied one after the other."""
    async with open_trio(timeouts=triclinium.TimeoutOptions(kv=10.0)) as (fake, people, _, replicas):
        fake.nodes.hold_replication(replicas[0])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: people.upsert("ada", 2, durability=MAJORITY))
            await trio.sleep(1)
            nursery.start_soon(lambda: people.binary.append("ada", b"3", durability=MAJORITY))
            nursery.start_soon(lambda: people.binary.append("ada", b"3"))
            await trio.sleep(1)
            with pytest.raises(errors.DurableWriteInProgressException):
                await people.upsert("ada", 4, retry_strategy=Never())
            fake.nodes.release_replication(replicas[0])

        assert 233 == (await people.get("ada")).content


async def test_a_write_blocked_by_a_durable_write(autojump_clock: MockClock) -> None:
    """A write that times out behind a durable write was not applied, and its error gives the reason."""
    async with open_trio() as (fake, people, _, replicas), trio.open_nursery() as nursery:
        fake.nodes.hold_replication(replicas[0])
        nursery.start_soon(lambda: people.upsert("ada", 2, durability=MAJORITY))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(errors.UnambiguousTimeoutException) as caught:
            await people.upsert("ada", 3)
        fake.nodes.release_replication(replicas[0])

    assert {"KV_SYNC_WRITE_IN_PROGRESS"} == caught.value.context.retry_reasons


async def test_too_few_replicas(autojump_clock: MockClock) -> None:
    """With too few replicas, a durable write fails immediately and writes nothing; after a rebalance it succeeds."""
    async with open_trio() as (fake, people, _, replicas):
        fake.nodes.fail_over(replicas[0])
        start = trio.current_time()
        with pytest.raises(errors.DurabilityImpossibleException, match="nothing was written"):
            await people.upsert("ada", 2, durability=MAJORITY)
        unchanged = (await people.get("ada")).content
        elapsed = trio.current_time() - start
        fake.nodes.rebalance()
        await people.upsert("ada", 2, durability=MAJORITY)

        assert (1, 0) == (unchanged, elapsed)
        assert 2 == (await people.get("ada")).content


async def test_a_node_that_fails_during_a_write(autojump_clock: MockClock) -> None:
    """If a node dies during a durable write, the writer gets an ambiguous error, and readers see the old value."""
    async with open_trio() as (fake, people, owner, replicas):
        fake.nodes.hold_replication(replicas[0])
        async with trio.open_nursery() as nursery:

            async def write() -> None:
                with pytest.raises(triclinium.errors.RequestCanceledException, match="may have been applied"):
                    await people.upsert("ada", 2, durability=MAJORITY)

            nursery.start_soon(write)
            await trio.sleep(1)
            fake.nodes.kill(owner)
            fake.nodes.fail_over(owner)
        aborted = (await people.get("ada")).content
        fake.nodes.release_replication(replicas[0])

        assert (1, 1) == (aborted, (await people.get("ada")).content)


async def test_a_revived_node(autojump_clock: MockClock) -> None:
    """After a node is revived, readers wait until its pending writes are committed, or fail with the reason."""
    async with open_trio() as (fake, people, owner, replicas):
        fake.nodes.hold_replication(replicas[0])
        with trio.move_on_after(1):
            await people.upsert("ada", 2, durability=MAJORITY)
        fake.nodes.kill(owner)
        fake.nodes.revive(owner)
        await people.exists("bob")
        await trio.sleep(1)
        with pytest.raises(errors.DurableWriteReCommitInProgressException):
            await people.get("ada", retry_strategy=Never())
        async with trio.open_nursery() as nursery:

            async def read() -> None:
                assert 2 == (await people.get("ada")).content

            nursery.start_soon(read)
            await trio.sleep(1)
            fake.nodes.release_replication(replicas[0])


@rows("missing", [HelloFeature.SYNC_REPLICATION, HelloFeature.ALT_REQUEST])
async def test_a_server_without_durability(autojump_clock: MockClock, missing: HelloFeature) -> None:
    """If the server does not support durability, the write fails before anything is sent."""
    async with open_trio(features=IMPLEMENTED_FEATURES - {missing}) as (fake, people, owner, _):
        before = len(fake.nodes[owner].command_log)
        with pytest.raises(errors.FeatureNotAvailableException, match=missing.name):
            await people.upsert("ada", 2, durability=MAJORITY)

        assert before == len(fake.nodes[owner].command_log)
