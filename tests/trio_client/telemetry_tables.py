"""Tables of SDK-RFC 0067, for tests that check spans and metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from tests.trio_client.pair import Pair, open_pair
from tests.trio_client.recorded_telemetry import RecordedSpan, RecordingMeter, RecordingTracer
from triclinium_core.telemetry.attributes import ATTRIBUTES, Bearer
from triclinium_core.telemetry.span_names import DISPATCH, ENCODING

COMMON = {"db.system.name"}
ALWAYS_OUTER = COMMON | {"db.operation.name", "couchbase.retries"}
OF_A_DOCUMENT = {"couchbase.service", "db.namespace", "couchbase.scope.name", "couchbase.collection.name"}
OF_A_NODE = COMMON | {
    "network.transport",
    "server.address",
    "server.port",
    "network.peer.address",
    "network.peer.port",
}
STATEMENT = "SELECT * FROM hotels WHERE city = $city"


def bearer_of(span: RecordedSpan) -> Bearer:
    """Return the table of the RFC to which a span belongs."""
    return {DISPATCH: Bearer.DISPATCH, ENCODING: Bearer.ENCODING}.get(span.name, Bearer.OUTER)


def assert_as_in_the_tables(tracer: RecordingTracer, meter: RecordingMeter) -> None:
    """Assert that spans and values have all required attributes, no unlisted ones, and the listed types."""
    for span in tracer.spans:
        for key, value in span.attributes.items():
            row = ATTRIBUTES[key]
            assert bearer_of(span) in row.bearers, f"{span.name} has {key}"
            assert isinstance(value, row.kinds), f"{key}={value!r}"
        for key, row in ATTRIBUTES.items():
            if bearer_of(span) in row.bearers and not row.when:
                assert key in span.attributes, f"{span.name} lacks {key}"
    for name, tags, microseconds in meter.values:
        assert "db.client.operation.duration" == name
        assert microseconds >= 0
        assert all(Bearer.METRIC in ATTRIBUTES[key].bearers for key in tags), tags
        required = {key for key, row in ATTRIBUTES.items() if Bearer.METRIC in row.bearers and not row.when}
        assert required <= tags.keys()
    assert [] == tracer.broken_rules


class Recorded(NamedTuple):
    """Node and client, and the recorded telemetry of the client."""

    pair: Pair
    tracer: RecordingTracer
    meter: RecordingMeter


@asynccontextmanager
async def open_recorded(**arguments: Any) -> AsyncIterator[Recorded]:
    """Yield a node and a client, whose telemetry must agree with the tables when both are closed."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter, **arguments) as pair:
        yield Recorded(pair, tracer, meter)
    assert_as_in_the_tables(tracer, meter)
