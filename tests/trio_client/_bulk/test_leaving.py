"""Endings of a bulk block: exceptions, cancellations, sources that raise, and Control-C."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from types import FrameType
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.rows import rows
from tests.trio_client._bulk.blocks import SLOW, MineError, broken, keys, pairs, run, sent, totals
from tests.trio_client.cancelling import Ending, Moments, at_every_moment, end_of
from tests.trio_client.pair import open_pair
from triclinium import errors, fail_after
from triclinium.testing import Opcode, delay, temporary_failure

# -- Exceptions and cancellation.


@rows(
    "error",
    [
        MineError("mine"),
        ExceptionGroup("mine", [ValueError(), ExceptionGroup("inner", [KeyError()])]),
        BaseExceptionGroup("mine", [KeyboardInterrupt()]),
        KeyboardInterrupt(),
        StopAsyncIteration(),
        GeneratorExit(),
    ],
)
async def test_a_body_that_raises(error: BaseException, autojump_clock: MockClock) -> None:
    """The exception leaves as the same object, unchanged; open operations are abandoned, and nothing more is sent."""
    caught: BaseException | None = None
    async with open_pair() as pair:
        await pair.people.exists("ada")
        pair.fake.node.faults.always(Opcode.SET, delay(SLOW))
        wrong: Any = 7
        block = pair.people.upsert_many([("a", 1), ("a", 2), (wrong, 1), *pairs(300)], concurrency=5)
        try:
            async with block:
                await wait_all_tasks_blocked()
                raise error
        except BaseException as leaving:
            caught = leaving
        commands = len(sent(pair))
        await trio.sleep(10)

        assert caught is error
        assert (None, None) == (error.__cause__, error.__context__)
        assert not hasattr(error, "__notes__")
        assert (5, 0, 2, 3) == totals(block)
        assert (wrong, "a") == block.not_applied
        assert ["a", "k0", "k1"] == sorted(block.ambiguous)
        assert 3 == commands == len(sent(pair))
        assert 0 == pair.cluster.statistics().open_operations


async def test_abandoned_operations_are_reported(autojump_clock: MockClock) -> None:
    """The timeout of ``fail_after`` around the block lists the abandoned operations, and so does the block."""
    async with open_pair() as pair:
        await pair.people.exists("ada")
        pair.fake.node.faults.always(Opcode.SET, delay(SLOW))
        block = pair.people.upsert_many(pairs(300), concurrency=4)
        with pytest.raises(errors.AmbiguousTooSlowError) as caught, fail_after(SLOW / 2):
            await run(block, lambda: anext(block))

    assert ["k0", "k1", "k2", "k3"] == sorted(each.key or "" for each in caught.value.operations)
    assert (4, 0) == (caught.value.ambiguous_count, caught.value.unambiguous_count)
    assert ["k0", "k1", "k2", "k3"] == sorted(block.ambiguous)
    assert (4, 0, 0, 4) == totals(block)


async def test_a_cancelled_exit(autojump_clock: MockClock) -> None:
    """Cancelling a scope around the block also ends the wait at its exit and the operations, without BulkFailure."""
    async with open_pair() as pair:
        pair.fake.node.faults.next(Opcode.SET, delay(SLOW), times=2)
        with trio.move_on_after(SLOW / 2) as scope:
            async with pair.people.upsert_many([("bad", object()), *pairs(2)]) as block:
                pass

        assert scope.cancelled_caught
        assert (3, 0, 1, 2) == totals(block)


async def test_a_scope_inside_the_body(autojump_clock: MockClock) -> None:
    """Cancelling a scope inside the body ends only the wait: the operations continue, and no outcome is lost."""
    async with open_pair() as pair:
        pair.fake.node.faults.always(Opcode.SET, delay(SLOW))
        waits = 0
        found: list[str] = []
        async with pair.people.upsert_many(pairs(20), concurrency=4) as block:
            while len(found) < 20:
                with trio.move_on_after(SLOW / 8) as scope:
                    found.append((await anext(block))[0])
                waits += scope.cancelled_caught
            with pytest.raises(StopAsyncIteration):
                await anext(block)

        assert waits > 20
        assert sorted(keys(20)) == sorted(found)
        assert (20, 20, 0, 0) == totals(block)


async def test_a_cancelled_outcome_that_has_arrived(autojump_clock: MockClock) -> None:
    """``__anext__`` in a cancelled scope raises at its checkpoint and leaves finished outcomes for the next call."""
    async with open_pair() as (_, _, people), people.upsert_many(pairs(3)) as block:
        await trio.sleep(SLOW)
        with trio.CancelScope() as scope:
            scope.cancel()
            await anext(block)

        assert scope.cancelled_caught
        assert ["k0", "k1", "k2"] == sorted([key async for key, _ in block])


# -- Sources that raise.


@rows("error", [MineError("mine"), ExceptionGroup("mine", [ValueError()]), trio.ClosedResourceError()])
async def test_a_source_that_raises(error: Exception, autojump_clock: MockClock) -> None:
    """Earlier items are delivered first; then the iteration raises the same exception once, without BulkFailure."""
    async with open_pair() as pair:
        for key, value in pairs(3):
            await pair.people.upsert(key, value)
        block = pair.people.insert_many(broken(5, error))
        caught: list[BaseException] = []
        found: list[str] = []

        async def read() -> None:
            async for key, _ in block:
                found.append(key)  # the iteration raises

        try:
            await run(block, read)
        except BaseException as raised:
            caught.append(raised)

        assert [id(error)] == [id(each) for each in caught]
        assert ["k0", "k1", "k2", "k3", "k4"] == sorted(found)
        assert (5, 2, 3, 0) == totals(block)


async def test_the_exit_raises_the_sources_exception(autojump_clock: MockClock) -> None:
    """If the body does not iterate to the end, the exit raises the source's exception instead of BulkFailure."""

    async def stop() -> None:
        await trio.sleep(SLOW)
        block.stop()

    async def read_one() -> None:
        await anext(block)

    for body in (trio.lowlevel.checkpoint, read_one, stop):
        error = MineError()
        async with open_pair() as (_, _, people):
            block = people.upsert_many(broken(5, error), concurrency=8)
            with pytest.raises(MineError) as caught:
                await run(block, body)

        assert caught.value is error
        assert (5, 5, 0, 0) == totals(block)


