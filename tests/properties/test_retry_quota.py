"""Exact quota of a strategy that many tasks share while they are cancelled at random.

If an attempt failed or was cancelled, its cost stays taken from the quota; if it succeeded, its cost is restored. If an
attempt was not made, it costs nothing: its delay was cut short, its loop ended, or its call of an asynchronous strategy
was cancelled.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import MockClock

from triclinium import StandardRetryStrategy, attempts, retry
from triclinium_core.retry.smithy import AnyRetryStrategy, RetryToken, as_async

TASKS = 10
COST = 14
MISSING = 5_000
"""Units missing from the quota at the start; so many are missing that its capacity never cuts off a restored unit."""


@pytest.fixture(autouse=True, scope="module")
def _young_objects_alone() -> Iterator[None]:
    """Freeze the objects of earlier tests, so that garbage collection in the examples does not traverse them."""
    gc.freeze()
    yield
    gc.unfreeze()


class Slow:
    """Asynchronous strategy that sleeps in each call. Only ``abandon`` is synchronous."""

    def __init__(self, strategy: StandardRetryStrategy) -> None:
        self._strategy = strategy
        self.abandon = strategy.abandon

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Sleep, then return a token."""
        await trio.sleep(0.1)
        return self._strategy.acquire_initial_retry_token(token_scope=token_scope)

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Sleep, then return the next token."""
        await trio.sleep(0.1)
        return self._strategy.refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)

    async def record_success(self, *, token: RetryToken) -> None:
        """Record the success, then sleep."""
        self._strategy.record_success(token=token)
        await trio.sleep(0.1)


class QuotaLedger:
    """Ledger of the units that the attempts of all tasks have taken from the quota and restored."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.balance = 0

    async def call(self, strategy: AnyRetryStrategy) -> None:
        """Make a call that fails up to three times, and that may be cancelled or leave its loop."""
        chance, left, number = self.chance, self.chance.randrange(4), 0

        async def attempt_it() -> None:
            nonlocal left, number
            number += 1
            self.balance -= COST if number > 1 else 0
            await trio.sleep(chance.random())
            left -= 1
            if left >= 0:
                raise ConnectionError
            self.balance += COST if number > 1 else 1

        limit = chance.choice([4 * chance.random(), 1000.0])
        with trio.move_on_after(limit), trio.CancelScope(shield=chance.random() < 0.2):
            try:
                if chance.random() < 0.5:
                    await retry(attempt_it, strategy=strategy, on=ConnectionError)
                    return
                async for attempt in attempts(strategy, on=ConnectionError):
                    async with attempt:
                        await attempt_it()
                    await trio.sleep(0.1 * chance.random())
                    if chance.random() < 0.1:
                        break
            except ConnectionError:
                return


@given(seed=st.integers(0, 2**32 - 1))
def test_the_quota_is_balanced(seed: int) -> None:
    """The quota equals the balance of all attempts, for each kind of strategy and any endings of the attempts."""
    chance = random.Random(seed)
    quota, ledger = StandardRetryStrategy(rng=chance, quota_capacity=10 * MISSING), QuotaLedger(chance)
    while quota.available_quota() > quota.quota_capacity - MISSING:
        _take(quota)
    before = quota.available_quota()
    shapes: list[AnyRetryStrategy] = [quota, as_async(quota), Slow(quota)]
    strategy = chance.choice(shapes)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(TASKS):
                nursery.start_soon(ledger.call, strategy)
        # Errors keep loops that ended early in reference cycles, so these loops are freed only by the collector.
        gc.collect()

    trio.run(main, clock=MockClock(autojump_threshold=0))

    assert before + ledger.balance == quota.available_quota()


def _take(quota: StandardRetryStrategy) -> None:
    error = ConnectionError()
    error.is_retry_safe = True  # type: ignore[attr-defined]
    quota.refresh_retry_token_for_retry(token_to_renew=quota.acquire_initial_retry_token(), error=error)
