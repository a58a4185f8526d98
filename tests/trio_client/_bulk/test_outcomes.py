"""Bulk blocks: what a body may do inside them, and how they end normally."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.rows import rows
from tests.trio_client._bulk.blocks import SLOW, keys, pairs, run, sent, stored, totals
from tests.trio_client.pair import open_pair
from triclinium import Collection, errors
from triclinium._bulk.outcomes import OUTCOMES_AT_ONCE
from triclinium.testing import Opcode, delay, open_fake_cluster

# -- Entering and using the block.


async def test_the_call_returns_the_block_itself(autojump_clock: MockClock) -> None:
    """The object of the call, of ``async with`` and of an exit stack is the same, and so are its iterators."""
    async with open_pair() as (_, _, people):
        called = people.upsert_many(pairs(1))
        async with called as entered:
            assert called is entered
            assert called is aiter(entered)
        async with AsyncExitStack() as stack:
            second = people.upsert_many(pairs(2))
            assert second is await stack.enter_async_context(second)

    assert (1, 1, 0, 0) == totals(called)
    assert (2, 2, 0, 0) == totals(second)
    assert "<BulkWrites taken=2 succeeded=2>" == repr(second)


async def test_a_block_is_entered_once(autojump_clock: MockClock) -> None:
    """A second entry raises RuntimeError, and no further operation is sent."""
    async with open_pair() as pair:
        block = pair.people.upsert_many(pairs(1))
        async with block:
            pass
        with pytest.raises(RuntimeError, match="entered"):
            async with block:
                pass

        assert [b"k0"] == sent(pair)


async def test_iterating_outside_of_the_block(autojump_clock: MockClock) -> None:
    """Iteration before the block raises RuntimeError, and after it trio.ClosedResourceError."""
    async with open_pair() as (_, _, people):
        block = people.upsert_many(pairs(3))
        with pytest.raises(RuntimeError, match="async with"):
            await anext(block)
        async with block:
            await anext(block)
        with pytest.raises(trio.ClosedResourceError):
            await anext(block)

    assert (3, 3, 0, 0) == totals(block)


async def test_a_cancelled_entry_takes_nothing(autojump_clock: MockClock) -> None:
    """If the entry is cancelled, the source is not read, and the counts can be read."""
    items = iter(pairs(3))
    async with open_pair() as pair:
        block = pair.people.upsert_many(items)
        with trio.CancelScope() as scope:
            scope.cancel()
            async with block:
                raise AssertionError

        assert scope.cancelled_caught
        assert (0, 0, 0, 0) == totals(block)
        assert ((), ()) == (block.not_applied, block.ambiguous)
        assert pairs(3) == list(items)
        assert [] == sent(pair)


# -- Leaving without an exception, and ``stop``.


async def test_a_body_that_never_iterates(autojump_clock: MockClock) -> None:
    """If the body never iterates, all items are written before the block ends."""
    async with open_pair() as pair:
        async with pair.people.upsert_many(pairs(300), concurrency=7) as block:
            pass

        assert 300 == len(stored(pair))
        assert (300, 300, 0, 0) == totals(block)


async def test_a_body_that_breaks(autojump_clock: MockClock) -> None:
    """After ``break``, operations in flight complete, and the rest of the source is not taken."""
    items = iter(pairs(300))
    async with open_pair() as pair:
        async with pair.people.upsert_many(items, concurrency=7) as block:
            async for _ in block:
                break
        rest = list(items)

        assert 1 <= block.taken <= 8
        assert (block.taken, block.taken, 0, 0) == totals(block)
        assert pairs(300)[block.taken :] == rest
        assert keys(block.taken) == stored(pair)


async def test_a_body_whose_wait_was_cancelled(autojump_clock: MockClock) -> None:
    """A body whose wait for an outcome was cancelled has iterated, so the rest of the source is not taken."""
    async with open_pair() as pair:
        pair.fake.node.faults.always(Opcode.SET, delay(SLOW))
        async with pair.people.upsert_many(pairs(300), concurrency=7) as block:
            with trio.move_on_after(SLOW / 2):
                await anext(block)

        assert (7, 7, 0, 0) == totals(block)


async def test_stop_ends_reading(autojump_clock: MockClock) -> None:
    """After ``stop``, the iteration gives the outcomes of items in flight, also of those that wait for their key."""
    async with open_pair() as pair:
        pair.fake.node.faults.always(Opcode.SET, delay(SLOW))
        items = [("a", 1), ("a", 2), ("a", 3), *pairs(300)]
        async with pair.people.upsert_many(items, concurrency=5) as block:
            await wait_all_tasks_blocked()
            block.stop()
            found = [key async for key, _ in block]

        assert ["a", "a", "a", "k0", "k1"] == sorted(found)
        assert (5, 5, 0, 0) == totals(block)


@rows("taken", range(1, 13))
@rows("leaves", [False, True])
@rows("is_async", [False, True])
async def test_stop_takes_no_further_items(taken: int, leaves: bool, is_async: bool, autojump_clock: MockClock) -> None:
    """However many outcomes the body took before ``stop``, or before it left the loop, no further item is taken."""

    async def source() -> AsyncIterator[tuple[str, int]]:
        for each in pairs(300):
            yield each

    async with open_pair() as (_, _, people):
        block = people.upsert_many(source() if is_async else pairs(300), concurrency=4)
        async with block:
            for _ in range(taken):
                await anext(block)
            at_stop = block.taken
            if not leaves:
                block.stop()
                assert at_stop - taken == len([each async for each in block])

    assert (at_stop, at_stop, 0, 0) == totals(block)


async def test_stop_before_the_block(autojump_clock: MockClock) -> None:
    """If ``stop`` is called before the block is entered, no item is taken."""
    async with open_pair() as (_, _, people):
        block = people.upsert_many(pairs(3))
        block.stop()
        async with block:
            assert [] == [key async for key, _ in block]

    assert (0, 0, 0, 0) == totals(block)


async def test_stop_ends_a_waiting_source(autojump_clock: MockClock) -> None:
    """A source that waits is cancelled by ``stop``, and may clean up; leaving without ``stop`` waits for the source."""
    cleaned: list[float] = []

    async def source() -> AsyncIterator[tuple[str, int]]:
        try:
            yield "ada", 1
            await trio.sleep(50)
            yield "bob", 2
        finally:
            cleaned.append(trio.current_time() - began)

    async with open_pair() as (_, _, people):
        began = trio.current_time()
        async with people.upsert_many(source()) as stopped:
            await anext(stopped)
            stopped.stop()
        async with people.upsert_many(source()) as ended:
            pass

    assert ((1, 1, 0, 0), (2, 2, 0, 0)) == (totals(stopped), totals(ended))
    assert cleaned[0] < SLOW
    assert cleaned[1] >= 50


async def test_a_shielded_source_is_left(autojump_clock: MockClock) -> None:
    """A source whose waits are shielded gives at most one more item after the end of reading."""

    async def source() -> AsyncGenerator[tuple[str, int], None]:
        for key, value in pairs(300):
            with trio.CancelScope(shield=True):
                await trio.sleep(SLOW)
            yield key, value

    async with open_pair() as pair, aclosing(source()) as first, aclosing(source()) as second:
        async with pair.people.upsert_many(first) as block:
            await anext(block)
            block.stop()
        with trio.move_on_after(2.5 * SLOW) as scope:
            async with pair.people.upsert_many(second) as cancelled:
                await trio.sleep_forever()

        assert (2, 2, 0, 0) == totals(block)
        assert scope.cancelled_caught
        assert 3 == cancelled.taken


# -- Used and unused failures.


class Used:
    """Ways in which a body may use the outcome of a failure."""

    @staticmethod
    def result(outcome: Any) -> None:
        """Call ``result``."""
        with pytest.raises(errors.DocumentExistsException):
            outcome.result()

    @staticmethod
    def error(outcome: Any) -> None:
        """Read ``error``."""
        assert isinstance(outcome.error, errors.DocumentExistsException)


@rows("use", [Used.result, Used.error])
async def test_used_failures_are_not_raised(use: Callable[[Any], None], autojump_clock: MockClock) -> None:
    """The block raises nothing if the body called ``result`` or read ``error`` of each failure."""
    async with open_pair() as (_, _, people):
        await people.upsert("k1", 1)
        block = people.insert_many([("k1", number) for number in range(3)])
        async with block:
            async for _, outcome in block:
                use(outcome)

    assert (3, 0, 3, 0) == totals(block)


async def test_unused_failures_are_raised(autojump_clock: MockClock) -> None:
    """Leaving raises one BulkFailure with its count, the first 20 failures in order, and the counts by class."""
    async with open_pair() as (_, _, people):
        await people.insert("k5", 0)
        items = [*pairs(10), *((key, object()) for key in keys(40)[10:])]
        with pytest.raises(errors.BulkFailure) as caught:
            async with people.insert_many(items) as block:
                pass

    failure = caught.value
    assert not isinstance(failure, BaseExceptionGroup)
    assert isinstance(failure, errors.CouchbaseException)
    assert 31 == failure.count
    for part in ("31 of 40", "EncodingFailureException 30", "DocumentExistsException 1", "k10", "errors='collect'"):
        assert part in str(failure)
    assert {errors.EncodingFailureException: 30, errors.DocumentExistsException: 1} == failure.counts
    assert [f"k{number}" for number in range(10, 30)] == [key for key, _ in failure.failures]
    assert (40, 9, 31, 0) == totals(block)


async def test_only_unused_failures_are_raised(autojump_clock: MockClock) -> None:
    """BulkFailure has the failures that were not used, even if many earlier ones were used late, and twice."""

    async def use_most() -> None:
        outcomes = [each async for each in block]
        for _ in range(2):
            assert all(outcome.error is not None for key, outcome in outcomes if key not in ("k41", "k50"))

    async with open_pair() as (_, _, people):
        block = people.get_many(keys(60))
        with pytest.raises(errors.BulkFailure) as caught:
            await run(block, use_most)

    assert 2 == caught.value.count
    assert ["k41", "k50"] == sorted(key for key, _ in caught.value.failures)
    assert {errors.DocumentNotFoundException: 2} == caught.value.counts
    assert (60, 60, 0) == (block.taken, block.failed_count, block.succeeded)


async def test_collected_failures_are_not_raised(autojump_clock: MockClock) -> None:
    """With ``errors="collect"``, leaving raises nothing; the lists have the keys."""
    async with open_pair() as (_, _, people):
        async with people.get_many(["ada", "bob"], errors="collect") as block:
            pass
        async with people.remove_many(["ada", "bob"], errors="collect") as removed:
            await anext(removed)

    assert ("ada", "bob") == block.failed
    assert ("ada", "bob") == removed.not_applied
    assert () == removed.ambiguous


# -- Checkpoints, several tasks, and a closed cluster.


class Passes(trio.abc.Instrument):
    """Counter of the steps of one task."""

    def __init__(self) -> None:
        self.count = 0
        self.task = trio.lowlevel.current_task()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count a step of the task."""
        self.count += task is self.task


