"""Retries in tests: nobody sleeps, and there are no more attempts than wanted."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from triclinium import SimpleRetryStrategy, StandardRetryStrategy, attempts, retry
from triclinium.errors import ArgumentError
from triclinium.testing import retries


class Failing:
    """Always raises, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self) -> None:
        self.calls += 1
        await trio.lowlevel.checkpoint()
        raise OSError


async def calls_of(strategy: SimpleRetryStrategy | StandardRetryStrategy) -> int:
    """Return how often something that always fails is called."""
    failing = Failing()
    with pytest.raises(OSError):  # noqa: PT011 - it has nothing to say
        await retry(failing, strategy=strategy, on=OSError)
    return failing.calls


async def test_nobody_sleeps(mock_clock: MockClock) -> None:
    """On a clock that stands still, all attempts are made; the block once left, one would wait for ever."""
    with retries():
        assert 5 == await calls_of(SimpleRetryStrategy())
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(calls_of, SimpleRetryStrategy())
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()

    assert 0.0 == trio.current_time()


async def test_no_more_attempts_than_wanted(mock_clock: MockClock) -> None:
    """One switches retries off; an inner block replaces what the outer one says."""
    found = []
    with retries(attempts=1):
        found.append(await calls_of(SimpleRetryStrategy()))
        with retries(attempts=3):
            found.append(await calls_of(SimpleRetryStrategy()))
        with retries(attempts=9):
            found.append(await calls_of(SimpleRetryStrategy()))
        found.append(await calls_of(SimpleRetryStrategy()))

    assert [1, 3, 5, 1] == found


async def test_sleeping_all_the_same(autojump_clock: MockClock) -> None:
    """Where only the attempts are bounded."""
    with retries(attempts=2, sleeps=True):
        await calls_of(SimpleRetryStrategy())

    assert trio.current_time() > 0


async def test_tasks_of_the_block(mock_clock: MockClock) -> None:
    """They keep it, and nobody else has it."""
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


async def test_quotas_count(mock_clock: MockClock) -> None:
    """Strategies are asked as ever."""
    strategy = StandardRetryStrategy()
    with retries():
        await calls_of(strategy)

    assert 500 - 2 * 14 == strategy.available_quota()


@pytest.mark.parametrize("number", [0, -1, True, 1.5, "2"])
def test_what_is_no_number_of_attempts(number: object) -> None:
    """There is one at least."""
    with pytest.raises(ArgumentError) as caught, retries(attempts=number):  # type: ignore[arg-type]
        pass

    assert "attempts" == caught.value.parameter
