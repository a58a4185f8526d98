"""Scans of fake nodes, which return every document once despite rebalances and faults, and leave no scan open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
import pytest
import trio
from trio.testing import MockClock, assert_checkpoints

import triclinium
from tests.core.retry.combined.token_book import AwaitedBook, TokenBook
from tests.rows import rows
from tests.trio_client.cancelling import Moments, at_every_moment, end_of
from tests.trio_client.pair import PATIENCE, Never
from triclinium import Cluster, Collection, MutationState, RawBinaryTranscoder, errors, watching_retries
from triclinium.retries import RetryAction, RetryGivenUp, RetryReason, RetryReport, RetryRequest
from triclinium.scans import PrefixScan, RangeScan, SamplingScan, ScanResult, ScanResults, ScanTerm, ScanType
from triclinium.testing import FakeCluster, Opcode, delay, drop_response, open_fake_cluster, temporary_failure
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing import FakeNodeOptions, not_my_vbucket, status
from triclinium_core.testing.fakes.store.documents import vbucket_of

OPTIONS = FakeNodeOptions(
    buckets=("travel",), vbuckets=128, replicas=1, collections={"_default": {"_default": 0}, "inventory": {"people": 8}}
)
STORED = {f"k{number:03}": number for number in range(600)}
ALL = RangeScan()
EARLY = [key for key in (f"k{number}" for number in range(2000)) if vbucket_of(key.encode(), 128) < 2][:8]
"""Keys of documents in the vbuckets that are scanned first."""


class Scanned(NamedTuple):
    """Nodes with documents, and a client."""

    fake: FakeCluster
    cluster: Cluster
    people: Collection

    @property
    def open_scans(self) -> int:
        """Number of open scans on the nodes."""
        return sum(node.open_scans for node in self.fake.nodes)

    def asked(self, *opcodes: Opcode) -> int:
        """Return the number of commands of these kinds that the nodes received."""
        return sum(command.opcode in opcodes for node in self.fake.nodes for command in node.command_log)


@asynccontextmanager
async def open_scanned(stored: int = 600, nodes: int = 3, **arguments: Any) -> AsyncIterator[Scanned]:
    """Yield a cluster with documents, and a client."""
    with trio.fail_after(PATIENCE):
        async with open_fake_cluster(nodes=nodes, options=OPTIONS) as fake, fake.open_client(**arguments) as cluster:
            for key, value in list(STORED.items())[:stored]:
                fake.nodes.documents.put("travel", key, b"%d" % value)
            yield Scanned(fake, cluster, cluster.bucket("travel").default_collection())


async def scanned(people: Collection, scan_type: ScanType = ALL, **options: Any) -> list[ScanResult]:
    """Return the items of a scan."""
    async with people.scan(scan_type, **options) as found:
        return [item async for item in found]


def contents(items: list[ScanResult]) -> dict[str, object]:
    """Return ids and contents, after checking that no id appears twice."""
    found = {item.id: item.content for item in items}
    assert len(found) == len(items)
    return found


async def test_a_scan_returns_each_document_once(autojump_clock: MockClock) -> None:
    """A scan returns every document of its range once, from all nodes, for any concurrency."""
    async with open_scanned(20) as (fake, cluster, people):
        stored = dict(list(STORED.items())[:20])
        for scan_type, concurrency, expected in (
            (ALL, 1, stored),
            (ALL, 200, stored),
            (PrefixScan("nobody"), 5, {}),
            (RangeScan("k010", ScanTerm("k012", exclusive=True)), 5, {"k010": 10, "k011": 11}),
        ):
            assert expected == contents(await scanned(people, scan_type, concurrency=concurrency))

        assert 0 == sum(node.open_scans for node in fake.nodes)
        assert (0, 0) == (cluster.statistics().open_operations, cluster.statistics().in_flight)


async def test_an_item_has_cas_and_expiry(autojump_clock: MockClock) -> None:
    """An item has content, CAS and expiry, or only the id with ``ids_only``."""
    async with open_scanned(0) as (fake, _, people):
        stored = fake.nodes.documents.put("travel", "ada", b"{}", expires_after=60.0)
        (whole,) = await scanned(people, transcoder=RawBinaryTranscoder())
        (only_id,) = await scanned(people, ids_only=True)

        expires_at = stored.expires_at + OPTIONS.wall_seconds_at_zero
        assert ("ada", b"{}", stored.cas, expires_at) == (whole.id, whole.content, whole.cas, whole.expiry)
        assert ("ada", 0, None) == (only_id.id, only_id.cas, only_id.expiry_time)


async def test_samples(autojump_clock: MockClock) -> None:
    """A sample has the requested size; samples with the same seed are equal, and a sample without a seed is random."""
    async with open_scanned() as (_, _, people):
        samples = [contents(await scanned(people, SamplingScan(20, seed))) for seed in (1, 1, None, None)]

        assert [20] * 4 == [len(sample) for sample in samples]
        assert samples[0] == samples[1]
        assert samples[2] != samples[3]


async def test_a_scan_waits_for_required_mutations(autojump_clock: MockClock) -> None:
    """A scan includes the required mutations of tokens or of a state; an unknown vbucket UUID is an error."""
    async with open_scanned(0) as (_, _, people):
        token = (await people.upsert("ada", 1)).mutation_token
        assert token is not None

        for given in ([token], MutationState(token), MutationState(), None):
            assert {"ada": 1} == contents(await scanned(people, consistent_with=given))
        with pytest.raises(errors.CouchbaseException) as caught:
            await scanned(people, consistent_with=MutationState(msgspec.structs.replace(token, vbucket_uuid=7)))
        assert Status.VBUCKET_UUID_NOT_EQUAL == caught.value.context.status


# -- Changes and failures during a scan.


async def test_the_map_changes_during_a_scan(autojump_clock: MockClock) -> None:
    """Every document is found once, even if its vbucket moves during the scan."""
    async with open_scanned() as cluster:
        nodes, found = cluster.fake.nodes, []
        async with cluster.people.scan(ALL, concurrency=8, batch_item_limit=2) as items:
            async for item in items:
                found.append(item)
                match len(found):
                    case 100:
                        nodes.move(nodes.vbuckets_of(0), to=1)
                    case 200:
                        nodes.remove_node(2)
                    case 300:
                        nodes.kill(1)
                        nodes.fail_over(1)
                    case 400:
                        nodes.add_node(2)
                        nodes.rebalance()
                    case _:
                        pass
        await trio.sleep(1.0)

        assert STORED == contents(found)
        assert 0 == cluster.open_scans


async def test_a_fatal_error_ends_the_scan(autojump_clock: MockClock) -> None:
    """A fatal error is raised after the items that arrived before it, and no scan stays open."""
    async with open_scanned(100) as cluster:
        async with cluster.people.scan(ALL, concurrency=3, batch_item_limit=1) as found:
            await anext(found)
            for node in cluster.fake.nodes:
                node.faults.always(Opcode.RANGE_SCAN_CONTINUE, status(Status.NO_ACCESS))
                node.faults.always(Opcode.RANGE_SCAN_CREATE, status(Status.NO_ACCESS))
            with pytest.raises(triclinium.errors.AuthenticationFailureException):
                async for _ in found:
                    pass
            with pytest.raises(triclinium.errors.AuthenticationFailureException), assert_checkpoints():
                await anext(found)
        await trio.sleep(1.0)

        assert 0 == cluster.open_scans


async def test_the_strategy_of_the_call(autojump_clock: MockClock) -> None:
    """The strategy of a scan call decides about retries of the scan's requests."""
    async with open_scanned(100) as (fake, _, people):
        for node in fake.nodes:
            node.faults.next(Opcode.RANGE_SCAN_CREATE, temporary_failure())
        with pytest.raises(errors.TemporaryFailureException):
            await scanned(people, retry_strategy=Never())


