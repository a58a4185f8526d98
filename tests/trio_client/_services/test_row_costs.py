"""What a long result costs, counted and not timed: calls of our own, and memory at the peak."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.bench.own_calls import own_calls_of_rows
from triclinium.testing import FakeAnswer, open_tcp_cluster

ROWS = 20_000
CALLS_MAX = 1.2
"""A row of 90 bytes makes 1.11 calls, every time: one of its own, and its share of 80 that a piece of 64 KiB costs."""

STATEMENT = "SELECT p.* FROM people p"
LARGE_ROW = "x" * 1_000
GROWTH_MAX = 2**21
"""Bytes by which the peaks of two results may differ, whose sizes differ by ten times as much. Both are some 13 MB: the
node has up to 4 MiB ready that the client has not read, and makes and joins its pieces."""


@pytest.mark.native
def test_calls() -> None:
    """The loop over rows makes one call of our own for each, and few for each piece in which they come."""
    found = own_calls_of_rows(ROWS)

    most = "\n".join(f"{calls:7} {name}" for name, calls in found.of.most_common(40))
    assert found.of.total() / ROWS <= CALLS_MAX, f"{ROWS} rows make {found.of.total()} calls of our own:\n{most}"


async def peak_of(rows: int) -> int:
    """Return the bytes that the client and its node hold at most while a loop goes over the rows of one query."""
    async with open_tcp_cluster() as fake, fake.open_client() as cluster:
        fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[LARGE_ROW], repeat=rows))
        tracemalloc.start()
        try:
            count = 0
            async with cluster.query(STATEMENT) as result:
                async for _ in result:
                    count += 1
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert rows == count
    return peak


async def test_memory() -> None:
    """It does not grow with the result."""
    small, large = await peak_of(ROWS), await peak_of(2 * ROWS)

    assert large - small < GROWTH_MAX
