"""Queries with CouchbaseMock, whose plans become stale: it can prepare only ``SELECT mockrow``, which has one row."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

import triclinium
from tests.live.couchbase_mock import CouchbaseMock
from tests.never_retry import NeverRetry
from triclinium import errors

pytestmark = pytest.mark.live

STATEMENT = "SELECT mockrow"
ROW = {"row": "value"}


@pytest.fixture
async def cluster(couchbase_mock: CouchbaseMock, safety_net: None) -> AsyncIterator[triclinium.Cluster]:
    """Yield a client for the test."""
    async with couchbase_mock.open_client() as (opened, _):
        # Open the bucket, because its connections receive the addresses of the services.
        await opened.bucket(couchbase_mock.bucket).wait_until_ready()
        yield opened


class Telling(triclinium.BestEffortRetryStrategy):
    """Best effort strategy that sets an event at its first call."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: trio.Event = trio.Event()

    def retry_after(
        self, request: triclinium.retries.RetryRequest, reason: triclinium.retries.RetryReason, /
    ) -> triclinium.retries.RetryAction:
        """Decide like best effort."""
        self.asked.set()
        return super().retry_after(request, reason)


async def found(cluster: triclinium.Cluster, *, adhoc: bool = True, refused: bool = False) -> list[object]:
    """Return the rows of the statement."""
    strategy = NeverRetry() if refused else None
    async with cluster.query(STATEMENT, adhoc=adhoc, retry_strategy=strategy) as result:
        return await result.rows()


async def test_rows(cluster: triclinium.Cluster) -> None:
    """A query with one row, or without rows, returns its rows and then the metadata."""
    async with cluster.query(STATEMENT) as result:
        rows = [row async for row in result]
        metadata = await result.metadata()
    async with cluster.query("SELECT emptyrow") as result:
        none = await result.rows()

    assert ([ROW], [], triclinium.query.QueryStatus.SUCCESS) == (rows, none, metadata.status)


async def test_error(cluster: triclinium.Cluster) -> None:
    """If a query fails, entering the block raises the error with its code."""
    with pytest.raises(errors.BucketNotFoundException) as caught:
        async with cluster.query("SELECT * FROM nowhere"):
            pytest.fail("the block was entered")

    assert (12003, 500) == (caught.value.context.error_code, caught.value.context.http_status)


async def test_prepared(cluster: triclinium.Cluster) -> None:
    """On a cluster without enhanced prepared statements, each of three prepared queries returns its row."""
    assert [[ROW]] * 3 == [await found(cluster, adhoc=False) for _ in range(3)]


async def test_a_plan_with_a_dropped_index(couchbase_mock: CouchbaseMock, cluster: triclinium.Cluster) -> None:
    """If a plan's index was dropped, the client prepares the statement again, in the next query at the latest."""
    await found(cluster, adhoc=False)
    couchbase_mock.drop_indexes()
    assert [ROW] == await found(cluster, adhoc=False)

    couchbase_mock.drop_indexes()
    with pytest.raises(errors.IndexNotFoundException) as caught:
        await found(cluster, adhoc=False, refused=True)
    assert "QUERY_INDEX_NOT_FOUND" == caught.value.context.refused_reason
    assert [ROW] == await found(cluster, adhoc=False, refused=True)


@pytest.mark.parametrize("code", [4040, 4050, 4070])
async def test_refused_plans(couchbase_mock: CouchbaseMock, cluster: triclinium.Cluster, code: int) -> None:
    """A refused plan is prepared again until it is accepted, and other queries continue in the meantime."""
    couchbase_mock.fail_queries(code, "stale", prepared=True)
    with pytest.raises(errors.PreparedStatementFailureException) as caught:
        await found(cluster, adhoc=False, refused=True)
    assert code == caught.value.context.error_code
    assert [ROW] == await found(cluster)

    rows: list[object] = []
    strategy = Telling()

    async def ask() -> None:
        async with cluster.query(STATEMENT, adhoc=False, retry_strategy=strategy) as result:
            rows.extend(await result.rows())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await strategy.asked.wait()
        couchbase_mock.restore()

    assert [ROW] == rows


@pytest.mark.parametrize(
    ("code", "error"), [(3000, errors.ParsingFailureException), (4040, errors.PreparedStatementFailureException)]
)
async def test_error_states(
    couchbase_mock: CouchbaseMock, cluster: triclinium.Cluster, code: int, error: type[errors.CouchbaseException]
) -> None:
    """A failing service raises its error, and the client works again afterwards."""
    couchbase_mock.fail_queries(code, "as the test wants it", prepared=False)
    with pytest.raises(error, match="as the test wants it"):
        await found(cluster, refused=True)
    with pytest.raises(error):
        await found(cluster, adhoc=False, refused=True)
    couchbase_mock.restore()

    assert [ROW] == await found(cluster)
