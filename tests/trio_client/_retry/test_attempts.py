"""Cases of ``attempts`` that tests/properties/test_retry.py does not draw."""

# ruff: noqa: PT012 - what raises is a loop, not a simple statement

from __future__ import annotations

import gc
import math

import pytest
import trio
from trio.testing import MockClock

from tests.trio_client.retried_calls import CAPACITY, COST
from tests.trio_client.retry_doubles import AsyncStrategy, Token
from triclinium import StandardRetryStrategy, attempts
from triclinium.errors import ArgumentError
from triclinium.retries import ErrorInfo


@pytest.fixture
def strategy() -> StandardRetryStrategy:
    """Return a strategy with a full quota."""
    return StandardRetryStrategy()


async def test_an_error_is_retried(strategy: StandardRetryStrategy, autojump_clock: MockClock) -> None:
    """After an error ends the block of an attempt, the code below the block runs and another attempt follows."""
    numbers, behind = [], []
    async for attempt in attempts(strategy, on=OSError):
        with attempt:
            numbers.append(attempt.number)
            if attempt.number < 3:
                raise OSError
        behind.append(attempt.number)

    assert ([1, 2, 3], CAPACITY - COST) == (numbers, strategy.available_quota())
    assert 3 == len(behind)


@pytest.mark.parametrize("way", ["return", "break", "continue"])
async def test_leaving_the_block_is_a_success(
    strategy: StandardRetryStrategy, way: str, autojump_clock: MockClock
) -> None:
    """Leaving the block with return, break or continue is a success and returns the tokens of the last retry."""

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


async def test_an_error_overrides_retry(strategy: StandardRetryStrategy) -> None:
    """An exception that is not retried is raised even if the attempt has called ``retry``."""
    with pytest.raises(ValueError, match="mine"):
        async for attempt in attempts(strategy, on=OSError):
            with attempt:
                attempt.retry()
                raise ValueError("mine")


async def test_a_block_that_is_not_entered(strategy: StandardRetryStrategy) -> None:
    """An attempt whose block is not entered raises ArgumentError, because its result is unknown."""
    with pytest.raises(ArgumentError, match="attempt 1: its block was not entered; write `with attempt:`"):
        async for _ in attempts(strategy):
            pass


async def test_a_block_that_is_entered_twice(strategy: StandardRetryStrategy) -> None:
    """Entering an attempt twice raises ArgumentError."""
    with pytest.raises(ArgumentError, match="attempt 1 cannot be entered: it is over"):
        async for attempt in attempts(strategy):
            with attempt:
                pass
            with attempt:
                pass


async def test_a_loop_can_run_once(strategy: StandardRetryStrategy) -> None:
    """A second loop over the same object raises ArgumentError."""
    used = attempts(strategy)
    async for attempt in used:
        with attempt:
            pass

    with pytest.raises(ArgumentError, match="call attempts\\(\\) again"):
        async for _ in used:
            pass


async def test_retry_outside_of_the_block(strategy: StandardRetryStrategy) -> None:
    """``retry`` after the end of its block raises ArgumentError."""
    async for attempt in attempts(strategy):
        with attempt:
            assert "<Attempt 1: its block is open>" == repr(attempt)
        with pytest.raises(ArgumentError, match="^attempt 1: .*retry\\(\\)"):
            attempt.retry()


@pytest.mark.parametrize("info", [True, None, ErrorInfo(is_retry_safe=True, retry_after=math.nan)])
async def test_an_invalid_error_info(strategy: StandardRetryStrategy, info: object) -> None:
    """An invalid argument of ``retry`` raises ArgumentError."""
    with pytest.raises(ArgumentError, match="ErrorInfo"):
        async for attempt in attempts(strategy):
            with attempt:
                attempt.retry(info)  # type: ignore[arg-type]


async def test_a_plain_block_with_an_asynchronous_strategy() -> None:
    """A plain ``with`` block under an asynchronous strategy raises an error that suggests ``async with``."""
    with pytest.raises(ArgumentError, match="write `async with attempt:`"):
        async for attempt in attempts(AsyncStrategy(Token(0.0))):
            with attempt:
                pass


async def test_a_loop_left_after_a_failure(strategy: StandardRetryStrategy, autojump_clock: MockClock) -> None:
    """A loop that was left after a failure returns the tokens for its next attempt when the loop object is freed."""

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
    # Only the collector frees the loop: the error references its frame, which references the loop, which has the error.
    gc.collect()

    assert (CAPACITY, CAPACITY) == (at_once, strategy.available_quota())


async def test_a_loop_collected_in_another_thread(strategy: StandardRetryStrategy, autojump_clock: MockClock) -> None:
    """If another thread collects an abandoned loop, the strategy is not called, because it belongs to one thread."""

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

    assert CAPACITY - COST == strategy.available_quota()


async def test_a_cancelled_wait(strategy: StandardRetryStrategy, autojump_clock: MockClock) -> None:
    """If the delay before an attempt is cancelled, the tokens are returned and the attempt cannot run."""
    loop = attempts(strategy, on=OSError)
    with await anext(loop):
        raise OSError
    with trio.CancelScope() as scope:
        scope.cancel()
        await anext(loop)

    with pytest.raises(ArgumentError, match="^attempt 2: .*abandoned"):
        await anext(loop)
    assert CAPACITY == strategy.available_quota()
