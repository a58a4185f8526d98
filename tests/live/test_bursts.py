"""Everything at once, against a node in a process of its own: what waits is not lost, and nobody is blamed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio

from triclinium import Collection, PasswordAuthenticator, TimeoutOptions, open_cluster

SAFETY_NET_SECONDS = 180.0


async def write_all_at_once(served: Mapping[str, Any], count: int, timeouts: TimeoutOptions) -> int:
    """Write so many documents, each from a task of its own, and return how many were written; the first error ends it."""
    written = 0

    async def write(documents: Collection, number: int) -> None:
        nonlocal written
        await documents.upsert(f"burst-{number}", {"number": number})
        written += 1

    authenticator = PasswordAuthenticator(served["username"], served["password"])
    with trio.fail_after(SAFETY_NET_SECONDS):
        async with open_cluster(served["connection_string"], authenticator, timeouts=timeouts) as cluster:
            bucket = cluster.bucket(served["bucket"])
            await bucket.wait_until_ready()
            async with trio.open_nursery() as nursery:
                for number in range(count):
                    nursery.start_soon(write, bucket.default_collection(), number)
    return written


@pytest.mark.live
async def test_twenty_thousand_at_once(served_alone: Mapping[str, Any]) -> None:
    """More than a connection takes, and time enough for a busy machine."""
    assert 20_000 == await write_all_at_once(served_alone, 20_000, TimeoutOptions(kv=20.0))


@pytest.mark.long
async def test_a_hundred_thousand_at_once(served_alone: Mapping[str, Any]) -> None:
    """Many times what a connection takes, in a queue, within a minute."""
    assert 100_000 == await write_all_at_once(served_alone, 100_000, TimeoutOptions(kv=60.0))
