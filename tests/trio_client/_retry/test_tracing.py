"""Spans and durations of calls that retry, recorded by the OpenTelemetry SDK."""

from __future__ import annotations

import functools
import gc
import logging

import httpx
import pytest
import trio
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Histogram, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.adapters.scripted_transport import ScriptedTransport
from tests.trio_client.retried_calls import WAYS, Flaky, Way, by_call
from tests.trio_client.retry_doubles import AsyncStrategy, ScriptedStrategy, Token
from triclinium import attempts, retry, tracing_retries
from triclinium.adapters.httpx import RetryTransport
from triclinium.errors import InvalidArgumentException
from triclinium.opentelemetry import OpenTelemetryMeter, OpenTelemetryRequestTracer
from triclinium.telemetry import RequestSpan
from triclinium_core.retry.smithy import RetryError, RetryToken


class Traced:
    """Tracer and meter, with the recorded spans and durations."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = OpenTelemetryRequestTracer(self.provider)
        self.meter = OpenTelemetryMeter(MeterProvider([self._reader]))

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """Finished spans in the order in which they ended."""
        return self._exporter.get_finished_spans()

    @property
    def durations(self) -> list[tuple[dict[str, object], float]]:
        """Attributes and sum of each data point of the metric of calls."""
        data = self._reader.get_metrics_data()
        assert data is not None
        (metric,) = data.resource_metrics[0].scope_metrics[0].metrics
        assert "triclinium.call.duration" == metric.name
        assert isinstance(metric.data, Histogram)
        return [(dict(point.attributes or {}), point.sum) for point in metric.data.data_points]


class HangingStrategy(AsyncStrategy):
    """Asynchronous strategy that never decides about a retry."""

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Wait until cancelled."""
        await trio.sleep_forever()
        raise AssertionError("the sleep has no end")


def attributes(span: ReadableSpan) -> dict[str, object]:
    """Return the attributes of a span."""
    return dict(span.attributes or {})


@rows("way", WAYS)
async def test_a_call_that_recovers(autojump_clock: MockClock, way: Way) -> None:
    """A call has a span with a child span for each attempt, and an event for the retry."""
    traced = Traced()
    with tracing_retries(traced.tracer, traced.meter):
        await way(Flaky(OSError(), seconds=1.0), ScriptedStrategy(Token(), Token(0.5)), on=OSError, name="fetch")

    first, second, call = traced.spans
    (event,) = call.events
    assert ["attempt", "attempt", "fetch"] == [span.name for span in traced.spans]
    assert {call.context.span_id} == {span.parent.span_id for span in (first, second) if span.parent is not None}
    assert {"triclinium.retry.attempt": 1, "error.type": "OSError"} == attributes(first)
    assert {"triclinium.retry.attempt": 2} == attributes(second)
    assert {"triclinium.retry.attempts": 2} == attributes(call)
    assert [trace.StatusCode.ERROR, trace.StatusCode.OK, trace.StatusCode.OK] == [
        span.status.status_code for span in traced.spans
    ]
    assert ("triclinium.retry", {"triclinium.retry.reason": "OSError", "triclinium.retry.delay": 0.5}) == (
        event.name,
        dict(event.attributes or {}),
    )
    assert [({"triclinium.call.name": "fetch"}, 2.5)] == traced.durations


@rows("way", WAYS)
async def test_a_call_that_gives_up(autojump_clock: MockClock, way: Way) -> None:
    """The event of a failed call gives the reason; span and metric give the error type."""
    traced = Traced()
    with tracing_retries(traced.tracer, traced.meter), pytest.raises(OSError):  # noqa: PT011 - any OSError will do
        await way(Flaky(OSError(), seconds=1.0), ScriptedStrategy(Token(), RetryError()), on=OSError, name="fetch")

    _, call = traced.spans
    (event,) = call.events
    assert {"triclinium.retry.ending": "REFUSED", "triclinium.retry.error": "OSError"} == dict(event.attributes or {})
    assert "triclinium.retry_refused" == event.name
    assert {"triclinium.retry.attempts": 1, "error.type": "OSError"} == attributes(call)
    assert trace.StatusCode.ERROR is call.status.status_code
    assert [({"triclinium.call.name": "fetch", "error.type": "OSError"}, 1.0)] == traced.durations


@rows("way", WAYS)
@rows(("kind", "seconds"), [(ScriptedStrategy, 0.5), (ScriptedStrategy, 1.25), (HangingStrategy, 1.25)])
async def test_spans_end_with_a_cancelled_call(
    autojump_clock: MockClock, way: Way, kind: type[ScriptedStrategy | AsyncStrategy], seconds: float
) -> None:
    """Spans end when the call is cancelled; the status stays unset, with Cancelled as the type of the error."""
    traced = Traced()
    async with trio.open_nursery() as nursery:
        with tracing_retries(traced.tracer, traced.meter):
            call = functools.partial(way, on=OSError, name="fetch")
            nursery.start_soon(call, Flaky(OSError(), seconds=1.0), kind(Token(), Token(0.5)))
        await trio.sleep(seconds)
        # Cancel without a deadline: with a deadline, the call would end before its delay.
        nursery.cancel_scope.cancel()

    *_, span = traced.spans
    assert ["attempt", "fetch"] == [span.name for span in traced.spans]
    assert trace.StatusCode.UNSET is span.status.status_code
    assert "Cancelled" == attributes(span)["error.type"]


