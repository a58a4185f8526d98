"""Bursts of operations on a node in a separate process, in which no queued operation may be lost or fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio

from triclinium import Collection, PasswordAuthenticator, TimeoutOptions, open_cluster

SAFETY_NET_SECONDS = 550.0
PATIENT = TimeoutOptions(kv=500.0)
"""Timeouts that are longer than a burst takes on a busy machine. An operation that was lost reaches its timeout."""


async def write_all_at_once(served: Mapping[str, Any], count: int) -> int:
    """Write ``count`` documents, each in its own task, and return the number of written documents."""
    written = 0

    async def write(documents: Collection, number: int) -> None:
        nonlocal written
        await documents.upsert(f"burst-{number}", {"number": number})
        written += 1

    authenticator = PasswordAuthenticator(served["username"], served["password"])
    with trio.fail_after(SAFETY_NET_SECONDS):
        async with open_cluster(served["connection_string"], authenticator, timeouts=PATIENT) as cluster:
            bucket = cluster.bucket(served["bucket"])
            await bucket.wait_until_ready()
            async with trio.open_nursery() as nursery:
                for number in range(count):
                    nursery.start_soon(write, bucket.default_collection(), number)
    return written


@pytest.mark.live
async def test_twenty_thousand_concurrent_writes(served_alone: Mapping[str, Any]) -> None:
    """Twenty thousand concurrent writes, more than a connection accepts, all succeed."""
    assert 20_000 == await write_all_at_once(served_alone, 20_000)


@pytest.mark.long
async def test_a_hundred_thousand_concurrent_writes(served_alone: Mapping[str, Any]) -> None:
    """A hundred thousand concurrent writes, queued for one connection, all succeed."""
    assert 100_000 == await write_all_at_once(served_alone, 100_000)
