"""``attempts``: what tests/properties/test_retry.py does not draw for all forms of retrying."""

# ruff: noqa: PT012 - what raises is a loop, not a simple statement

from __future__ import annotations

import gc
import math

import pytest
import trio
from trio.testing import MockClock, assert_checkpoints, assert_no_checkpoints

import triclinium.testing
from tests.trio_client.retry_doubles import AsyncStrategy, Token
from triclinium import ErrorInfo, StandardRetryStrategy, attempts, attempts_of
from triclinium.errors import ArgumentError

COST = 14
"""What a retry takes from the quota."""
CAPACITY = 500


@pytest.fixture
def strategy() -> StandardRetryStrategy:
    """Return a strategy with a full quota."""
    return StandardRetryStrategy()


async def test_another_one_after_an_error(strategy: StandardRetryStrategy, autojump_clock: MockClock) -> None:
    """The error ends at its block, and what stands behind the block runs as well."""
    numbers, behind = [], []
    async for attempt in attempts(strategy, on=OSError):
        with attempt:
            numbers.append(attempt.number)
            if attempt.number < 3:
                raise OSError
        behind.append(attempt.number)

    assert ([1, 2, 3], CAPACITY - COST) == (numbers, strategy.available_quota())
    assert 3 == len(behind)


async def test_the_last_error_leaves_the_loop(strategy: StandardRetryStrategy, autojump_clock: MockClock) -> None:
    """The same object, with its attempts."""
    errors = [OSError("1"), OSError("2"), OSError("3")]

    with pytest.raises(OSError, match="3") as caught:
        async for attempt in attempts(strategy, on=OSError):
            with attempt:
                raise errors[attempt.number - 1]

    assert errors[2] is caught.value
    assert (None, None) == (caught.value.__cause__, caught.value.__context__)
    assert errors == [record.error for record in attempts_of(caught.value)]


@pytest.mark.parametrize("way", ["return", "break", "continue"])
async def test_leaving_the_block_is_a_success(
    strategy: StandardRetryStrategy, way: str, autojump_clock: MockClock
) -> None:
    """What the last retry took from the quota comes back."""

    async def work() -> int:
        number = 0
        async for attempt in attempts(strategy, on=OSError):
            with attempt:
                number = attempt.number
                if attempt.number < 2:
                    raise OSError
                if way == "return":
                    return number
                if way == "break":
                    break
                continue
        return number

    assert (2, CAPACITY) == (await work(), strategy.available_quota())


async def test_an_error_wins_over_a_result(strategy: StandardRetryStrategy) -> None:
    """Of an attempt that was to be retried and then raised what is not."""
    with pytest.raises(ValueError, match="mine"):
        async for attempt in attempts(strategy, on=OSError):
            with attempt:
                attempt.retry()
                raise ValueError("mine")


async def test_a_success_adds_no_checkpoint(strategy: StandardRetryStrategy) -> None:
    """What is in the block has its own."""
    with assert_no_checkpoints():
        async for attempt in attempts(strategy):
            with attempt:
                pass


async def test_every_retry_is_a_checkpoint(strategy: StandardRetryStrategy) -> None:
    """Also where nobody sleeps."""
    with triclinium.testing.retries(), assert_checkpoints():
        async for attempt in attempts(strategy, on=OSError):
            with attempt:
                if attempt.number == 1:
                    raise OSError


async def test_a_block_that_was_not_entered(strategy: StandardRetryStrategy) -> None:
    """Nobody can know what became of the attempt."""
    with pytest.raises(ArgumentError, match="attempt 1: its block was not entered; write `with attempt:`"):
        async for _ in attempts(strategy):
            pass


async def test_a_block_that_is_entered_twice(strategy: StandardRetryStrategy) -> None:
    """Each attempt is one block."""
    with pytest.raises(ArgumentError, match="attempt 1 cannot be entered: it is over"):
        async for attempt in attempts(strategy):
            with attempt:
                pass
            with attempt:
                pass


async def test_a_loop_is_for_once(strategy: StandardRetryStrategy) -> None:
    """A second one would end before its first block, and nobody would notice."""
    used = attempts(strategy)
    async for attempt in used:
        with attempt:
            pass

    with pytest.raises(ArgumentError, match="call attempts\\(\\) again"):
        async for _ in used:
            pass


