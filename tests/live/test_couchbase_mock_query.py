"""Queries against CouchbaseMock, whose plans go stale: ``SELECT mockrow`` has one row, and is all it can prepare."""

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
    """Give the test a client of its own."""
    mock = couchbase_mock
    async with triclinium.open_cluster(
        mock.connection_string, mock.authenticator, timeouts=triclinium.TimeoutOptions(query=60.0)
    ) as opened:
        # It tells only who opens a bucket where its services are.
        await opened.bucket(mock.bucket).wait_until_ready()
        yield opened


class Telling(triclinium.BestEffortRetryStrategy):
    """Permits retries, and tells of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: trio.Event = trio.Event()

    def retry_after(
        self, request: triclinium.RetryRequest, reason: triclinium.RetryReason, /
    ) -> triclinium.RetryAction:
        """Return what best effort does."""
        self.asked.set()
        return super().retry_after(request, reason)


async def found(cluster: triclinium.Cluster, *, adhoc: bool = True, refused: bool = False) -> list[object]:
    """Return the rows of the statement."""
    strategy = NeverRetry() if refused else None
    async with cluster.query(STATEMENT, adhoc=adhoc, retry_strategy=strategy) as result:
        return await result.rows()


async def test_rows(cluster: triclinium.Cluster) -> None:
    """One, or none, and the metadata behind them."""
    async with cluster.query(STATEMENT) as result:
        rows = [row async for row in result]
        metadata = await result.metadata()
    async with cluster.query("SELECT emptyrow") as result:
        none = await result.rows()

    assert ([ROW], [], triclinium.QueryStatus.SUCCESS) == (rows, none, metadata.status)


async def test_error(cluster: triclinium.Cluster) -> None:
    """It raises on entering the block, by its code."""
    with pytest.raises(errors.BucketNotFoundException) as caught:
        async with cluster.query("SELECT * FROM nowhere"):
            pytest.fail("the block was entered")

    assert (12003, 500) == (caught.value.context.error_code, caught.value.context.http_status)


async def test_prepared(cluster: triclinium.Cluster) -> None:
    """A cluster without enhanced prepared statements is asked for the plan first, and executes it with each query."""
    assert [[ROW]] * 3 == [await found(cluster, adhoc=False) for _ in range(3)]


async def test_a_plan_whose_index_is_gone(couchbase_mock: CouchbaseMock, cluster: triclinium.Cluster) -> None:
    """The statement is prepared again, unless retries are refused; then the next query has it prepared."""
    await found(cluster, adhoc=False)
    couchbase_mock.drop_indexes()
    assert [ROW] == await found(cluster, adhoc=False)

    couchbase_mock.drop_indexes()
    with pytest.raises(errors.IndexNotFoundException) as caught:
        await found(cluster, adhoc=False, refused=True)
    assert "QUERY_INDEX_NOT_FOUND" == caught.value.context.refused_reason
    assert [ROW] == await found(cluster, adhoc=False, refused=True)


@pytest.mark.parametrize("code", [4040, 4050, 4070])
async def test_plans_that_are_refused(couchbase_mock: CouchbaseMock, cluster: triclinium.Cluster, code: int) -> None:
    """They are prepared again until they are taken; other queries go on meanwhile."""
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
    """A service in trouble says so, and the client works when the trouble is over."""
    couchbase_mock.fail_queries(code, "as the test wants it", prepared=False)
    with pytest.raises(error, match="as the test wants it"):
        await found(cluster, refused=True)
    with pytest.raises(error):
        await found(cluster, adhoc=False, refused=True)
    couchbase_mock.restore()

    assert [ROW] == await found(cluster)
