"""Fake node and a real client, in memory and in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple, Unpack

import trio

from triclinium import Cluster, Collection
from triclinium.retries import RetryAction, RetryReason, RetryRequest
from triclinium.testing import ClientArguments, FakeCluster, open_fake_cluster
from triclinium_core.testing import FakeNodeOptions

OPTIONS = FakeNodeOptions(
    buckets=("travel", "hotels"),
    vbuckets=128,
    collections={"_default": {"_default": 0}, "inventory": {"people": 8}},
)
PATIENCE = 3600.0
"""Virtual seconds after which a test counts as hanging."""


class Pair(NamedTuple):
    """Node, a client, and the collection that most tests use."""

    fake: FakeCluster
    cluster: Cluster
    people: Collection


@asynccontextmanager
async def open_pair(**arguments: Unpack[ClientArguments]) -> AsyncIterator[Pair]:
    """Yield a node and a client."""
    with trio.fail_after(PATIENCE):
        async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client(**arguments) as cluster:
            yield Pair(fake, cluster, cluster.bucket("travel").default_collection())


class Never:
    """Strategy that refuses every retry."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Refuse the retry."""
        return RetryAction.no_retry()


class Waits:
    """Strategy that retries every request after the same delay."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked: list[tuple[str, RetryReason, int]] = []
        """Operation, reason and number of earlier retries of each request."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return a retry."""
        self.asked.append((request.operation, reason, request.retry_attempts))
        return RetryAction.after(self.seconds)


class Thinks(Waits):
    """Asynchronous variant, which sleeps before it decides."""

    def __init__(self, thinking: float, seconds: float = 0.0) -> None:
        super().__init__(seconds)
        self._thinking = thinking

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:  # type: ignore[override]
        """Sleep, and then return a retry."""
        action = super().retry_after(request, reason)
        await trio.sleep(self._thinking)
        return action
