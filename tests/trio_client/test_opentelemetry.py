"""OpenTelemetry adapters, whose spans and metrics the OpenTelemetry SDK records."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import copy_context
from importlib.metadata import version
from typing import cast

import pytest
import trio
from opentelemetry import baggage, trace
from opentelemetry.context import Context, attach
from opentelemetry.sdk.metrics import AlwaysOnExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import Histogram, HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision, Sampler, SamplingResult
from opentelemetry.util.types import Attributes
from trio.testing import MockClock

import triclinium
from tests.trio_client.pair import Never, Pair, open_pair
from tests.trio_client.recorded_telemetry import RecordedSpan
from triclinium import errors
from triclinium.opentelemetry import OpenTelemetryMeter, OpenTelemetryRequestSpan, OpenTelemetryRequestTracer
from triclinium.testing import ClientArguments, FakeAnswer, Opcode, delay, drop_response, hang_up, temporary_failure
from triclinium_core.telemetry.metrics import OPERATION_DURATION, Meter
from triclinium_core.telemetry.tracing import AttributeValue, RequestSpan, RequestTracer, StatusCode


class Spans:
    """Tracer provider, and the spans that it exported."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = OpenTelemetryRequestTracer(self.provider)

    @property
    def ended(self) -> tuple[ReadableSpan, ...]:
        """Finished spans in the order in which they ended."""
        return self._exporter.get_finished_spans()


def points_of(reader: InMemoryMetricReader, name: str) -> tuple[str, list[HistogramDataPoint]]:
    """Return the unit of a metric, and its data points."""
    data = reader.get_metrics_data()
    assert data is not None
    (metric,) = (
        metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
    )
    assert isinstance(metric.data, Histogram)
    return metric.unit or "", list(metric.data.data_points)


def test_a_span_is_of_kind_client() -> None:
    """A span has kind CLIENT, the instrumentation name of RFC 0067, and the version of the package."""
    spans = Spans()
    spans.tracer.request_span("get").end()

    (span,) = spans.ended
    scope = span.instrumentation_scope
    assert scope is not None
    assert ("get", trace.SpanKind.CLIENT) == (span.name, span.kind)
    assert ("com.couchbase.client.python", version("triclinium")) == (scope.name, scope.version)


def test_attributes_events_and_status_are_exported() -> None:
    """Attributes of all types, events with their attributes and times, and the status are exported."""
    spans = Spans()
    span: RequestSpan = spans.tracer.request_span("get")
    attributes: dict[str, AttributeValue] = {"a": "text", "b": 1, "c": 0.5, "d": True}
    for key, value in attributes.items():
        span.set_attribute(key, value)
    span.add_event("retry", {"delay": 0.25}, 1_700_000_000.5)
    span.add_event("plain")
    span.set_status(StatusCode.OK)
    span.end()

    (ended,) = spans.ended
    retry, plain = ended.events
    assert attributes == dict(ended.attributes or {})
    assert ("retry", {"delay": 0.25}, 1_700_000_000_500_000_000) == (
        retry.name,
        dict(retry.attributes or {}),
        retry.timestamp,
    )
    assert ("plain", {}) == (plain.name, dict(plain.attributes or {}))
    assert ended.start_time is not None
    assert plain.timestamp >= ended.start_time
    assert trace.StatusCode.OK == ended.status.status_code


@pytest.mark.parametrize("code", StatusCode)
def test_each_status_code_is_mapped(code: StatusCode) -> None:
    """Each status code is mapped to OpenTelemetry's code of the same name."""
    spans = Spans()
    span = spans.tracer.request_span("get")
    span.set_status(code)
    span.end()

    assert code.name == spans.ended[0].status.status_code.name


def test_the_current_span_is_the_parent() -> None:
    """The parent of a span is the current span by default; without a current span, there is no parent."""
    spans = Spans()
    with spans.provider.get_tracer("program").start_as_current_span("request"):
        spans.tracer.request_span("get").end()
    spans.tracer.request_span("alone").end()

    get, request, alone = spans.ended
    assert get.parent is not None
    assert request.context.span_id == get.parent.span_id
    assert alone.parent is None


