"""Spans and duration of a call: an outer span, and inside it a span for the encoding and one for each attempt.

The outer span begins in the task of the caller, so that a tracer finds the parent in that task's context. The driver's
own tasks may end it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar, copy_context
from typing import TypeVar, assert_never

import trio

from triclinium._telemetry.telemetry import Telemetry
from triclinium_core import errors
from triclinium_core.contract.couchbase import AbandonReason, ReportRefusal, ReportRetry
from triclinium_core.contract.neutral import StreamId
from triclinium_core.telemetry.attributes import (
    COUCHBASE,
    ERROR_TYPE,
    ERROR_TYPES,
    NO_LABELS,
    OPERATION_NAME,
    RETRIES,
    SYSTEM_NAME,
    error_type,
    outer_status,
)
from triclinium_core.telemetry.retry_events import refusal_event, retry_event
from triclinium_core.telemetry.span_names import DISPATCH, ENCODING
from triclinium_core.telemetry.tracing import AttributeValue, RequestSpan, StatusCode, is_span

V = TypeVar("V")
T = TypeVar("T")

CANCELLED = "RequestCanceled"
"""``error.type`` of a call whose task was cancelled (SDK-RFC 0058, 2)."""

encoding_call: ContextVar[CallSpans | None] = ContextVar("triclinium.encoding_call", default=None)
"""Call whose operation is being created; None at other times, and without a tracer and a meter."""


class CallSpans:
    """Spans and duration of one call. Either ``end`` or ``abandon`` is called once for each call.

    Args:
        telemetry: receives the spans and durations.
        parent: parent of the outer span; None for the tracer's choice.
        is_measured: whether the meter records the call. False for a call whose operations the meter records instead.
    """

    def __init__(self, telemetry: Telemetry, parent: RequestSpan | None, *, is_measured: bool = True) -> None:
        self.span: RequestSpan | None = None
        """Outer span; None before ``begin``, without a tracer, or if the tracer failed."""
        self.expected: tuple[type[Exception], ...] = ()
        """Errors that the caller does not get, because the call returns a result for them."""
        self._telemetry = telemetry
        self._parent = parent
        self._is_measured = is_measured
        self._context = copy_context()
        self._common: Mapping[str, AttributeValue] = {}
        """Attributes of all spans that begin later."""
        self._awaits_labels = False
        """Whether the spans still lack the labels of the cluster, which the first config contains."""
        self._late_labels: Mapping[str, str] = {}
        """Labels that arrived after the outer span had begun. A span that ends before they arrive, such as
        the first ``request_encoding``, does not have them."""
        self._attributes: dict[str, AttributeValue] = {}
        self._began_at: float | None = None
        self._attempts: dict[Hashable, RequestSpan | None] = {}
        """Spans of attempts in flight, by stream; if the call makes several operations, by operation and stream."""
        self._retries = 0
        self._retries_due = set[PartSpans | None]()
        """Operations whose newest retry was not sent yet; None stands for the only operation of a call."""

    @property
    def as_parent(self) -> RequestSpan | None:
        """Outer span as the parent of nested calls; None also if the tracer's object is not a span."""
        return self.span if is_span(self.span) else None

    def begin(self, name: str, attributes: Mapping[str, AttributeValue]) -> None:
        """Begin the outer span with the attributes of the call, unless the encoding of its payload has begun it.

        Args:
            name: identifier of the call in the RFC.
        """
        if self._began_at is not None:
            return
        self._began_at = trio.current_time()
        labels = self._telemetry.cluster_labels()
        self._awaits_labels = labels is NO_LABELS
        self._common = {SYSTEM_NAME: COUCHBASE, **labels}
        self._attributes = {**self._common, OPERATION_NAME: name, **attributes}
        self.span = self._telemetry.begin_span(name, self._parent, self._attributes)

    def encode_payload(self, encode: Callable[[], T]) -> T:
        """Return the result of ``encode`` for a call that has begun, inside a span for the encoding."""
        if self._awaits_labels:
            self._take_labels()
        span = self._telemetry.begin_child(ENCODING, self.span, self._common)
        try:
            return encode()
        finally:
            self._telemetry.end_span(span)

    def dispatched(
        self, attempt: Hashable, attributes: Mapping[str, AttributeValue], *, part: PartSpans | None = None
    ) -> None:
        """Begin the span of an attempt.

        Args:
            attempt: key of the attempt, different from those of all other attempts in flight.
            part: the operation, if the call makes several operations.
        """
        if self._awaits_labels:
            self._take_labels()
        self._count_retry(part)
        self._attempts[attempt] = self._telemetry.begin_child(DISPATCH, self.span, {**self._common, **attributes})

    def answered(self, attempt: Hashable, attributes: Mapping[str, AttributeValue]) -> None:
        """End the span of an attempt."""
        if self._awaits_labels:
            self._take_labels()
        if self._late_labels:
            attributes = {**self._late_labels, **attributes}
        self._telemetry.end_span(self._attempts.pop(attempt, None), attributes)

    def retried(self, report: ReportRetry, *, part: PartSpans | None = None) -> None:
        """Add the event of a scheduled retry, with its reason.

        Args:
            part: the operation, if the call makes several operations.
        """
        self._count_retry(part)
        if report.dispatches:
            self._retries_due.add(part)
        self._telemetry.add_event(self.span, *retry_event(report.reason, report.delay, dispatches=report.dispatches))

    def _count_retry(self, part: PartSpans | None) -> None:
        """Count the newest retry of an operation when it is sent or has failed."""
        if part in self._retries_due:
            self._retries_due.discard(part)
            self._retries += 1

    def refused(self, report: ReportRefusal, *, part: PartSpans | None = None) -> None:
        """Add the event of a refused retry, with its reason.

        Args:
            part: the operation, if the call makes several operations.
        """
        self._count_retry(part)
        self._telemetry.add_event(self.span, *refusal_event(report.reason, report.error))

    def part_ended(self, part: PartSpans) -> None:
        """Drop the unsent retry of an operation."""
        self._retries_due.discard(part)

    def part(self) -> PartSpans:
        """Return the spans of one operation in a call that makes several operations."""
        return PartSpans(self)

    def in_span(self, write: Callable[[V], None], report: V) -> None:
        """Pass ``report`` to ``write`` while the outer span is the current span."""
        with self._telemetry.current(self.span):
            write(report)

    def end(self, error: BaseException | None) -> None:
        """End all open spans, and record the duration: the call is over.

        Args:
            error: exception that the caller gets; None for a result.
        """
        if isinstance(error, self.expected):
            error = None
        self._end(None if error is None else error_type(error), outer_status(error))

    def abandon(self, reason: AbandonReason, *, is_ambiguous: bool = False) -> None:
        """End all open spans: the caller has left. Record the duration unless the result is no longer needed.

        Args:
            is_ambiguous: whether the call may have been or may still be applied.
        """
        match reason:
            case AbandonReason.TIMEOUT:
                kind = errors.AmbiguousTimeoutException if is_ambiguous else errors.UnambiguousTimeoutException
                self._end(ERROR_TYPES[kind], StatusCode.ERROR)
            case AbandonReason.CANCELLED:
                self._end(CANCELLED, StatusCode.UNSET)
            case AbandonReason.NOT_NEEDED:
                self._is_measured = False
                self._end(None, StatusCode.UNSET)
            case _:
                assert_never(reason)

    def _end(self, failed_with: str | None, status: StatusCode) -> None:
        if self._began_at is None:
            return
        if self._awaits_labels:
            self._take_labels()
        late: dict[str, AttributeValue] = {**self._late_labels}
        for span in self._attempts.values():
            self._telemetry.end_span(span, late)
        self._attempts.clear()
        self._retries_due.clear()
        if failed_with is not None:
            late[ERROR_TYPE] = failed_with
        self._attributes = {**self._attributes, **late}
        if self._is_measured:
            took = trio.current_time() - self._began_at
            # Use the context of the caller: the driver's tasks have the context of the task that opened the cluster.
            self._context.run(self._telemetry.record, self.span, took, self._attributes)
        self._telemetry.end_span(self.span, {**late, RETRIES: self._retries}, status)
        self._began_at = None

    def _take_labels(self) -> None:
        """Store the labels of the first config, if it has arrived, for spans that begin or end later."""
        labels = self._telemetry.cluster_labels()
        if labels is not NO_LABELS:
            self._awaits_labels, self._late_labels = False, labels
            self._common = {**self._common, **labels}


