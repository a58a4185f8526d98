"""Task that waits for its operation."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable

import pytest
import trio

from triclinium._driver.waiters import CollectedWaiter, Waiter, Waiters
from triclinium_core.contract.neutral import Token


class Driver:
    """Driver whose operations may always be cancelled."""

    def abandon(self, _: Waiter[str, int]) -> trio.lowlevel.Abort:
        """Let trio cancel the task."""
        return trio.lowlevel.Abort.SUCCEEDED


def waiter() -> Waiter[str, int]:
    """Return the waiter of this task."""
    return Waiter(Token(1), "a question", trio.lowlevel.current_task(), Driver())


async def test_an_error_is_raised_and_leaves_no_cycle() -> None:
    """A raised error is freed with its last reference, without garbage collection."""

    class Mine(Exception):
        pass

    waiting = waiter()
    waiting.error = Mine()
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(Mine) as caught:
            waiting.unwrap()
        error = weakref.ref(caught.value)
        del caught
        is_gone = error() is None
    finally:
        gc.enable()

    assert is_gone


class Collector:
    """Collector that keeps the tokens of each call."""

    def __init__(self) -> None:
        self.open: dict[str, CollectedWaiter[str, int]] = {}
        self.calls: list[list[int]] = []

    def refuse(self, item: tuple[object, ...], error: Exception) -> None:
        """Fail, because the driver refuses items before they wait."""
        raise AssertionError

    def collect(self, waiters: Iterable[CollectedWaiter[str, int]]) -> None:
        """Keep the tokens."""
        self.calls.append([waiter.token for waiter in waiters])


async def test_outcomes_are_delivered_once() -> None:
    """Ended submissions reach their collectors at the next delivery: one call for consecutive ones of a collector."""
    waiters: Waiters[str, int] = Waiters()
    first, second = Collector(), Collector()
    task, driver = trio.lowlevel.current_task(), Driver()
    for number, collector in enumerate((first, first, second, second, first)):
        waiting = CollectedWaiter(Token(number), "a question", task, driver, collector=collector)
        waiters.open[waiting.token] = waiting
    for token in (0, 1, 3, 4):
        assert waiters.settle(Token(token), token, None) is not None
    assert waiters.settle(Token(1), 1, None) is None
    assert ([], []) == (first.calls, second.calls)
    waiters.deliver()
    waiters.deliver()

    assert ([[0, 1], [4]], [[3]]) == (first.calls, second.calls)
    assert [2] == list(waiters.open)
