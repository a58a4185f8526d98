"""Task that waits for its operation."""

from __future__ import annotations

import gc
import weakref

import pytest
import trio

from triclinium._driver.waiters import Waiter
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
