"""Retries of any function, compared with tenacity and stamina, all on trio.

The cost of awaiting the function directly is subtracted, so that only the cost of retrying remains. Only the
awaited function may execute a checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from unittest.mock import patch

import stamina
import tenacity
import trio

import triclinium
from tests.bench.turns import PROCESSOR, Effort, Row, Stopwatch, Turn, measure

CALLS = 200
FAILURES = 2
"""Failures of each retried call; the next attempt succeeds."""

Work = Callable[[], Awaitable[object]]

STRATEGY = triclinium.StandardRetryStrategy(quota_capacity=10**9)
"""Strategy whose quota the failures here do not exhaust."""
TENACITY = tenacity.AsyncRetrying(
    retry=tenacity.retry_if_exception_type(ConnectionError),
    stop=tenacity.stop_after_attempt(3),
    wait=tenacity.wait_none(),
    reraise=True,
)
STAMINA = stamina.AsyncRetryingCaller(attempts=3, wait_initial=0, wait_max=0, wait_jitter=0).on(ConnectionError)


def called(fn: Work) -> Mapping[str, Work]:
    """Return a call of ``fn`` through each library."""

    async def ours() -> None:
        await triclinium.retry(fn, strategy=STRATEGY, on=ConnectionError)

    async def of_tenacity() -> None:
        await TENACITY(fn)

    async def of_stamina() -> None:
        await STAMINA(fn)

    return {"triclinium": ours, "tenacity": of_tenacity, "stamina": of_stamina}


def decorated(fn: Work) -> Mapping[str, Work]:
    """Return ``fn``, decorated by each library."""

    async def plain() -> None:
        await fn()

    return {
        "triclinium": triclinium.retried(strategy=STRATEGY, on=ConnectionError)(plain),
        "tenacity": TENACITY.wraps(plain),
        "stamina": stamina.retry(on=ConnectionError, attempts=3, wait_initial=0, wait_max=0, wait_jitter=0)(plain),
    }


def looped(fn: Work) -> Mapping[str, Work]:
    """Return a loop around ``fn`` of each library."""

    async def ours() -> None:
        async for attempt in triclinium.attempts(STRATEGY, on=ConnectionError):
            with attempt:
                await fn()

    async def of_tenacity() -> None:
        async for attempt in TENACITY:
            with attempt:
                await fn()

    async def of_stamina() -> None:
        async for attempt in stamina.retry_context(
            on=ConnectionError, attempts=3, wait_initial=0, wait_max=0, wait_jitter=0
        ):
            with attempt:
                await fn()

    return {"triclinium": ours, "tenacity": of_tenacity, "stamina": of_stamina}


FORMS: Mapping[str, Callable[[Work], Mapping[str, Work]]] = {"call": called, "decorator": decorated, "loop": looped}


async def nothing(seconds: float = 0) -> None:
    """Do nothing, without a checkpoint."""


async def checkpoint() -> None:
    """Execute a checkpoint, the minimum of any async function of trio."""
    await trio.lowlevel.checkpoint()


def failing() -> Work:
    """Return a function that repeatedly fails twice and then succeeds."""
    calls = 0

    async def fail() -> None:
        nonlocal calls
        calls += 1
        if calls % (FAILURES + 1):
            raise ConnectionError

    return fail


def awaited(fn: Work) -> Work:
    """Return a function that awaits ``fn`` without retrying, as the baseline for the libraries."""

    async def work() -> None:
        await fn()

    return work


def by_hand(fn: Work) -> Work:
    """Return a minimal loop that only retries."""

    async def work() -> None:
        for _ in range(FAILURES):
            try:
                await fn()
            except ConnectionError:
                await trio.sleep(0)  # noqa: ASYNC115 - the others call it, too, and it is patched
        await fn()

    return work


def rows(effort: Effort) -> Iterator[Row]:
    """Measure."""
    logging.getLogger("stamina").addHandler(logging.NullHandler())
    cases: Mapping[str, tuple[Work, Work, int]] = {
        "retries: a success of a function that does nothing": (nothing, awaited(nothing), 1),
        "retries: a success of a checkpoint": (checkpoint, awaited(checkpoint), 1),
        "retries: a retry, with sleeping left out": (failing(), by_hand(failing()), FAILURES),
    }
    for table, (fn, bare, share) in cases.items():
        for form, works in FORMS.items():
            turns: Mapping[str, Turn] = {
                name: partial(trio.run, beyond, work, bare, effort.of(CALLS), share) for name, work in works(fn).items()
            }
            # Replace the sleep of a retry, which would take longer than the measured work.
            with patch.object(trio, "sleep", nothing):
                yield from measure(table, form, turns, effort.short)


async def beyond(work: Work, bare: Work, calls: int, share: int) -> Mapping[str, float]:
    """Return the cost of ``work`` minus the cost of ``bare``, divided by ``share``."""
    # Measure the subtracted cost before and after the work, because it varies more than the remaining cost.
    off = await cost(bare, calls)
    found = await cost(work, calls)
    off = (off + await cost(bare, calls)) / 2
    return {PROCESSOR: (found - off) / share}


async def cost(work: Work, calls: int) -> float:
    """Return the cost of a call."""
    with Stopwatch() as watch:
        for _ in range(calls):
            await work()
    return watch.processor(calls)[PROCESSOR]
