"""Delivery of outcomes to waiters, and the count of old tokens that end during an alarm."""

from __future__ import annotations

from collections.abc import Iterable

import trio

from triclinium._driver.waiters import CollectedWaiter, Waiter, Waiters
from triclinium_core.contract.neutral import Token


class Driver:
    """Driver whose operations may always be cancelled."""

    def abandon(self, _: Waiter[str, int]) -> trio.lowlevel.Abort:
        """Let trio cancel the task."""
        return trio.lowlevel.Abort.SUCCEEDED


def waiter(token: int) -> Waiter[str, int]:
    """Return a waiter of this task."""
    return Waiter(Token(token), "a question", trio.lowlevel.current_task(), Driver())


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


async def test_old_tokens_are_counted_during_alarms() -> None:
    """A token that ends during an alarm is counted once if it is older than the alarm, up to the newest one."""
    waiters: Waiters[str, int] = Waiters()
    counts = []

    def settle(*tokens: int) -> None:
        for token in tokens:
            waiters.settle(Token(token), token, None)
            counts.append(waiters.old_settled)

    waiters.open = {Token(token): waiter(token) for token in (1, 2, 3, 4)}
    settle(1)
    waiters.begin_alarm()
    waiters.open[Token(5)] = waiter(5)
    settle(5, 2, 2, 4)
    waiters.end_alarm()
    settle(3)
    waiters.begin_alarm()
    waiters.open[Token(6)] = waiter(6)
    settle(6)

    assert [0, 0, 1, 1, 2, 2, 2] == counts