async def test_checkpoints_between_outcomes(autojump_clock: MockClock) -> None:
    """The first of many finished outcomes is a checkpoint, and at least every 64th; so is the end."""
    async with open_pair() as (_, _, people), people.upsert_many(pairs(300), concurrency=300) as block:
        await trio.sleep(SLOW)
        passes = Passes()
        trio.lowlevel.add_instrument(passes)
        taken = [passes.count async for _ in block]
        at_end = passes.count
        trio.lowlevel.remove_instrument(passes)

    longest = max(taken.count(step) for step in set(taken))
    assert taken[0] >= 1
    assert longest <= OUTCOMES_AT_ONCE == 64
    assert at_end > taken[-1]


async def test_several_tasks_share_the_outcomes(autojump_clock: MockClock) -> None:
    """Each outcome goes to one of the tasks that iterate, and all of them end."""
    found: list[str] = []

    async def work() -> None:
        async for key, _ in block:
            found.append(key)
            await trio.lowlevel.checkpoint()

    async with (
        open_pair() as (_, _, people),
        people.upsert_many(pairs(100), concurrency=3) as block,
        trio.open_nursery() as nursery,
    ):
        for _ in range(8):
            nursery.start_soon(work)

    assert sorted(keys(100)) == sorted(found)


async def test_a_task_that_still_waits(autojump_clock: MockClock) -> None:
    """A task that waits for an outcome when the block is left gets trio.ClosedResourceError."""

    async def wait() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await anext(block)
        ended.set()

    ended = trio.Event()
    async with open_pair() as pair, trio.open_nursery() as nursery:
        pair.fake.node.faults.always(Opcode.SET, delay(SLOW))
        async with pair.people.upsert_many(pairs(1)) as block:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
        await ended.wait()

    assert (1, 1, 0, 0) == totals(block)


async def test_the_cluster_is_closed_meanwhile(autojump_clock: MockClock) -> None:
    """After the cluster is closed, open operations and later items fail with trio.ClosedResourceError."""

    async def keep_open(*, task_status: trio.TaskStatus[Collection]) -> None:
        async with fake.open_client() as cluster:
            people = cluster.bucket("default").default_collection()
            await people.exists("ada")
            task_status.started(people)
            await closing.wait()
        closed.set()

    closing, closed = trio.Event(), trio.Event()
    async with open_fake_cluster() as fake, trio.open_nursery() as nursery:
        people = await nursery.start(keep_open)
        fake.node.faults.always(Opcode.SET, delay(SLOW))
        async with people.upsert_many(pairs(7), concurrency=4, errors="collect") as block:
            await wait_all_tasks_blocked()
            closing.set()
            await closed.wait()
            kinds = [type(outcome.error) async for _, outcome in block]

    assert [trio.ClosedResourceError] * 7 == kinds
    assert (7, 0, 3, 4) == totals(block)