def test_an_explicit_parent_overrides_the_current_span() -> None:
    """An explicit parent overrides the current span; it may be a span of the tracer, or a wrapped span."""
    spans = Spans()
    program = spans.provider.get_tracer("program")
    outer = program.start_span("outer")
    with program.start_as_current_span("current"):
        inner = spans.tracer.request_span("get", OpenTelemetryRequestSpan(outer))
        spans.tracer.request_span("dispatch_to_server", inner).end()
    inner.end()

    dispatch, _, get = spans.ended
    assert dispatch.parent is not None
    assert get.parent is not None
    assert outer.get_span_context().span_id == get.parent.span_id
    assert get.context.span_id == dispatch.parent.span_id


class Baggages(SpanProcessor):
    """Span processor that records the baggage of each new span."""

    def __init__(self) -> None:
        self.found: list[tuple[str, object]] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Record the baggage."""
        self.found.append((span.name, baggage.get_baggage("tenant", parent_context)))


def test_a_child_has_the_baggage_of_its_parent() -> None:
    """A child has the baggage of its parent's context, even if another caller's task starts it."""
    spans, baggages = Spans(), Baggages()
    spans.provider.add_span_processor(baggages)
    outer = [copy_context().run(begun_with_baggage, spans.tracer, "get", tenant, None) for tenant in ("ours", "theirs")]
    copy_context().run(begun_with_baggage, spans.tracer, "dispatch_to_server", "theirs", outer[0])

    assert [("get", "ours"), ("get", "theirs"), ("dispatch_to_server", "ours")] == baggages.found


def begun_with_baggage(
    tracer: OpenTelemetryRequestTracer, name: str, tenant: str, parent: RequestSpan | None
) -> RequestSpan:
    """Start a span in a context with baggage."""
    attach(baggage.set_baggage("tenant", tenant))
    return tracer.request_span(name, parent)


def test_a_foreign_span_is_not_a_parent() -> None:
    """A span of another type as the parent raises an error that names the right type."""
    spans = Spans()

    with pytest.raises(errors.InvalidArgumentException, match="OpenTelemetryRequestSpan"):
        spans.tracer.request_span("get", RecordedSpan("outer", None))


class SeenAttributes(Sampler):
    """Sampler that records the attributes of each new span."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, object]]] = []

    def should_sample(  # noqa: PLR0917  # OpenTelemetry's signature
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: trace.SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[trace.Link] | None = None,
        trace_state: trace.TraceState | None = None,
    ) -> SamplingResult:
        """Sample every span."""
        self.seen.append((name, dict(attributes or {})))
        return SamplingResult(Decision.RECORD_AND_SAMPLE, attributes)

    def get_description(self) -> str:
        """Return the name of the class."""
        return type(self).__name__


LATE = {"couchbase.retries", "error.type", "couchbase.server_duration"}
"""Attributes that are missing at the start of a span, because the client learns them later."""


async def test_samplers_see_the_attributes_of_operations(autojump_clock: MockClock) -> None:
    """Every span starts with all attributes except those that are unknown until its end."""
    sampler = SeenAttributes()
    spans = Spans(sampler)
    async with open_pair(tracer=spans.tracer) as pair:
        people = pair.people
        await people.upsert("ada", 1, durability=triclinium.DurabilityLevel.MAJORITY)
        await people.mutate_in("ada", [triclinium.subdocument.MutateInSpec.replace("", 2)])
        await people.get_or_none("nobody")
        async with people.get_all_replicas("ada") as copies:
            assert [False] == [copy.is_replica async for copy in copies]
        pair.fake.nodes.script.answer("SELECT $city", FakeAnswer(rows=[1]))
        async with pair.cluster.query("SELECT $city", city="Oslo") as result:
            assert [1] == await result.rows()
        await pair.cluster.query_indexes().create_primary_index("travel")
        await pair.cluster.ping()

    by_start = sorted(spans.ended, key=lambda span: span.start_time or 0)
    at_end = [{key: value for key, value in (span.attributes or {}).items() if key not in LATE} for span in by_start]
    assert {"upsert", "request_encoding", "dispatch_to_server", "get_all_replicas", "query", "ping"} <= {
        name for name, _ in sampler.seen
    }
    assert sorted(map(repr, zip((span.name for span in by_start), at_end, strict=True))) == sorted(
        map(repr, sampler.seen)
    )


