"""A custom retry strategy, tested as a table and used by a client."""

from __future__ import annotations

import random

import trio
import trio.testing

from triclinium import BestEffortRetryStrategy, client_context, retrying
from triclinium.errors import TemporaryFailureException
from triclinium.retries import RetryAction, RetryReason, RetryRequest, RetryStrategy
from triclinium.testing import open_fake_cluster, temporary_failure
from triclinium_core.retry.couchbase.tables.service import Service


class Budgeted:
    """A strategy that permits a fixed number of retries and leaves their delays to another strategy."""

    def __init__(self, inner: RetryStrategy, tokens: int) -> None:
        self._inner = inner
        self.tokens = tokens

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return the action of the inner strategy, or no retry if no token is left."""
        if self.tokens < 1:
            return RetryAction.no_retry()
        self.tokens -= 1
        return self._inner.retry_after(request, reason)


class NoRetryForRobots(BestEffortRetryStrategy):
    """Best-effort strategy that does not retry requests from robots."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return no retry for a request from a robot, otherwise the action of the best-effort strategy."""
        if request.client_context.get("is_robot"):
            return RetryAction.no_retry()
        return super().retry_after(request, reason)


def ask(strategy: RetryStrategy, *, retry_attempts: int) -> float | None:
    """Return the delay before a write to a busy node is retried; None for no retry."""
    request = RetryRequest(
        service=Service.KV,
        operation="upsert",
        idempotent=False,
        rng=random.Random(0),
        retry_attempts=retry_attempts,
        remaining=2.5,
    )
    return strategy.retry_after(request, RetryReason.KV_TEMPORARY_FAILURE).delay


def as_a_table() -> None:
    """Check that two tokens permit exactly two retries, without a cluster, event loop or clock."""
    budgeted = Budgeted(BestEffortRetryStrategy(), tokens=2)
    delays = [ask(budgeted, retry_attempts=attempt) for attempt in range(4)]
    print("delays:", delays)

    assert delays == [0.001, 0.002, None, None]


async def in_a_client() -> None:
    """Use each strategy in a block, against a node that is always busy."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        people = cluster.bucket("default").default_collection()
        fake.node.faults.always(None, temporary_failure())

        with retrying(Budgeted(BestEffortRetryStrategy(), tokens=2)):
            try:
                await people.upsert("ada", {"born": 1815})
            except TemporaryFailureException as error:
                print("budgeted:", error)

        with retrying(NoRetryForRobots()), client_context(is_robot=True):
            try:
                await people.get("ada")
            except TemporaryFailureException as error:
                print("robot:", error)


if __name__ == "__main__":
    as_a_table()
    trio.run(in_a_client, clock=trio.testing.MockClock(autojump_threshold=0))
