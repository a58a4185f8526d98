"""Calls to the user's tracer and meter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from triclinium._telemetry.guard import Guard
from triclinium_core.telemetry.attributes import tags_of
from triclinium_core.telemetry.facts import microseconds
from triclinium_core.telemetry.metrics import OPERATION_DURATION, Meter
from triclinium_core.telemetry.tracing import AttributeValue, RequestSpan, RequestTracer, StatusCode


class Telemetry:
    """Access to the user's tracer and meter. An error of either never fails an operation.

    Args:
        tracer: the user's tracer; None without one.
        meter: the user's meter; None without one.
        cluster_labels: returns the labels of the cluster for all spans and metrics.
    """

    def __init__(
        self, tracer: RequestTracer | None, meter: Meter | None, cluster_labels: Callable[[], Mapping[str, str]]
    ) -> None:
        self.traces: bool = tracer is not None
        """Whether there is a tracer, for which the machine must report attempts."""
        self.cluster_labels: Callable[[], Mapping[str, str]] = cluster_labels
        self._tracer = tracer
        self._meter = meter
        self._guarded, self._guarded_meter = Guard(tracer), Guard(meter)
        self.current: Callable[[RequestSpan | None], AbstractContextManager[None]] = self._guarded.current

    # -- Calls to the tracer. None stands for a missing span.

    def begin_span(
        self, name: str, parent: RequestSpan | None, attributes: Mapping[str, AttributeValue]
    ) -> RequestSpan | None:
        """Return a new span with attributes; None without a tracer, or if the tracer failed."""
        tracer = self._tracer
        if tracer is None:
            return None
        return self._guarded.begin_span(tracer, name, parent, attributes)

    def begin_child(
        self, name: str, outer: RequestSpan | None, attributes: Mapping[str, AttributeValue]
    ) -> RequestSpan | None:
        """Return a new child span of ``outer``; None without an outer span, or if the tracer failed."""
        return self.begin_span(name, outer, attributes) if outer is not None else None

    def set_attributes(self, span: RequestSpan | None, attributes: Mapping[str, AttributeValue]) -> None:
        """Set attributes of a span."""
        if span is not None:
            for key, value in attributes.items():
                self._guarded.set_attribute(span, key, value)

    def add_event(self, span: RequestSpan | None, name: str, attributes: Mapping[str, AttributeValue]) -> None:
        """Add an event to a span."""
        if span is not None:
            self._guarded(lambda: span.add_event(name, attributes))

    def end_span(
        self,
        span: RequestSpan | None,
        attributes: Mapping[str, AttributeValue] | None = None,
        status: StatusCode = StatusCode.UNSET,
    ) -> None:
        """Set the last attributes and the status of a span, and end the span."""
        if span is None:
            return
        self.set_attributes(span, attributes or {})
        if status is not StatusCode.UNSET:
            self._guarded(lambda: span.set_status(status))
        self._guarded(lambda: span.end())  # noqa: PLW0108  # the method may be missing, or raise when it is looked up

    # -- Calls to the meter.

    def record(self, span: RequestSpan | None, seconds: float, attributes: Mapping[str, AttributeValue]) -> None:
        """Record the duration of an operation.

        Args:
            span: outer span. It is the current span during the call, for meters that store the span of a value.
            attributes: attributes of the outer span; some of them become tags.
        """
        meter = self._meter
        if meter is not None:
            tags, value = tags_of(attributes), microseconds(seconds)
            with self.current(span):
                self._guarded_meter(lambda: meter.value_recorder(OPERATION_DURATION, tags).record_value(value))