async def test_samplers_see_the_number_of_an_attempt(autojump_clock: MockClock) -> None:
    """The span of an attempt of ``retry`` begins with its number."""
    sampler = SeenAttributes()

    async def work() -> None:
        pass

    with triclinium.tracing_retries(Spans(sampler).tracer):
        await triclinium.retry(work, strategy=triclinium.SimpleRetryStrategy(), on=OSError, name="work")

    assert ("attempt", {"triclinium.retry.attempt": 1}) in sampler.seen


class TracedRecords(logging.Handler):
    """Handler that records, by logger, the trace and the span that are current when each record is written."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[tuple[int, int]]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Record trace and span."""
        context = trace.get_current_span().get_span_context()
        self.found.setdefault(record.name, []).append((context.trace_id, context.span_id))


@pytest.fixture
def traced_records() -> Iterator[TracedRecords]:
    """Yield a handler of all records of the client, at every level."""
    handler, logger = TracedRecords(), logging.getLogger("triclinium")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.setLevel(level)
    logger.removeHandler(handler)


async def _retried_query(pair: Pair) -> None:
    pair.fake.nodes.script.answer("SELECT 1", FakeAnswer(rows=[1]))
    pair.fake.node.faults.next(triclinium.Service.QUERY, hang_up())
    async with pair.cluster.query(
        "SELECT 1", readonly=True, retry_strategy=triclinium.BestEffortRetryStrategy()
    ) as result:
        assert [1] == await result.rows()


async def _retried_read(pair: Pair) -> None:
    pair.fake.node.faults.next(Opcode.GET, temporary_failure())
    assert await pair.people.get_or_none("nobody", retry_strategy=triclinium.BestEffortRetryStrategy()) is None


async def _retried_read_of_copies(pair: Pair) -> None:
    pair.fake.node.faults.next(Opcode.GET, temporary_failure())
    async with pair.people.get_all_replicas("ada", retry_strategy=triclinium.BestEffortRetryStrategy()) as copies:
        assert [] == [copy async for copy in copies]


async def _refused_read(pair: Pair) -> None:
    pair.fake.node.faults.next(Opcode.GET, temporary_failure())
    with pytest.raises(errors.TemporaryFailureException):
        await pair.people.get("ada", retry_strategy=Never())


async def _late_read(pair: Pair) -> None:
    pair.fake.node.faults.next(Opcode.GET, drop_response())
    with pytest.raises(errors.TimeoutException):
        await pair.people.get("ada")


async def _late_index(pair: Pair) -> None:
    pair.fake.node.faults.next(triclinium.Service.QUERY, drop_response())
    with pytest.raises(errors.TimeoutException):
        await pair.cluster.query_indexes().create_primary_index("travel")


async def _late_block(pair: Pair) -> None:
    pair.fake.node.faults.next(Opcode.GET, drop_response())
    with pytest.raises(errors.TimeoutException), triclinium.fail_after(1):
        await pair.people.get("ada")


@pytest.mark.parametrize("traces", [True, False])
@pytest.mark.parametrize(
    ("logger", "call"),
    [
        ("triclinium.retry", _retried_read),
        ("triclinium.retry", _retried_query),
        ("triclinium.retry", _retried_read_of_copies),
        ("triclinium.retry", _refused_read),
        ("triclinium.timeout", _late_read),
        ("triclinium.timeout", _late_index),
        ("triclinium.timeout", _late_block),
    ],
)
async def test_log_records_carry_the_callers_trace(
    logger: str,
    call: Callable[[Pair], Awaitable[None]],
    traces: bool,
    traced_records: TracedRecords,
    autojump_clock: MockClock,
) -> None:
    """A retry, a refusal and a timeout are logged in the caller's trace, not in the trace that opened the cluster."""
    spans = Spans()
    program = spans.provider.get_tracer("program")
    with program.start_as_current_span("opening"):
        async with open_pair(tracer=spans.tracer if traces else None) as pair:
            await pair.people.exists("ada")
            with program.start_as_current_span("work", Context()) as work:
                await call(pair)

    assert {work.get_span_context().trace_id} == {trace_id for trace_id, _ in traced_records.found[logger]}