class MyError(errors.CouchbaseException):
    """Exception of a user whose constructor counts its calls and changes the message."""

    constructed = 0

    def __init__(self, message: str, context: errors.ErrorContext | None = None) -> None:
        super().__init__(f"mine: {message}", context)
        MyError.constructed += 1
        self.number = MyError.constructed


class RefusesWithMine:
    """Strategy that refuses every retry with a custom exception."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Refuse the retry with the exception."""
        return RetryAction.no_retry(MyError)


async def test_a_strategys_error_is_constructed_once(autojump_clock: MockClock) -> None:
    """If a scan fails with a custom exception, its constructor runs once, and the notes and the cause are kept."""
    refused: list[MyError] = []

    def add_to(report: RetryReport) -> None:
        if isinstance(report, RetryGivenUp) and isinstance(report.error, MyError):
            report.error.add_note("seen")
            report.error.__cause__ = KeyError("why")
            refused.append(report.error)

    before = MyError.constructed
    async with open_scanned(10) as (fake, _, people):
        for node in fake.nodes:
            node.faults.always(Opcode.RANGE_SCAN_CREATE, temporary_failure())
        with watching_retries(add_to), pytest.raises(MyError) as caught:
            await scanned(people, concurrency=1, retry_strategy=RefusesWithMine())

    (error,), raised = refused, caught.value
    assert before + 1 == MyError.constructed == raised.number
    assert (MyError, error.args, str(error)) == (type(raised), raised.args, str(raised))
    assert (error.message, error.context) == (raised.message, raised.context)
    assert ["seen"] == raised.__notes__
    assert raised.__cause__ is error.__cause__
    assert isinstance(raised.__cause__, KeyError)


