"""The adapters to OpenTelemetry, as its own SDK sees them."""

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
    """A provider, and what was exported from it."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = OpenTelemetryRequestTracer(self.provider)

    @property
    def ended(self) -> tuple[ReadableSpan, ...]:
        """The spans that have ended, in the order in which they did."""
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


def test_a_span_is_one_of_a_client() -> None:
    """RFC 0067: its kind is CLIENT, and the instrumentation has the RFC's name, and the version of the package."""
    spans = Spans()
    spans.tracer.request_span("get").end()

    (span,) = spans.ended
    scope = span.instrumentation_scope
    assert scope is not None
    assert ("get", trace.SpanKind.CLIENT) == (span.name, span.kind)
    assert ("com.couchbase.client.python", version("triclinium")) == (scope.name, scope.version)


def test_what_is_told_of_a_span_arrives() -> None:
    """Attributes of all types, events with theirs and their time, and the status."""
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
def test_every_status_has_its_like(code: StatusCode) -> None:
    """By the same name."""
    spans = Spans()
    span = spans.tracer.request_span("get")
    span.set_status(code)
    span.end()

    assert code.name == spans.ended[0].status.status_code.name


def test_the_current_span_is_the_parent() -> None:
    """Without a word of the caller; where nothing is current, the span begins a trace."""
    spans = Spans()
    with spans.provider.get_tracer("program").start_as_current_span("request"):
        spans.tracer.request_span("get").end()
    spans.tracer.request_span("alone").end()

    get, request, alone = spans.ended
    assert get.parent is not None
    assert request.context.span_id == get.parent.span_id
    assert alone.parent is None


def test_a_parent_that_is_named_wins_over_the_current_span() -> None:
    """A span of the program's own can be wrapped for it, and one of ours is a parent as it is."""
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
    """Keeps the baggage that each span begins with."""

    def __init__(self) -> None:
        self.found: list[tuple[str, object]] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Keep it."""
        self.found.append((span.name, baggage.get_baggage("tenant", parent_context)))


def test_a_span_inside_another_has_the_baggage_of_that() -> None:
    """The client begins it in whichever task sends, and that may be another caller's."""
    spans, baggages = Spans(), Baggages()
    spans.provider.add_span_processor(baggages)
    outer = [copy_context().run(begun_with_baggage, spans.tracer, "get", tenant, None) for tenant in ("ours", "theirs")]
    copy_context().run(begun_with_baggage, spans.tracer, "dispatch_to_server", "theirs", outer[0])

    assert [("get", "ours"), ("get", "theirs"), ("dispatch_to_server", "ours")] == baggages.found


def begun_with_baggage(
    tracer: OpenTelemetryRequestTracer, name: str, tenant: str, parent: RequestSpan | None
) -> RequestSpan:
    """Begin a span where there is baggage."""
    attach(baggage.set_baggage("tenant", tenant))
    return tracer.request_span(name, parent)


def test_a_span_of_another_make_is_no_parent() -> None:
    """The error says what to do."""
    spans = Spans()

    with pytest.raises(errors.InvalidArgumentException, match="OpenTelemetryRequestSpan"):
        spans.tracer.request_span("get", RecordedSpan("outer", None))


class SeenAttributes(Sampler):
    """Records the attributes that each span begins with."""

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
"""Attributes that are not known before the end of a span."""


async def test_samplers_see_the_attributes_of_operations(autojump_clock: MockClock) -> None:
    """Every span of a client begins with all attributes but those that only its end can know."""
    sampler = SeenAttributes()
    spans = Spans(sampler)
    async with open_pair(tracer=spans.tracer) as pair:
        people = pair.people
        await people.upsert("ada", 1, durability=triclinium.DurabilityLevel.MAJORITY)
        await people.mutate_in("ada", [triclinium.MutateInSpec.replace("", 2)])
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
    """Keeps the trace and the span that are current when each record is written, by logger."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[tuple[int, int]]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep them."""
        context = trace.get_current_span().get_span_context()
        self.found.setdefault(record.name, []).append((context.trace_id, context.span_id))


@pytest.fixture
def traced_records() -> Iterator[TracedRecords]:
    """Give a handler of all records of the client, at every level."""
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
async def test_log_records_carry_the_trace_of_the_caller(
    logger: str,
    call: Callable[[Pair], Awaitable[None]],
    traces: bool,
    traced_records: TracedRecords,
    autojump_clock: MockClock,
) -> None:
    """A retry, a refusal and a timeout are logged in the trace that is current in the calling task, not the opener's."""
    spans = Spans()
    program = spans.provider.get_tracer("program")
    with program.start_as_current_span("opening"):
        async with open_pair(tracer=spans.tracer if traces else None) as pair:
            await pair.people.exists("ada")
            with program.start_as_current_span("work", Context()) as work:
                await call(pair)

    assert {work.get_span_context().trace_id} == {trace_id for trace_id, _ in traced_records.found[logger]}


async def test_log_records_carry_the_span_of_the_operation(
    traced_records: TracedRecords, autojump_clock: MockClock
) -> None:
    """The record of a retry is in the span of the operation that is retried."""
    spans = Spans()
    async with open_pair(tracer=spans.tracer) as pair:
        await _retried_read(pair)

    (get,) = (span for span in spans.ended if span.name == "get")
    assert [(get.context.trace_id, get.context.span_id)] == traced_records.found["triclinium.retry"]


async def test_a_span_of_the_program_as_it_is(autojump_clock: MockClock) -> None:
    """It is a parent without being wrapped, of a call of one operation and of one of several, and it stays open."""
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
    """Of the operation that took so long; without a tracer that of the program, though another one opened the cluster."""
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
    """RFC 0067: unit and values, though the client speaks of microseconds; tags tell data points apart."""
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


def test_they_fit_where_the_client_wants_them() -> None:
    """Also over the program's global providers, which do nothing unless they are set."""
    tracer, meter = OpenTelemetryRequestTracer(), OpenTelemetryMeter()
    span = tracer.request_span("get")
    span.end()
    meter.value_recorder("any", {}).record_value(1)

    assert isinstance(tracer, RequestTracer)
    assert isinstance(meter, Meter)
    assert "OpenTelemetryRequestSpan" in repr(span)


def test_where_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module says what to install."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "triclinium.opentelemetry")

    with pytest.raises(ImportError, match=r"pip install 'triclinium\[opentelemetry\]'"):
        importlib.import_module("triclinium.opentelemetry")
