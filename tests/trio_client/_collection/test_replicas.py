"""Replica reads from a cluster of fake nodes, which return the first copy that arrives or all copies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
import trio
from trio.testing import MockClock

import triclinium
from tests.rows import rows
from tests.trio_client.cancelling import Moments, at_every_moment, end_of
from tests.trio_client.pair import PATIENCE, Never
from triclinium.errors import DocumentUnretrievableException, UnambiguousTimeoutException
from triclinium.testing import FakeCluster, Opcode, delay, drop_response, open_fake_cluster, temporary_failure
from triclinium_core.testing import FakeNodeOptions

OPTIONS = FakeNodeOptions(
    buckets=("travel",), vbuckets=128, replicas=2, collections={"_default": {"_default": 0}, "inventory": {"people": 8}}
)


class Copies(NamedTuple):
    """Three nodes with one copy each, a client, and the index of the node for each copy."""

    fake: FakeCluster
    cluster: triclinium.Cluster
    people: triclinium.Collection
    holders: tuple[int, ...]

    def strike(self, copy: int, fault: Any) -> None:
        """Inject a fault into the next read of one copy."""
        self.fake.nodes[self.holders[copy]].faults.next(Opcode.GET_REPLICA if copy else Opcode.GET, fault)

    def reads(self) -> int:
        """Return the number of reads that the nodes received."""
        return sum(
            command.opcode in (Opcode.GET, Opcode.GET_REPLICA)
            for node in self.fake.nodes
            for command in node.command_log
        )


@asynccontextmanager
async def open_copies(*, value: bytes | None = b"1") -> AsyncIterator[Copies]:
    """Yield a cluster with one document, or without any for ``value=None``, and a client that has the cluster map."""
    with trio.fail_after(PATIENCE):
        async with (
            open_fake_cluster(nodes=3, options=OPTIONS) as fake,
            fake.open_client(retry_strategy=triclinium.BestEffortRetryStrategy()) as cluster,
        ):
            people = cluster.bucket("travel").default_collection()
            await people.exists("somebody")
            await trio.sleep(0.1)
            if value is not None:
                fake.nodes.documents.put("travel", "ada", value)
            owner = fake.nodes.owner_of("ada")
            assert owner is not None
            yield Copies(fake, cluster, people, (owner, *fake.nodes.replica_holders_of("ada")))


async def test_a_transcoder_and_a_collection(autojump_clock: MockClock) -> None:
    """Replica reads work with a transcoder and in a named collection."""
    async with open_copies() as (_, cluster, _, _):
        people = cluster.bucket("travel").scope("inventory").collection("people")
        await people.upsert("ada", "text", transcoder=triclinium.RawStringTranscoder())
        found = await people.get_any_replica("ada", transcoder=triclinium.RawStringTranscoder())
        async with people.get_all_replicas("ada", transcoder=triclinium.RawStringTranscoder()) as copies:
            contents = [copy.content async for copy in copies]

    assert "text" == found.content
    assert ["text"] * 3 == contents


async def test_copies_are_returned_in_order_of_arrival(autojump_clock: MockClock) -> None:
    """Each copy is returned as soon as it arrives."""
    async with open_copies() as copies:
        copies.strike(0, delay(0.3))
        copies.strike(1, delay(0.1))
        copies.strike(2, delay(0.2))
        async with copies.people.get_all_replicas("ada") as found:
            times = [(trio.current_time(), copy.is_replica) async for copy in found]

        assert [True, True, False] == [is_replica for _, is_replica in times]
        assert [0.1, 0.1] == [pytest.approx(after - before) for (before, _), (after, _) in pairwise(times)]


@rows("fast", [0, 1])
async def test_any_copy(autojump_clock: MockClock, fast: int) -> None:
    """``get_any_replica`` returns the first copy as soon as it arrives, and cancels the other reads."""
    async with open_copies() as copies:
        began = trio.current_time()
        for copy in {0, 1, 2} - {fast}:
            copies.strike(copy, drop_response())
        found = await copies.people.get_any_replica("ada")

        assert (1, fast != 0) == (found.content, found.is_replica)
        assert isinstance(found, triclinium.GetReplicaResult)
        assert began == trio.current_time()
        assert 0 == copies.cluster.statistics().open_operations


@rows(("replicas", "missing"), [(0, 0), (1, 0), (3, 2)])
async def test_replicas_that_are_missing(replicas: int, missing: int, autojump_clock: MockClock) -> None:
    """A configured replica without a node is an error; a replica above the configured number is not missing."""
    async with (
        open_fake_cluster(nodes=2, options=replace(OPTIONS, replicas=replicas)) as fake,
        fake.open_client() as cluster,
    ):
        people = cluster.bucket("travel").default_collection()
        fake.nodes.documents.put("travel", "ada", b"1")
        async with people.get_all_replicas("ada") as copies:
            whole = [copy.is_replica async for copy in copies]

    assert [False, True][: replicas + 1] == sorted(whole)
    assert [DocumentUnretrievableException] * missing == [type(error) for error in copies.errors]


async def test_the_strategy_decides_about_each_read(autojump_clock: MockClock) -> None:
    """The strategy of a call or a block decides about each read of a replica."""
    async with open_copies() as copies:
        for copy in range(3):
            copies.strike(copy, temporary_failure())
        async with copies.people.get_all_replicas("ada", retry_strategy=Never()) as found:
            with pytest.raises(triclinium.errors.TemporaryFailureException):
                await anext(found)
        for copy in range(3):
            copies.strike(copy, temporary_failure())
        with triclinium.retrying(Never()), pytest.raises(triclinium.errors.TemporaryFailureException):
            await copies.people.get_any_replica("ada")


async def test_lookup_in_reads_all_copies(autojump_clock: MockClock) -> None:
    """``lookup_in`` from replicas returns each copy's parts as its node has them, even if a replica is behind."""
    ask = [triclinium.subdocument.LookupInSpec.get("a")]
    async with open_copies(value=b'{"a":1}') as (fake, _, people, holders):
        with pytest.raises(DocumentUnretrievableException, match="lookup_in 'nobody'"):
            await people.lookup_in_any_replica("nobody", ask, retry_strategy=Never())
        fake.nodes.hold_replication(holders[1])
        await people.upsert("ada", {"a": 2})
        async with people.lookup_in_all_replicas("ada", ask) as copies:
            found = [(copy.content_as(int, 0), copy.is_replica) async for copy in copies]
        fake.nodes.kill(holders[0])
        await trio.sleep(0.1)
        any_copy = await people.lookup_in_any_replica("ada", ask)

        assert [(1, True), (2, False), (2, True)] == sorted(found)
        assert isinstance(any_copy, triclinium.subdocument.LookupInReplicaResult)
        assert any_copy.is_replica