async def test_a_result_outside_of_its_block(strategy: StandardRetryStrategy) -> None:
    """It would be too late."""
    async for attempt in attempts(strategy):
        with attempt:
            assert "<Attempt 1: its block is open>" == repr(attempt)
        with pytest.raises(ArgumentError, match="call retry\\(\\) inside of the block"):
            attempt.retry()


@pytest.mark.parametrize("info", [True, None, ErrorInfo(is_retry_safe=True, retry_after=math.nan)])
async def test_what_is_no_judgement(strategy: StandardRetryStrategy, info: object) -> None:
    """It is refused, and the attempt fails with that."""
    with pytest.raises(ArgumentError, match="ErrorInfo"):
        async for attempt in attempts(strategy):
            with attempt:
                attempt.retry(info)  # type: ignore[arg-type]


async def test_a_strategy_that_answers_later(autojump_clock: MockClock) -> None:
    """Its blocks are ``async with``; every answer is awaited."""
    later, numbers = AsyncStrategy(Token(1.0), Token(2.0)), []
    async for attempt in attempts(later, on=OSError):
        async with attempt:
            numbers.append((attempt.number, trio.current_time()))
            if attempt.number == 1:
                raise OSError

    assert [(1, 1.0), (2, 3.0)] == numbers
    assert ["acquire", "refresh", "success"] == later.told


async def test_a_plain_block_for_a_strategy_that_answers_later() -> None:
    """It cannot wait, and says what to write."""
    with pytest.raises(ArgumentError, match="write `async with attempt:`"):
        async for attempt in attempts(AsyncStrategy(Token(0.0))):
            with attempt:
                pass


async def test_a_loop_that_is_left_after_a_failure(strategy: StandardRetryStrategy, autojump_clock: MockClock) -> None:
    """The attempt that would have followed costs nothing, once nobody holds the loop any more."""

    async def by_return() -> None:
        async for attempt in attempts(strategy):
            with attempt:
                attempt.retry()
                return

    async def by_break() -> None:
        async for attempt in attempts(strategy, on=OSError):
            with attempt:
                raise OSError
            break

    await by_return()
    at_once = strategy.available_quota()
    await by_break()
    # The error remembers the frame that it passed, which holds the attempts, which remember the error.
    gc.collect()

    assert (CAPACITY, CAPACITY) == (at_once, strategy.available_quota())


async def test_a_loop_that_goes_in_another_thread(strategy: StandardRetryStrategy, autojump_clock: MockClock) -> None:
    """A strategy is for one thread, so it does not hear of what a collector finds in another one."""

    async def leave() -> None:
        async for attempt in attempts(strategy, on=OSError):
            with attempt:
                raise OSError
            break

    gc.disable()
    try:
        await leave()
        await trio.to_thread.run_sync(gc.collect)
    finally:
        gc.enable()

    assert CAPACITY - 14 == strategy.available_quota()


async def test_a_wait_that_was_given_up(strategy: StandardRetryStrategy, autojump_clock: MockClock) -> None:
    """The attempt was given back then, so it cannot be made."""
    loop = attempts(strategy, on=OSError)
    with await anext(loop):
        raise OSError
    with trio.CancelScope() as scope:
        scope.cancel()
        await anext(loop)

    with pytest.raises(ArgumentError, match="attempt 2: it was given up while it waited to begin"):
        await anext(loop)
    assert CAPACITY == strategy.available_quota()


@pytest.mark.parametrize("form", ["with", "async with"])
async def test_what_ends_a_program_is_not_judged(form: str, strategy: StandardRetryStrategy) -> None:
    """Whatever the caller would say of it: nobody is asked, and nobody is told."""
    judged: list[object] = []

    def yes(error: object) -> bool:
        judged.append(error)
        return True

    with pytest.raises(KeyboardInterrupt):
        async for attempt in attempts(strategy, on=yes, hooks=[judged.append]):
            if form == "with":
                with attempt:
                    raise KeyboardInterrupt
            async with attempt:
                raise KeyboardInterrupt

    assert [] == judged
