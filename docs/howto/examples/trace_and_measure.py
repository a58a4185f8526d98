"""Trace and metric of a write that is retried, with OpenTelemetry."""

from __future__ import annotations

from collections.abc import Sequence

import trio
import trio.testing
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from triclinium.opentelemetry import OpenTelemetryMeter, OpenTelemetryRequestTracer
from triclinium.testing import Opcode, open_fake_cluster, temporary_failure

# A real program exports to a collector; all other code is the same.
exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
traces, metrics = TracerProvider(), MeterProvider([reader])
traces.add_span_processor(SimpleSpanProcessor(exporter))


async def main() -> None:
    """Write a document to a node that is busy once."""
    tracer, meter = OpenTelemetryRequestTracer(traces), OpenTelemetryMeter(metrics)
    async with open_fake_cluster() as fake, fake.open_client(tracer=tracer, meter=meter) as cluster:
        people = cluster.bucket("default").default_collection()
        fake.node.faults.next(Opcode.SET, temporary_failure())
        with traces.get_tracer("shop").start_as_current_span("checkout"):
            await people.upsert("ada", {"born": 1815})


def show(spans: Sequence[ReadableSpan], parent: int | None = None, depth: int = 0) -> None:
    """Print the descendants of a span, with their attributes and events."""
    for span in sorted(spans, key=lambda span: span.start_time or 0):
        if (span.parent.span_id if span.parent is not None else None) != parent:
            continue
        reported = {key: value for key, value in (span.attributes or {}).items() if key not in CHANGING}
        print("    " * depth + span.name, reported)
        for event in span.events:
            print("    " * depth + f"  {event.name}:", dict(event.attributes or {}))
        show(spans, span.context.span_id, depth + 1)


CHANGING = {"couchbase.local_id", "network.peer.address", "network.peer.port"}
"""Attributes with different values in every run; the output omits them."""


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    show(exporter.get_finished_spans())
    data = reader.get_metrics_data()
    assert data is not None
    metric = data.resource_metrics[0].scope_metrics[0].metrics[0]
    print(f"\n{metric.name} in {metric.unit}")
    for point in metric.data.data_points:
        print(f"  {dict(point.attributes or {})}")