async def test_a_timeout_lists_the_cancelled_reads(autojump_clock: MockClock) -> None:
    """``fail_after`` lists the reads that it cancels, and none is ambiguous."""
    async with open_copies() as copies:
        for copy in range(3):
            copies.strike(copy, drop_response())
        with pytest.raises(UnambiguousTimeoutException) as caught, triclinium.fail_after(0.5):
            await copies.people.get_any_replica("ada")

        assert isinstance(caught.value, triclinium.errors.UnambiguousTooSlowError)
        assert ["get", "get_replica", "get_replica"] == sorted(each.operation for each in caught.value.operations)


@rows("call", ["get_any_replica", "lookup_in_any_replica"])
async def test_cancelled_copies_are_not_in_timeouts(autojump_clock: MockClock, call: str) -> None:
    """The reads that a successful call cancels are not among the operations of a later timeout."""
    async with open_copies(value=b'{"a":1}') as copies:
        copies.strike(1, drop_response())
        copies.strike(2, drop_response())
        with pytest.raises(UnambiguousTimeoutException) as caught, triclinium.fail_after(0.5):  # noqa: PT012
            if call == "get_any_replica":
                await copies.people.get_any_replica("ada")
            else:
                await copies.people.lookup_in_any_replica("ada", [triclinium.subdocument.LookupInSpec.get("a")])
            await trio.sleep_forever()

        assert isinstance(caught.value, triclinium.errors.UnambiguousTooSlowError)
        assert () == caught.value.operations
        assert (0, 0) == (caught.value.ambiguous_count, caught.value.unambiguous_count)


class Aftermath(NamedTuple):
    """State of the client and the nodes after the call, when no request is pending."""

    tasks: dict[str, int]
    open_operations: int
    in_flight: int


@pytest.mark.parametrize("slow", [(), pytest.param((0,), marks=pytest.mark.long), (0, 1, 2)], ids=str)
def test_get_any_replica_cancelled_at_every_moment(slow: tuple[int, ...]) -> None:
    """A cancelled read returns its result or raises Cancelled; no request stays open, and the client still works."""

    async def live(moments: Moments) -> tuple[str | None, bool, int, Aftermath]:
        async with open_copies() as copies:
            for copy in slow:
                copies.strike(copy, delay(0.5))
            before = copies.reads()
            ending = await end_of(partial(copies.people.get_any_replica, "ada"), moments)
            await trio.sleep(5.0)
            sent = copies.reads() - before
            assert 1 == (await copies.people.get("ada")).content
            statistics = copies.cluster.statistics()
            left = Aftermath(dict(moments.tasks), statistics.open_operations, statistics.in_flight)
            assert not ending.is_ambiguous
            return ending.outcome, ending.was_caught, sent, left

    runs = at_every_moment(live)

    assert ("GetReplicaResult", False) == runs.undisturbed[:2]
    assert (None, True, 0) == runs.cancelled[0][:3]
    for outcome, was_caught, _, left in runs.cancelled:
        assert (outcome, was_caught) in {("GetReplicaResult", False), (None, True)}
        assert runs.undisturbed[3] == left
    assert (0, 0) == runs.undisturbed[3][1:]
    assert runs.moments > 5
