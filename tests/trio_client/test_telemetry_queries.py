"""Span of a query, which lasts until the client has received or abandoned all rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
import trio
import trio.testing
from trio.testing import MockClock

import triclinium
from tests.trio_client.pair import OPTIONS, open_pair
from tests.trio_client.recorded_telemetry import RecordingMeter, RecordingTracer
from tests.trio_client.telemetry_tables import ALWAYS_OUTER, OF_A_NODE, STATEMENT, open_recorded
from triclinium.errors import InternalServerFailureException
from triclinium.testing import FakeAnswer, open_fake_cluster
from triclinium_core.telemetry.span_names import DISPATCH, ENCODING

PLAIN_STATEMENT = "SELECT * FROM hotels WHERE city = 'Oslo'"


async def test_the_span_of_a_query(autojump_clock: MockClock) -> None:
    """A query's span lasts until its response ends, and has the statement only if the query has parameters."""
    async with open_recorded() as (pair, tracer, meter):
        answer = FakeAnswer(rows=[1, 2, 3], seconds_between_rows=10)
        pair.fake.nodes.script.answer(STATEMENT, answer)
        pair.fake.nodes.script.answer(PLAIN_STATEMENT, answer)
        async with pair.cluster.query(STATEMENT, city="Oslo", client_context_id="mine") as result:
            assert [1, 2, 3] == await result.rows()
        async with pair.cluster.bucket("travel").scope("inventory").query(PLAIN_STATEMENT) as result:
            pass

    of_cluster, of_scope = tracer.roots
    assert [("query", ENCODING, DISPATCH)] * 2 == tracer.shapes()
    assert ALWAYS_OUTER | {"couchbase.service", "db.query.text"} == of_cluster.attributes.keys()
    assert ALWAYS_OUTER | {"couchbase.service", "db.namespace", "couchbase.scope.name"} == of_scope.attributes.keys()
    assert OF_A_NODE | {"couchbase.operation_id"} == of_cluster.children[1].attributes.keys()
    assert "mine" == of_cluster.children[1].attributes["couchbase.operation_id"]
    assert [triclinium.telemetry.StatusCode.OK] * 2 == [of_cluster.status, of_scope.status]
    assert meter.values[0][2] >= 20_000_000


async def test_the_span_ends_with_the_response(autojump_clock: MockClock) -> None:
    """Span and metric of a query end with the complete response, even if the reader is slow or an error follows."""
    async with open_recorded() as (pair, tracer, meter):
        pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2]))
        async with pair.cluster.query(STATEMENT, city="Oslo") as result:
            await trio.sleep(60)
            (query,) = tracer.roots

            assert (1, triclinium.telemetry.StatusCode.OK) == (query.ends, query.status)
            assert [1, 2] == await result.rows()
        broken = {"code": 5000, "msg": "broken"}
        pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2], errors=[broken]))
        async with pair.cluster.query(STATEMENT, city="Oslo") as result:
            await trio.sleep(60)
            with pytest.raises(InternalServerFailureException):
                await result.rows()

    _, failed = tracer.roots
    assert all(microseconds < 1_000_000 for _, _, microseconds in meter.values)
    assert (triclinium.telemetry.StatusCode.ERROR, "InternalServerFailure") == (
        failed.status,
        failed.attributes["error.type"],
    )


async def test_the_metric_ends_with_the_response(autojump_clock: MockClock) -> None:
    """Without a tracer, the duration in the metric also ends with the complete response."""
    meter = RecordingMeter()
    async with open_pair(meter=meter) as pair:
        pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2]))
        async with pair.cluster.query(STATEMENT, city="Oslo") as result:
            await trio.sleep(60)
            assert 2 == len([row async for row in result])

    ((_, _, microseconds),) = meter.values
    assert microseconds < 1_000_000


async def test_a_prepared_query(autojump_clock: MockClock) -> None:
    """The preparation of a statement is a separate attempt in the same outer span."""
    tracer = RecordingTracer()
    options = replace(OPTIONS, enhanced_prepared_statements=False)
    async with open_fake_cluster(options=options) as fake, fake.open_client(tracer=tracer) as cluster:
        fake.nodes.script.answer("SELECT 1", FakeAnswer(rows=[1]))
        async with cluster.query("SELECT 1", adhoc=False) as result:
            assert [1] == await result.rows()

    assert [("query", ENCODING, DISPATCH, ENCODING, DISPATCH)] == tracer.shapes()
    assert [] == tracer.broken_rules


async def test_rows_left_early(autojump_clock: MockClock) -> None:
    """The span and the metric of a query whose block is left before its last row have no error."""
    async with open_recorded() as (pair, tracer, meter):
        pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2], seconds_between_rows=60))
        async with pair.cluster.query(STATEMENT, readonly=True) as result:
            await anext(result)

    (span,), ((_, tags, _),) = tracer.roots, meter.values
    assert (triclinium.telemetry.StatusCode.OK, False) == (span.status, "error.type" in span.attributes)
    assert "error.type" not in tags
