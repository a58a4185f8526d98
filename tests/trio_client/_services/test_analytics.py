"""Analytics queries: the request that is sent, and the rows and metadata."""

from __future__ import annotations

import json
from typing import Any

import pytest
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client._services.pieces import Pieces
from tests.trio_client.doubles import open_scripted
from tests.trio_client.pair import Never
from triclinium import errors
from triclinium.analytics import AnalyticsMetaData, AnalyticsScanConsistency, AnalyticsStatus
from triclinium.testing import FakeAnswer, Service, open_fake_cluster
from triclinium_core.services.analytics.analytics_request import AnalyticsRequest
from triclinium_core.services.statement.parameters import Parameters, RawOptions
from triclinium_core.services.statement.statement_request import QueryContext

STATEMENT = "SELECT COUNT(*) AS n FROM people WHERE age > $age"
METADATA = AnalyticsMetaData(request_id="r1", client_context_id="c1", status=AnalyticsStatus.SUCCESS)


async def test_rows_and_metadata() -> None:
    """Rows and metadata are returned, and every option is in the request."""
    pieces = Pieces([b'{"n":5}'], METADATA)
    async with (
        open_scripted(pieces.machine) as cluster,
        cluster.analytics_query(
            STATEMENT,
            1,
            age=30,
            row_type=dict[str, int],
            readonly=True,
            priority=True,
            scan_consistency=AnalyticsScanConsistency.REQUEST_PLUS,
            client_context_id="c1",
            raw={"max-warnings": 5},
        ) as result,
    ):
        assert [{"n": 5}] == [row async for row in result]
        assert METADATA == await result.metadata()

    expected = AnalyticsRequest(
        statement=STATEMENT,
        parameters=Parameters([1], {"age": 30}),
        readonly=True,
        priority=True,
        scan_consistency=AnalyticsScanConsistency.REQUEST_PLUS,
        client_context_id="c1",
        raw=RawOptions({"max-warnings": 5}),
    )
    assert [expected] == pieces.requests


async def test_a_service(autojump_clock: MockClock) -> None:
    """The query is sent to the analytics port of a node, and its response is parsed as that of analytics."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        answer = FakeAnswer(rows=[{"n": 5}], metadata={"metrics": {"processedObjects": 7, "elapsedTime": "2ms"}})
        fake.nodes.script.answer(STATEMENT, answer, service=Service.ANALYTICS)
        async with cluster.analytics_query(STATEMENT, age=30, readonly=True) as result:
            rows = await result.rows()
            metadata = await result.metadata()
        (asked,) = fake.node.request_log

    assert [{"n": 5}] == rows
    assert (AnalyticsStatus.SUCCESS, 7, 0.002) == (
        metadata.status,
        metadata.metrics.processed_objects,
        metadata.metrics.elapsed_time,
    )
    assert (Service.ANALYTICS, 30) == (asked.service, json.loads(asked.body)["$age"])


async def test_a_scope() -> None:
    """A scope adds its query context to each request, and leaves the client context id to the machine."""
    pieces = Pieces(METADATA, METADATA)
    async with open_scripted(pieces.machine) as cluster:
        scope = cluster.bucket("travel").scope("inventory")
        for _ in range(2):
            async with scope.analytics_query("SELECT 1") as result:
                assert [] == await result.rows()

    first, second = pieces.requests
    assert isinstance(first, AnalyticsRequest)
    assert QueryContext("travel", "inventory") == first.query_context
    assert ("", "") == (first.client_context_id, second.client_context_id)


@rows(
    ("options", "error"),
    [
        ({"prioritiy": True}, errors.InvalidArgumentException),
        ({"priority": -1}, errors.InvalidArgumentException),
        ({"age": object()}, errors.EncodingFailureException),
        ({"age": 1, "named_parameters": {"age": 2}}, errors.InvalidArgumentException),
    ],
)
async def test_wrong_arguments(options: dict[str, Any], error: type[Exception]) -> None:
    """Wrong arguments raise at the call, and nothing is submitted."""
    pieces = Pieces()
    async with open_scripted(pieces.machine) as cluster:
        with pytest.raises(error):
            cluster.analytics_query(STATEMENT, **options)
    assert [] == pieces.requests


async def test_the_strategy_of_the_call(autojump_clock: MockClock) -> None:
    """If the strategy of the call refuses, a busy service fails the query."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        busy = FakeAnswer(errors=[{"code": 23000, "msg": "busy"}])
        fake.nodes.script.answer(STATEMENT, busy, service=Service.ANALYTICS)
        with pytest.raises(errors.TemporaryFailureException):
            async with cluster.analytics_query(STATEMENT, age=30, retry_strategy=Never()):
                pass

        assert 1 == len(list(fake.node.request_log))
