"""Cost of a long result, counted and not timed: function calls of triclinium, and peak memory."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.bench.own_calls import own_calls_of_rows
from triclinium.testing import FakeAnswer, open_tcp_cluster

ROWS = 20_000
CALLS_MAX = 1.2
"""Maximum number of calls per row. A row of 90 bytes makes 1.11 calls: its own, and a share of 80 calls per 64 KiB."""

STATEMENT = "SELECT p.* FROM people p"
LARGE_ROW = "x" * 1_000
GROWTH_MAX = 2**21
"""Maximum difference in bytes between the peaks of two results.

The sizes of the results differ by ten times as much. Both peaks are about 13 MB: the node prepares up to 4 MiB that the
client has not read, and builds and joins its pieces.
"""


@pytest.mark.native
def test_calls_per_row() -> None:
    """The loop over rows makes about one call per row, and few calls per received piece."""
    found = own_calls_of_rows(ROWS)

    most = "\n".join(f"{calls:7} {name}" for name, calls in found.of.most_common(40))
    assert found.of.total() / ROWS <= CALLS_MAX, f"{ROWS} rows make {found.of.total()} calls of our own:\n{most}"


async def peak_of(rows: int) -> int:
    """Return the peak memory in bytes of client and node while a loop reads the rows of one query."""
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


async def test_peak_memory_does_not_grow() -> None:
    """Peak memory does not grow with the number of rows."""
    small, large = await peak_of(ROWS), await peak_of(2 * ROWS)

    assert large - small < GROWTH_MAX
