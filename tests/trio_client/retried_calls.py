"""Callable that fails and then succeeds, and two ways to retry a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from triclinium import attempts, retry

COST = 14
"""Units that a retry takes from the quota."""
CAPACITY = 500

Way = Callable[..., Awaitable[Any]]


class Flaky:
    """Callable that records its times, takes ``seconds``, and raises its errors in turn, then returns its arguments."""

    def __init__(self, *errors: BaseException, seconds: float = 0.0) -> None:
        self.errors = list(errors)
        self.began: list[float] = []
        self._seconds = seconds

    async def __call__(self, *args: object, **kwargs: object) -> tuple[object, ...]:
        """Return the arguments, or raise."""
        self.began.append(trio.current_time())
        await trio.sleep(self._seconds)
        if self.errors:
            raise self.errors.pop(0)
        return (*args, *kwargs.items())


async def by_call(function: Callable[[], Awaitable[object]], strategy: Any, **options: Any) -> object:
    """Call a function through ``retry``."""
    return await retry(function, strategy=strategy, **options)


async def by_loop(function: Callable[[], Awaitable[object]], strategy: Any, **options: Any) -> object:
    """Call a function in a loop over ``attempts``, until the loop ends by itself."""
    result: object = None
    async for attempt in attempts(strategy, **options):
        async with attempt:
            result = await function()
    return result


WAYS = (by_call, by_loop)