class PartSpans:
    """Spans of one operation in a call that makes several operations: a span for each attempt, inside the call's span.

    Two operations of the call may use the same stream, so each operation has its own attempts.
    """

    def __init__(self, call: CallSpans) -> None:
        self._call = call
        self._streams = set[StreamId]()
        """Streams of attempts in flight."""

    def encode_payload(self, encode: Callable[[], T]) -> T:
        """Return the result of ``encode``, inside a separate span."""
        return self._call.encode_payload(encode)

    def in_span(self, write: Callable[[V], None], report: V) -> None:
        """Pass ``report`` to ``write`` while the span of the call is the current span."""
        self._call.in_span(write, report)

    def dispatched(self, stream: StreamId, attributes: Mapping[str, AttributeValue]) -> None:
        """Begin the span of an attempt."""
        self._streams.add(stream)
        self._call.dispatched((id(self), stream), attributes, part=self)

    def retried(self, report: ReportRetry) -> None:
        """Add the event of a scheduled retry, with its reason."""
        self._call.retried(report, part=self)

    def refused(self, report: ReportRefusal) -> None:
        """Add the event of a refused retry, with its reason."""
        self._call.refused(report, part=self)

    def answered(self, stream: StreamId, attributes: Mapping[str, AttributeValue]) -> None:
        """End the span of the attempt on a stream."""
        self._streams.discard(stream)
        self._call.answered((id(self), stream), attributes)

    def end(self, error: BaseException | None) -> None:
        """End the spans of all attempts. The call decides whether an error of one operation is an error of the call."""
        for stream in tuple(self._streams):
            self.answered(stream, {})
        self._call.part_ended(self)

    def abandon(self, reason: AbandonReason, *, is_ambiguous: bool = False) -> None:
        """End the spans of all attempts, because the call is over or its caller has left."""
        self.end(None)