async def test_log_records_carry_the_operations_span(traced_records: TracedRecords, autojump_clock: MockClock) -> None:
    """The record of a retry is logged in the span of the operation."""
    spans = Spans()
    async with open_pair(tracer=spans.tracer) as pair:
        await _retried_read(pair)

    (get,) = (span for span in spans.ended if span.name == "get")
    assert [(get.context.trace_id, get.context.span_id)] == traced_records.found["triclinium.retry"]


async def test_an_unwrapped_span_as_parent(autojump_clock: MockClock) -> None:
    """A span of the program is a valid parent without wrapping, for one operation and for several, and stays open."""
    spans = Spans()
    outer = spans.provider.get_tracer("program").start_span("outer")
    parent = cast(RequestSpan, outer)
    async with open_pair(tracer=spans.tracer) as pair:
        await pair.people.upsert("ada", 1, parent_span=parent)
        await pair.people.get_any_replica("ada", parent_span=parent)

    inside = [
        span.name for span in spans.ended if span.parent and span.parent.span_id == outer.get_span_context().span_id
    ]
    assert ["upsert", "get_any_replica"] == inside
    assert outer.is_recording()


@pytest.mark.parametrize("traces", [True, False])
async def test_exemplars_name_the_span(traces: bool, autojump_clock: MockClock) -> None:
    """An exemplar names the span of its operation, or without a tracer that of the calling task."""
    spans, reader = Spans(), InMemoryMetricReader()
    program = spans.provider.get_tracer("program")
    meter = OpenTelemetryMeter(MeterProvider([reader], exemplar_filter=AlwaysOnExemplarFilter()))
    arguments: ClientArguments = {"meter": meter, "tracer": spans.tracer if traces else None}
    with program.start_as_current_span("opening"):
        async with open_pair(**arguments) as pair:
            await pair.people.upsert("ada", 1)

            async def work(seconds: float) -> None:
                with program.start_as_current_span("work"):
                    pair.fake.node.faults.next(Opcode.GET, delay(seconds))
                    await pair.people.get("ada")

            async with trio.open_nursery() as nursery:
                for seconds in (0.2, 0.7):
                    nursery.start_soon(work, seconds)

    _, points = points_of(reader, OPERATION_DURATION)
    (point,) = (each for each in points if (each.attributes or {})["db.operation.name"] == "get")
    found = {exemplar.span_id for exemplar in point.exemplars}
    assert {span.context.span_id for span in spans.ended if span.name == ("get" if traces else "work")} == found
    assert 2 == len(found)


def test_durations_are_seconds() -> None:
    """RFC 0067: durations are in seconds, with a data point for each set of tags."""
    reader = InMemoryMetricReader()
    meter = OpenTelemetryMeter(MeterProvider([reader]))
    for tags, microseconds in (({"a": "1"}, 1_500_000), ({"a": "1"}, 500_000), ({"a": "2"}, 2_000)):
        meter.value_recorder(OPERATION_DURATION, tags).record_value(microseconds)

    unit, points = points_of(reader, OPERATION_DURATION)
    assert "s" == unit
    assert [({"a": "1"}, 2, 2.0), ({"a": "2"}, 1, 0.002)] == [
        (dict(point.attributes or {}), point.count, point.sum) for point in points
    ]
    assert (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10) == tuple(points[0].explicit_bounds)


def test_default_providers_are_used() -> None:
    """Without arguments, tracer and meter use the global providers and satisfy the client's protocols."""
    tracer, meter = OpenTelemetryRequestTracer(), OpenTelemetryMeter()
    span = tracer.request_span("get")
    span.end()
    meter.value_recorder("any", {}).record_value(1)

    assert isinstance(tracer, RequestTracer)
    assert isinstance(meter, Meter)
    assert "OpenTelemetryRequestSpan" in repr(span)


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its package, the module raises ImportError with the command that installs it."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "triclinium.opentelemetry")

    with pytest.raises(ImportError, match=r"pip install 'triclinium\[opentelemetry\]'"):
        importlib.import_module("triclinium.opentelemetry")
