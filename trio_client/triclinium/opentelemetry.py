"""Spans and durations for OpenTelemetry, with the extra ``opentelemetry``: ``OpenTelemetryRequestTracer()``.

Names, attributes and units are those of OpenTelemetry's stable conventions for databases, as in SDK-RFC 0067.

Source: SDK-RFC 0067 rev 27 "Module Implementation: OpenTelemetryRequestTracer", "Module Implementation:
OpenTelemetryMeter".
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from importlib.metadata import version

from triclinium_core import errors
from triclinium_core.shown import shown, total_repr
from triclinium_core.telemetry.metrics import OPERATION_DURATION
from triclinium_core.telemetry.tracing import AttributeValue, RequestSpan, StatusCode

try:
    from opentelemetry import metrics, trace
    from opentelemetry.context import Context
except ImportError as _missing:
    raise ImportError(
        "the package opentelemetry-api is missing; run: pip install 'triclinium[opentelemetry]'"
    ) from _missing

__all__ = ["OpenTelemetryMeter", "OpenTelemetryRequestSpan", "OpenTelemetryRequestTracer", "OpenTelemetryValueRecorder"]

INSTRUMENTATION_NAME = "com.couchbase.client.python"
"""Name of the tracer and the meter: the RFC's prefix and the language."""
SCHEMA_URL = "https://opentelemetry.io/schemas/1.37.0"
"""Schema of the conventions that define the names (RFC 0067, revision 26)."""
BUCKET_BOUNDARIES = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
"""Histogram boundaries in seconds, as OpenTelemetry's conventions advise for ``db.client.operation.duration``."""

_STATUS_CODES = {
    StatusCode.UNSET: trace.StatusCode.UNSET,
    StatusCode.OK: trace.StatusCode.OK,
    StatusCode.ERROR: trace.StatusCode.ERROR,
}


class OpenTelemetryRequestSpan:
    """OpenTelemetry span as a span of this client, for a ``parent_span`` that is not the current span.

    In any task, a child span has the context of this span, with the baggage.

    Args:
        span: the wrapped span.
        context: context of the span; the current one if None.
    """

    __slots__ = ("context", "span")

    def __init__(self, span: trace.Span, context: Context | None = None) -> None:
        self.span: trace.Span = span
        self.context: Context = trace.set_span_in_context(span, context)

    @total_repr
    def __repr__(self) -> str:
        return f"<OpenTelemetryRequestSpan over {self.span!r}>"

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        """Set an attribute of the span."""
        self.span.set_attribute(key, value)

    def add_event(
        self, name: str, attributes: Mapping[str, AttributeValue] | None = None, timestamp: float | None = None
    ) -> None:
        """Add an event to the span; ``timestamp`` is in seconds since the epoch, None for now."""
        nanoseconds = None if timestamp is None else round(timestamp * 1_000_000_000)
        self.span.add_event(name, attributes, nanoseconds)

    def set_status(self, code: StatusCode) -> None:
        """Set the status of the span."""
        self.span.set_status(_STATUS_CODES[code])

    def end(self) -> None:
        """End the span."""
        self.span.end()

    def as_current(self) -> AbstractContextManager[object]:
        """Make the span the current one for a block. Leaving the block does not end the span."""
        return trace.use_span(self.span, record_exception=False, set_status_on_exception=False)


class OpenTelemetryRequestTracer:
    """Tracer that creates OpenTelemetry spans of kind CLIENT.

    The parent of a span is the current span of the calling task, unless the call names another parent: a span of this
    client or an OpenTelemetry span.

    Args:
        tracer_provider: source of the tracer; the global one if None.
    """

    __slots__ = ("_tracer",)

    def __init__(self, tracer_provider: trace.TracerProvider | None = None) -> None:
        provider = trace.get_tracer_provider() if tracer_provider is None else tracer_provider
        self._tracer = provider.get_tracer(INSTRUMENTATION_NAME, version("triclinium"), SCHEMA_URL)

    def request_span(
        self,
        name: str,
        parent: RequestSpan | trace.Span | None = None,
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> OpenTelemetryRequestSpan:
        """Begin a span.

        Args:
            parent: parent of the span; None for the current span. An OpenTelemetry span gets the current context, with
                the baggage of that context.
            attributes: attributes that a sampler sees.

        Raises:
            InvalidArgumentException: ``parent`` is not a span.
        """
        if parent is None:
            context = None
        elif isinstance(parent, OpenTelemetryRequestSpan):
            context = parent.context
        elif isinstance(parent, trace.Span):
            context = trace.set_span_in_context(parent)
        else:
            raise errors.InvalidArgumentException(
                f"parent={shown(parent)} must be an OpenTelemetry span, an OpenTelemetryRequestSpan or None",
                parameter="parent",
            )
        span = self._tracer.start_span(name, context, trace.SpanKind.CLIENT, attributes)
        return OpenTelemetryRequestSpan(span, context)


class OpenTelemetryValueRecorder:
    """Recorder of durations in an OpenTelemetry histogram, in seconds.

    Args:
        histogram: histogram of the metric.
        tags: common attributes of the durations.
    """

    __slots__ = ("_histogram", "_tags")

    def __init__(self, histogram: metrics.Histogram, tags: Mapping[str, str]) -> None:
        self._histogram = histogram
        self._tags = tags

    def record_value(self, microseconds: int) -> None:
        """Record a duration in microseconds, which the histogram gets in seconds."""
        self._histogram.record(microseconds / 1_000_000, self._tags)


class OpenTelemetryMeter:
    """Meter that creates OpenTelemetry histograms, one for each metric.

    Args:
        meter_provider: source of the meter; the global one if None.
    """

    __slots__ = ("_histograms", "_meter")

    def __init__(self, meter_provider: metrics.MeterProvider | None = None) -> None:
        provider = metrics.get_meter_provider() if meter_provider is None else meter_provider
        self._meter = provider.get_meter(INSTRUMENTATION_NAME, version("triclinium"), SCHEMA_URL)
        self._histograms: dict[str, metrics.Histogram] = {}

    def value_recorder(self, name: str, tags: Mapping[str, str]) -> OpenTelemetryValueRecorder:
        """Return the recorder of durations for a metric and its tags."""
        histogram = self._histograms.get(name)
        if histogram is None:
            histogram = self._histograms[name] = self._meter.create_histogram(
                name,
                unit="s",
                description=_DESCRIPTIONS.get(name, ""),
                explicit_bucket_boundaries_advisory=BUCKET_BOUNDARIES,
            )
        return OpenTelemetryValueRecorder(histogram, tags)


_DESCRIPTIONS = {OPERATION_DURATION: "Duration of database client operations."}
"""Descriptions of metrics in OpenTelemetry's conventions."""