async def test_a_vbucket_without_a_new_map_is_retried(autojump_clock: MockClock) -> None:
    """If a vbucket has moved and the new map has not arrived, the scan retries until it does."""
    async with open_scanned(50) as cluster, trio.open_nursery() as nursery:
        for node in cluster.fake.nodes:
            node.faults.always(Opcode.RANGE_SCAN_CONTINUE, not_my_vbucket(with_config=False))

        @nursery.start_soon
        async def clear() -> None:
            await trio.sleep(1.0)
            for node in cluster.fake.nodes:
                node.faults.clear()

        assert 50 == len(contents(await scanned(cluster.people, concurrency=4)))
        assert trio.current_time() > 1.0


# -- Pages.


async def test_page_limits_set_the_number_of_requests(autojump_clock: MockClock) -> None:
    """With a limit of one item or one byte per page, each document takes a request; with the limit 0, far fewer do."""
    async with open_scanned(60, nodes=1) as cluster:
        asked = []
        limits: list[dict[str, Any]] = [
            {"batch_item_limit": 1},
            {"batch_byte_limit": 1},
            {"batch_byte_limit": 0},
            {"batch_item_limit": 0},
        ]
        for options in limits:
            before = cluster.asked(Opcode.RANGE_SCAN_CONTINUE)
            assert 60 == len(await scanned(cluster.people, **options))
            asked.append(cluster.asked(Opcode.RANGE_SCAN_CONTINUE) - before)

        assert asked[0] == asked[1] == 60
        assert asked[2] < 60
        assert asked[3] <= asked[2]


@pytest.mark.parametrize("page_size", [2, 50])
async def test_each_scanned_vbucket_prefetches_one_page(autojump_clock: MockClock, page_size: int) -> None:
    """The client prefetches exactly one page for each vbucket being scanned, whether or not a reader waits."""
    async with open_scanned() as cluster:
        async with cluster.people.scan(ALL, concurrency=4, batch_item_limit=page_size) as found:
            for _ in range(2):
                await anext(found)
            await trio.sleep(1.0)

        # The nodes sent the page that the reader took, and one more page for each of four vbuckets.
        assert 4 + 1 == cluster.asked(Opcode.RANGE_SCAN_CONTINUE)


# -- Cancellation, closing and several readers.


async def test_leaving_the_block_cancels_open_scans(autojump_clock: MockClock) -> None:
    """A cancelled block still gets items in a shield; at its end, open scans are cancelled and results are closed."""
    async with open_scanned() as cluster:
        with trio.CancelScope() as scope:
            async with cluster.people.scan(ALL, concurrency=4, batch_item_limit=2) as found:
                for _ in range(2):
                    with assert_checkpoints():
                        await anext(found)
                open_before = cluster.open_scans
                scope.cancel()
                with trio.CancelScope(shield=True):
                    more = [await anext(found) for _ in range(20)]
        await trio.sleep(1.0)

        assert open_before
        assert 20 == len(more)
        assert 0 == cluster.open_scans
        assert (0, 0) == (cluster.cluster.statistics().open_operations, cluster.cluster.statistics().in_flight)
        with pytest.raises(trio.ClosedResourceError):
            await anext(found)


