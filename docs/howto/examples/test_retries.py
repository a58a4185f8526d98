"""A test of code that retries, without delays and with only the attempts that the test needs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

import triclinium
from triclinium import SimpleRetryStrategy
from triclinium.testing import retries


@pytest.fixture(autouse=True)
def _without_waiting() -> Iterator[None]:
    with retries(attempts=2):
        yield


def test_gives_up_early() -> None:
    """If the test limits every strategy to two attempts, a call that always fails is made twice."""
    calls = 0

    async def fail() -> None:
        nonlocal calls
        calls += 1
        raise ConnectionError

    async def work() -> None:
        await triclinium.retry(fail, strategy=SimpleRetryStrategy(max_attempts=10), on=ConnectionError)

    with pytest.raises(ConnectionError):
        trio.run(work)

    assert calls == 2