async def test_an_abandoned_loop_ends_its_spans(autojump_clock: MockClock) -> None:
    """Spans of a loop left by ``break`` after a failed attempt end when the loop and its error are released."""
    traced = Traced()

    async def leave() -> None:
        async for attempt in attempts(ScriptedStrategy(Token(), Token(0.5)), on=OSError):
            with attempt:
                raise OSError
            break

    with tracing_retries(traced.tracer):
        await leave()
    gc.collect()

    assert ["attempt", "attempts"] == [span.name for span in traced.spans]


@rows("way", WAYS)
async def test_spans_inside_an_attempt_are_its_children(autojump_clock: MockClock, way: Way) -> None:
    """A span that the function opens is a child of the attempt's span; a span that follows the call is not."""
    traced = Traced()

    async def fetch() -> None:
        await trio.lowlevel.checkpoint()
        traced.tracer.request_span("get").end()

    with tracing_retries(traced.tracer):
        await way(fetch, ScriptedStrategy(Token()))
    traced.tracer.request_span("after").end()

    get, attempt, call, after = traced.spans
    assert get.parent is not None
    assert attempt.context.span_id == get.parent.span_id
    assert (None, None) == (call.parent, after.parent)


async def test_a_refused_result_is_a_success() -> None:
    """If a retry of a result is refused, the caller gets the result and the span ends without an error."""
    traced = Traced()
    strategy = ScriptedStrategy(Token(), RetryError())
    with tracing_retries(traced.tracer):
        result = await retry(Flaky(), 503, strategy=strategy, retry_result=lambda _: True)

    _, call = traced.spans
    assert (503,) == result
    assert trace.StatusCode.OK is call.status.status_code
    assert {"triclinium.retry.attempts": 1} == attributes(call)


@pytest.mark.parametrize("statuses", [(503, 200), (503, 503)])
async def test_requests_over_http(autojump_clock: MockClock, statuses: tuple[int, int]) -> None:
    """HTTP requests have the spans of a call, with the status as in the HTTP conventions."""
    traced = Traced()
    strategy = ScriptedStrategy(Token(), Token(0.5), RetryError())
    transport = RetryTransport(ScriptedTransport(*statuses), strategy=strategy)
    with tracing_retries(traced.tracer):
        async with httpx.AsyncClient(transport=transport) as client:
            answer = await client.get("http://flaky.test/")

    first, second, call = traced.spans
    assert statuses[-1] == answer.status_code
    assert ("GET flaky.test", 2) == (call.name, attributes(call)["triclinium.retry.attempts"])
    assert "503" == attributes(first)["error.type"]
    last = {} if answer.is_success else {"error.type": "503"}
    assert last.items() <= attributes(second).items()
    assert last.items() <= attributes(call).items()
    assert ("error.type" in attributes(call)) is not answer.is_success


async def test_a_request_that_fails_over_http() -> None:
    """If an HTTP request gets no response, the spans of the attempt and of the call have the error."""
    traced = Traced()
    strategy = ScriptedStrategy(Token(), RetryError())
    transport = RetryTransport(ScriptedTransport(httpx.ConnectError("refused")), strategy=strategy)
    with tracing_retries(traced.tracer):
        async with httpx.AsyncClient(transport=transport) as client:
            with pytest.raises(httpx.ConnectError):
                await client.post("http://flaky.test/")

    assert [("attempt", "ConnectError"), ("POST flaky.test", "ConnectError")] == [
        (span.name, attributes(span)["error.type"]) for span in traced.spans
    ]


async def test_tracing_ends_with_its_block(autojump_clock: MockClock) -> None:
    """After the block, calls have no spans; an inner block replaces the outer one."""
    outer, inner = Traced(), Traced()
    call = functools.partial(by_call, Flaky(), ScriptedStrategy(Token(), Token(), Token()))
    with tracing_retries(outer.tracer):
        with tracing_retries(inner.tracer):
            await call()
        with tracing_retries():
            await call()
    await call()

    assert (0, 2) == (len(outer.spans), len(inner.spans))


async def test_a_tracer_that_raises_breaks_no_call(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """Exceptions of a tracer or a meter do not affect the call, and are logged once each."""

    class Broken:
        def request_span(self, name: str, parent: RequestSpan | None = None) -> RequestSpan:
            raise ValueError(name)

        def value_recorder(self, name: str, tags: object) -> object:
            raise ValueError(name)

    with tracing_retries(Broken(), Broken()):  # type: ignore[arg-type]  # a wrong type on purpose
        for _ in range(2):
            await by_call(Flaky(), ScriptedStrategy(Token()))

    assert ["triclinium.telemetry"] * 2 == [record.name for record in caplog.records if record.levelno > logging.INFO]


@rows("parameter", ["tracer", "meter"])
def test_an_invalid_tracer_is_refused(parameter: str) -> None:
    """An invalid tracer or meter raises before the block begins."""
    wrong: dict[str, object] = {parameter: object()}
    with pytest.raises(InvalidArgumentException), tracing_retries(**wrong):  # type: ignore[arg-type]
        pytest.fail("the block was entered")