@pytest.mark.parametrize("is_async", [False, True])
async def test_cancelling_a_scan_needs_no_token(
    is_async: bool, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Under a token strategy, the cancellation of a scan is sent immediately, without a token, and is not an orphan."""
    book = TokenBook()
    strategy = AwaitedBook(book, trio.lowlevel.checkpoint) if is_async else book
    async with open_scanned(retry_strategy=strategy) as cluster:
        async with cluster.people.scan(ALL, batch_item_limit=1) as found:
            await anext(found)
            open_before = cluster.open_scans
        await trio.sleep(1.0)

        assert (1, 0) == (open_before, cluster.open_scans)
        assert 1 == cluster.asked(Opcode.RANGE_SCAN_CANCEL)
    assert book.tokens
    assert all(end == "recorded" for end in book.ends), book.ends
    assert [] == [record for record in caplog.records if record.name == "triclinium.orphan"]


@pytest.mark.parametrize(("scan_type", "expected"), [(ALL, 600), (SamplingScan(10), 10)], ids=str)
async def test_several_tasks_read_one_scan(autojump_clock: MockClock, scan_type: ScanType, expected: int) -> None:
    """Each document goes to one task, the number of items is exact, and every task's iteration ends."""
    async with open_scanned() as (_, _, people), people.scan(scan_type, concurrency=4) as found:
        taken: list[str] = []

        async def take() -> None:
            taken.extend([item.id async for item in found])

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(take)

        assert expected == len(taken) == len(set(taken))


async def test_leaving_the_block_wakes_a_waiting_reader(autojump_clock: MockClock) -> None:
    """A task that waits for an item when the block ends raises ClosedResourceError."""
    async with open_scanned(50) as cluster:
        for node in cluster.fake.nodes:
            node.faults.always(Opcode.RANGE_SCAN_CREATE, drop_response())

        async def wait(found: ScanResults) -> None:
            with pytest.raises(trio.ClosedResourceError, match="the block was left"):
                await anext(found)

        async with trio.open_nursery() as nursery, cluster.people.scan(ALL) as found:
            nursery.start_soon(wait, found)
            await trio.sleep(1.0)


async def test_a_complete_sample_cancels_open_scans(autojump_clock: MockClock) -> None:
    """A complete sample immediately cancels its open scans, before the block ends or a node responds."""
    async with open_scanned() as cluster:
        cluster.fake.nodes[0].faults.always(Opcode.RANGE_SCAN_CONTINUE, drop_response())
        async with cluster.people.scan(SamplingScan(3), batch_item_limit=1, concurrency=16) as found:
            for _ in range(3):
                await anext(found)
            await trio.sleep(1.0)

            assert (0, 0) == (cluster.open_scans, cluster.cluster.statistics().open_operations)


async def test_closing_the_cluster_wakes_a_waiting_reader(autojump_clock: MockClock) -> None:
    """A task that waits for an item when the cluster closes raises ClosedResourceError."""

    async def read(people: Collection) -> None:
        with pytest.raises(trio.ClosedResourceError, match="the cluster is closed"):
            await scanned(people)

    async with trio.open_nursery() as nursery, open_scanned(0) as (fake, _, people):
        for node in fake.nodes:
            node.faults.always(Opcode.RANGE_SCAN_CREATE, drop_response())
        nursery.start_soon(read, people)
        await trio.sleep(1.0)


@pytest.mark.parametrize("slow", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_scan_cancelled_at_every_moment(slow: bool) -> None:
    """A cancelled scan returns its items or raises Cancelled; no scan stays open, and the client still works."""

    async def live(moments: Moments) -> tuple[str | None, bool, dict[str, int], int, int]:
        async with open_scanned(0, nodes=2 if slow else 1) as cluster:
            for key in EARLY:
                cluster.fake.nodes.documents.put("travel", key, b"1")
            await cluster.people.exists("somebody")
            await trio.sleep(0.1)
            if slow:
                for node in cluster.fake.nodes:
                    node.faults.next(Opcode.RANGE_SCAN_CREATE, delay(0.5))
                    node.faults.next(Opcode.RANGE_SCAN_CONTINUE, delay(0.5), times=2)

            async def scan() -> list[ScanResult]:
                async with cluster.people.scan(ALL, concurrency=2, batch_item_limit=1) as found:
                    return [await anext(found) for _ in range(4 if slow else 2)]

            ending = await end_of(scan, moments)
            await trio.sleep(5.0)
            assert 0 == cluster.open_scans
            assert 1 == (await cluster.people.get(EARLY[0])).content
            statistics = cluster.cluster.statistics()
            tasks = dict(moments.tasks)
            return ending.outcome, ending.was_caught, tasks, statistics.open_operations, statistics.in_flight

    runs = at_every_moment(live)

    assert ("list", False) == runs.undisturbed[:2]
    assert (None, True) == runs.cancelled[0][:2]
    for run in runs.cancelled:
        assert run[:2] in {("list", False), (None, True)}
        assert runs.undisturbed[2:] == run[2:]
    assert (0, 0) == runs.undisturbed[3:]
    assert runs.moments > 20


# -- Wrong arguments.


@rows(
    ("arguments", "parameter"),
    [
        ({"scan_type": "k"}, "scan_type"),
        ({"ids_only": 1}, "ids_only"),
        ({"consistent_with": 5}, "consistent_with"),
        ({"consistent_with": [5]}, "consistent_with"),
        ({"concurrency": 0}, "concurrency"),
        ({"batch_item_limit": -1}, "batch_item_limit"),
        ({"batch_byte_limit": -1}, "batch_byte_limit"),
        ({"transcoder": "json"}, "transcoder"),
        ({"retry_strategy": "best effort"}, "retry_strategy"),
    ],
)
async def test_wrong_arguments(autojump_clock: MockClock, arguments: dict[str, Any], parameter: str) -> None:
    """A wrong argument is refused before the block begins, and the error names the parameter."""
    async with open_scanned(0) as (_, _, people):
        with pytest.raises(errors.InvalidArgumentException) as caught:
            people.scan(**{"scan_type": ALL, **arguments})

    assert parameter == caught.value.parameter
