"""Retries in tests: by default no delays, and a bounded number of attempts."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from tests.trio_client.retried_calls import CAPACITY, COST, Flaky
from triclinium import SimpleRetryStrategy, StandardRetryStrategy, attempts, retry
from triclinium.errors import ArgumentError
from triclinium.testing import retries


async def calls_of(strategy: SimpleRetryStrategy | StandardRetryStrategy) -> int:
    """Return the number of calls of a function that always fails."""
    failing = Flaky(*[OSError()] * 9)
    with pytest.raises(OSError):  # noqa: PT011 - it has no message
        await retry(failing, strategy=strategy, on=OSError)
    return len(failing.began)


async def test_retries_do_not_sleep(mock_clock: MockClock) -> None:
    """All attempts inside the block run without advancing the clock; after the block, a retry sleeps."""
    with retries():
        assert 5 == await calls_of(SimpleRetryStrategy())
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(calls_of, SimpleRetryStrategy())
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()

    assert 0.0 == trio.current_time()


async def test_attempts_are_bounded(mock_clock: MockClock) -> None:
    """``attempts=1`` turns retries off, and an inner block overrides the outer one."""
    found = []
    with retries(attempts=1):
        found.append(await calls_of(SimpleRetryStrategy()))
        with retries(attempts=3):
            found.append(await calls_of(SimpleRetryStrategy()))
        with retries(attempts=9):
            found.append(await calls_of(SimpleRetryStrategy()))
        found.append(await calls_of(SimpleRetryStrategy()))

    assert [1, 3, 5, 1] == found


async def test_sleeping_can_be_kept(autojump_clock: MockClock) -> None:
    """With ``sleeps=True``, the block bounds the number of attempts but keeps the delays."""
    with retries(attempts=2, sleeps=True):
        await calls_of(SimpleRetryStrategy())

    assert trio.current_time() > 0


async def test_tasks_of_the_block_inherit_it(mock_clock: MockClock) -> None:
    """Tasks that were started in the block keep its settings."""
    numbers: list[int] = []

    async def work() -> None:
        async for attempt in attempts(SimpleRetryStrategy(max_attempts=2)):
            with attempt:
                numbers.append(attempt.number)
                attempt.retry()

    async with trio.open_nursery() as nursery:
        with retries(attempts=1):
            nursery.start_soon(work)

    assert [1] == numbers


async def test_quotas_are_used(mock_clock: MockClock) -> None:
    """Inside the block, strategies still use their quotas."""
    strategy = StandardRetryStrategy()
    with retries():
        await calls_of(strategy)

    assert CAPACITY - 2 * COST == strategy.available_quota()


@pytest.mark.parametrize("number", [0, -1, True, 1.5, "2"])
def test_an_invalid_number_of_attempts(number: object) -> None:
    """A number of attempts below 1, or of another type, raises ArgumentError."""
    with pytest.raises(ArgumentError) as caught, retries(attempts=number):  # type: ignore[arg-type]
        pass

    assert "attempts" == caught.value.parameter
