"""Spans and durations of calls to ``retry``, ``retried`` and ``attempts``, and of requests of HTTP transports.

A call has a span with a child span for each attempt. Events of the call's span give the reason why another attempt
follows or does not follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial

import trio

from triclinium._telemetry.guard import CurrentSpan, Guard
from triclinium_core.checks import check_method
from triclinium_core.retry.calls import RetryGivenUp, RetryReport, RetryScheduled
from triclinium_core.telemetry.attributes import ERROR_TYPE
from triclinium_core.telemetry.facts import microseconds
from triclinium_core.telemetry.metrics import Meter
from triclinium_core.telemetry.retry_events import DELAY, ERROR, REASON, REFUSAL, RETRY
from triclinium_core.telemetry.tracing import AttributeValue, RequestSpan, RequestTracer, StatusCode

ATTEMPT = "attempt"
"""Name of the span of one attempt."""
CALL_DURATION = "triclinium.call.duration"
"""Metric: durations of complete calls, including all attempts and delays."""
CALL_NAME = "triclinium.call.name"
"""Tag of ``CALL_DURATION``: the name of the call's span."""
ATTEMPTS = "triclinium.retry.attempts"
"""Attribute of a call's span: the number of its attempts."""
NUMBER = "triclinium.retry.attempt"
"""Attribute of an attempt's span: its number, beginning with 1."""
ENDING = "triclinium.retry.ending"
"""Attribute of the event of a refused retry: the name of the ``RetryEnding``."""


class Tracing:
    """Tracer and meter for the retried calls of a block."""

    def __init__(self, tracer: RequestTracer | None, meter: Meter | None) -> None:
        self.tracer: RequestTracer | None = tracer
        self.meter: Meter | None = meter
        self.guard: Guard = Guard(tracer)
        self.meter_guard: Guard = Guard(meter)


tracing_of_block: ContextVar[Tracing | None] = ContextVar("triclinium.tracing_retries", default=None)
"""Tracer and meter of the innermost ``tracing_retries`` block; None outside of any."""


@contextmanager
def tracing_retries(tracer: RequestTracer | None = None, meter: Meter | None = None) -> Iterator[None]:
    """Trace and measure the retried calls of the block, and of the tasks that are started in it.

    These are the calls to ``retry``, ``retried`` and ``attempts``, and requests of HTTP transports. Each call has a
    span with its name. The span has a child span ``attempt`` for each attempt, which is the current span while the
    function runs if the tracer supports this, and events ``triclinium.retry`` and ``triclinium.retry_refused``. The
    meter records ``triclinium.call.duration``. An inner block replaces the tracer and the meter of the outer one.
    A block around the whole program covers all calls. Operations of a cluster use the tracer and the meter of
    ``open_cluster``.

    Args:
        tracer: receives the spans; None for no spans.
        meter: receives the durations; None for no durations.

    Raises:
        InvalidArgumentException: the tracer or the meter is invalid.
    """
    if tracer is not None:
        check_method(tracer, "tracer", "request_span", "request_span(name, parent=None)")
    if meter is not None:
        check_method(meter, "meter", "value_recorder", "value_recorder(name, tags)")
    token = tracing_of_block.set(Tracing(tracer, meter))
    try:
        yield
    finally:
        tracing_of_block.reset(token)


class TracedCall:
    """Spans and duration of one call. ``end`` may be called repeatedly, and must be called at the end of every call.

    Args:
        tracing: receives the spans and the duration.
        name: name of the call.
    """

    __slots__ = ("_attempt", "_began_at", "_current", "_is_over", "_name", "_number", "_span", "_tracing")

    def __init__(self, tracing: Tracing, name: str) -> None:
        self._tracing = tracing
        self._name = name
        self._began_at = trio.current_time()
        self._number = 0
        self._attempt: RequestSpan | None = None
        self._current: AbstractContextManager[object] | None = None
        self._is_over = False
        self._span = self._begin(name, None, {})

    def begin_attempt(self, number: int) -> None:
        """Begin the span of an attempt, and make it the current one if the tracer supports this."""
        self._number = number
        if self._span is None:
            return
        span = self._attempt = self._begin(ATTEMPT, self._span, {NUMBER: number})
        if isinstance(span, CurrentSpan):
            self._current = self._tracing.guard(span.as_current)
        current = self._current
        if current is not None:
            self._tracing.guard(lambda: current.__enter__())  # noqa: PLW0108  # the method may be missing

    def end_attempt(self, error: BaseException | None) -> None:
        """End the span of the current attempt, if there is one."""
        current, self._current = self._current, None
        if current is not None:
            self._tracing.guard(lambda: current.__exit__(None, None, None))
        span, self._attempt = self._attempt, None
        if span is not None:
            self._end(span, {}, error)

    def record(self, report: RetryReport) -> None:
        """Add an event with the reason why another attempt follows or does not follow."""
        if isinstance(report, RetryScheduled):
            self._add_event(RETRY, {REASON: _kind_of(report.error), DELAY: report.delay})
        elif isinstance(report, RetryGivenUp):
            self._add_event(REFUSAL, {ENDING: report.ending.name, ERROR: _kind_of(report.error)})

    def end(self, error: BaseException | None) -> None:
        """End all open spans, and record the duration: the call is over, or was left.

        Args:
            error: exception that the caller gets; None for a result.
        """
        self.end_attempt(error)
        if self._is_over:
            return
        self._is_over = True
        if self._span is not None:
            self._end(self._span, {ATTEMPTS: self._number}, error)
        tags = {CALL_NAME: self._name, **_error_type(error)}
        if self._tracing.meter is not None:
            took = trio.current_time() - self._began_at
            with self._tracing.guard.current(self._span):
                self._tracing.meter_guard(partial(_record, self._tracing.meter, took, tags))

    def _begin(
        self, name: str, parent: RequestSpan | None, attributes: Mapping[str, AttributeValue]
    ) -> RequestSpan | None:
        tracer = self._tracing.tracer
        return None if tracer is None else self._tracing.guard.begin_span(tracer, name, parent, attributes)

    def _add_event(self, name: str, attributes: Mapping[str, AttributeValue]) -> None:
        span = self._span
        if span is not None:
            self._tracing.guard(lambda: span.add_event(name, attributes))

    def _end(self, span: RequestSpan, attributes: Mapping[str, AttributeValue], error: BaseException | None) -> None:
        guard = self._tracing.guard
        for key, value in {**attributes, **_error_type(error)}.items():
            guard.set_attribute(span, key, value)
        if not isinstance(error, trio.Cancelled):
            guard(lambda: span.set_status(StatusCode.OK if error is None else StatusCode.ERROR))
        guard(lambda: span.end())  # noqa: PLW0108  # the method may be missing


def _kind_of(error: BaseException | None) -> str:
    """Return the kind of an attempt's failure in a word; an error may define its own ``error_type``."""
    if error is None:
        return "result"
    own = getattr(error, "error_type", None)
    return own if isinstance(own, str) else type(error).__qualname__


def _error_type(error: BaseException | None) -> dict[str, str]:
    return {} if error is None else {ERROR_TYPE: _kind_of(error)}


def _record(meter: Meter, seconds: float, tags: Mapping[str, str]) -> None:
    meter.value_recorder(CALL_DURATION, tags).record_value(microseconds(seconds))