async def test_a_caught_source_exception(autojump_clock: MockClock) -> None:
    """After a body has caught the source's exception, the iteration ends, and leaving raises the BulkFailure."""

    async def read_twice() -> None:
        with pytest.raises(MineError):
            [each async for each in block]
        assert [] == [each async for each in block]

    async with open_pair() as (_, _, people):
        block = people.replace_many(broken(2, MineError()))
        with pytest.raises(errors.BulkFailure) as caught:
            await run(block, read_twice)

    assert 2 == caught.value.count


async def test_the_bodys_exception_wins(autojump_clock: MockClock) -> None:
    """The exception of the body leaves the block, even if the source raised one before."""

    async def fail_later() -> None:
        await trio.sleep(SLOW)
        raise KeyError

    async with open_pair() as (_, _, people):
        with pytest.raises(KeyError):
            await run(people.upsert_many(broken(0, MineError())), fail_later)


@rows("error", [KeyboardInterrupt(), SystemExit(3)])
async def test_a_source_that_ends_the_program(error: BaseException, autojump_clock: MockClock) -> None:
    """KeyboardInterrupt and SystemExit of a source leave the block as the same object, and the operations end."""
    caught: BaseException | None = None
    async with open_pair() as pair:
        pair.fake.node.faults.always(Opcode.SET, delay(SLOW))
        block = pair.people.upsert_many(broken(2, error))
        try:
            async with block:
                await trio.sleep_forever()
        except BaseException as raised:
            caught = raised

        assert caught is error
        assert 2 == block.taken == block.not_applied_count + block.ambiguous_count
        assert 0 == pair.cluster.statistics().open_operations


# -- Control-C.


@pytest.mark.native
def test_control_c_at_every_line() -> None:
    """SIGINT at any line of the block's own code is raised unwrapped, and ends the operations and the tasks."""

    def interrupt_at(number: int) -> bool:
        """Run a block with SIGINT at a line of its code. Return whether there is such a line."""
        lines = 0

        def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
            nonlocal lines
            if not frame.f_code.co_filename.endswith("_bulk/outcomes.py"):
                return None
            if event == "line":
                lines += 1
                if lines == number:
                    signal.raise_signal(signal.SIGINT)
            return trace

        async def main() -> None:
            async with open_pair() as pair:
                await pair.people.exists("ada")
                tracing = sys.gettrace()
                sys.settrace(trace)
                try:
                    async with pair.people.upsert_many(pairs(3)) as block:
                        async for _ in block:
                            pass
                finally:
                    sys.settrace(tracing)
                    assert 0 == pair.cluster.statistics().open_operations

        try:
            trio.run(main, clock=MockClock(autojump_threshold=0))
        except KeyboardInterrupt:
            assert lines >= number
        return lines >= number

    number = 1
    while interrupt_at(number):
        number += 1

    assert number > 20


async def test_control_c_in_a_source() -> None:
    """Control-C interrupts a synchronous source that does not yield, and leaves the block as KeyboardInterrupt."""

    def blocking() -> Iterator[tuple[str, int]]:
        yield "a", 1
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the source continued after Control-C")

    async with open_pair() as pair:
        with pytest.raises(KeyboardInterrupt):
            async with pair.people.upsert_many(blocking()):
                await trio.sleep_forever()


# -- Cancellation at every moment.


def test_cancellation_at_every_moment() -> None:
    """Whenever a block is cancelled, each item has one ending, ``fail_after`` reports those in flight, and no more."""

    async def play(moments: Moments) -> tuple[Ending, tuple[int, ...], int, int]:
        async with open_pair() as pair:
            pair.fake.node.faults.next(Opcode.SET, temporary_failure())
            block = pair.people.upsert_many([("a", 1), ("b", 2), ("a", 3)], concurrency=2)

            async def read() -> None:
                async with block:
                    async for _, outcome in block:
                        outcome.result()

            ending = await end_of(read, moments)
            await trio.sleep(10)
            await pair.people.upsert("a", 4)
            ambiguous = sum(each.ambiguous for each in ending.abandoned)
            return ending, totals(block), ambiguous, pair.cluster.statistics().open_operations

    undisturbed, cancelled, moments, _ = at_every_moment(play)

    assert ("NoneType", (3, 3, 0, 0), 0, 0) == (undisturbed[0].outcome, *undisturbed[1:])
    assert moments > 10
    for ending, (taken, succeeded, not_applied, ambiguous), reported, still_open in cancelled:
        assert taken == succeeded + not_applied + ambiguous
        assert (ambiguous, 0) == (reported, still_open)
        assert len(ending.abandoned) <= not_applied + ambiguous
        assert ending.was_caught == (ending.outcome is None)


# -- Asynchronous generators as sources.


async def scoped(ended: list[str]) -> AsyncIterator[tuple[str, int]]:
    """Yield pairs from inside a cancel scope and a nursery, and record the end."""
    with trio.CancelScope():
        async with trio.open_nursery():
            for number in range(50):
                try:
                    yield f"k{number}", number
                except GeneratorExit:
                    ended.append("closed")
                    raise


@rows("is_stopped", [False, True])
async def test_an_unfinished_generator_is_closed(is_stopped: bool, autojump_clock: MockClock) -> None:
    """A generator with a scope and a nursery is closed in its own task if the body leaves the iteration or stops it."""
    ended: list[str] = []
    async with open_pair() as pair:
        async with pair.people.upsert_many(scoped(ended), concurrency=4) as outcomes:
            async for _ in outcomes:
                outcomes.stop()
                if not is_stopped:
                    break

        assert ["closed"] == ended
        assert outcomes.taken == outcomes.succeeded < 50


async def test_a_source_that_waits_for_the_body(autojump_clock: MockClock) -> None:
    """A source that waits until the body has taken one outcome of several goes on: each taken outcome makes room."""
    send, receive = trio.open_memory_channel[str](0)

    async def source() -> AsyncIterator[str]:
        for number in range(4):
            yield f"k{number}"
        async for key in receive:
            yield key

    async with open_pair() as pair, pair.people.exists_many(source(), concurrency=4) as outcomes:
        async for key, outcome in outcomes:
            assert not outcome.result().exists
            if key.startswith("k"):
                await send.send(f"child of {key}")
            if 8 == outcomes.succeeded:
                send.close()

    assert 8 == outcomes.taken
