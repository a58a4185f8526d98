"""One call: its outer span, the spans of its encoding and of its attempts, and how long it takes.

The spans of a call are begun in the task of the caller, so that a tracer finds the parent in that task's context; the
driver's own tasks end them.
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
"""The ``error.type`` of a call whose task was cancelled (SDK-RFC 0058, 2)."""

encoding_call: ContextVar[CallSpans | None] = ContextVar("triclinium.encoding_call", default=None)
"""The call whose operation is being made; None without a tracer and a meter."""


class CallSpans:
    """Span and metric of one call. Either ``end`` or ``abandon`` is called once for each call.

    Args:
        telemetry: who is told.
        parent: of the outer span; None for what the tracer takes for it.
        is_measured: whether the meter is told as well; a call that wraps several is not, for each of them is.
    """

    def __init__(self, telemetry: Telemetry, parent: RequestSpan | None, *, is_measured: bool = True) -> None:
        self.span: RequestSpan | None = None
        """The outer span; None before ``begin``, and where there is no tracer, or it failed."""
        self.expected: tuple[type[Exception], ...] = ()
        """Errors that the caller does not get: they stand for a result."""
        self._telemetry = telemetry
        self._parent = parent
        self._is_measured = is_measured
        self._context = copy_context()
        self._common: Mapping[str, AttributeValue] = {}
        """Attributes of all spans that begin now."""
        self._awaits_labels = False
        """Whether the call has begun before the first config, which brings the labels of the cluster."""
        self._late_labels: Mapping[str, str] = {}
        """Labels that arrived after the outer span had begun."""
        self._attributes: dict[str, AttributeValue] = {}
        self._began_at: float | None = None
        self._attempts: dict[Hashable, RequestSpan | None] = {}
        """Those under way, by the stream on which each travels; of a call of several operations also by operation."""
        self._retries = 0
        self._retries_due = set[PartSpans | None]()
        """Operations whose newest retry has not been sent yet; None stands for that of a call of one operation."""

    @property
    def as_parent(self) -> RequestSpan | None:
        """The outer span, for what is called on behalf of the call; None also where the tracer made what is no span."""
        return self.span if is_span(self.span) else None

    def begin(self, name: str, attributes: Mapping[str, AttributeValue]) -> None:
        """Begin the outer span with the attributes of the call, or add those that encoding did not know.

        Args:
            name: the RFC's identifier.
        """
        if self._began_at is None:
            self._began_at = trio.current_time()
            labels = self._telemetry.cluster_labels()
            self._awaits_labels = labels is NO_LABELS
            self._common = {SYSTEM_NAME: COUCHBASE, **labels}
            self._attributes = {**self._common, OPERATION_NAME: name, **attributes}
            self.span = self._telemetry.begin_span(name, self._parent, self._attributes)
            return
        new = {key: value for key, value in attributes.items() if key not in self._attributes}
        self._attributes = {**self._attributes, **new}
        self._telemetry.set_attributes(self.span, new)

    def encode(self, name: str, attributes: Mapping[str, AttributeValue], function: Callable[[V], T], value: V) -> T:
        """Return the result of ``function``, and begin the outer span and a span for the encoding.

        Args:
            name: the identifier of the operation that the value is for.
            attributes: those of the operation, which does not exist yet.
        """
        self.begin(name, attributes)
        return self.encode_payload(lambda: function(value))

    def encode_payload(self, encode: Callable[[], T]) -> T:
        """Return what ``encode`` makes in a call that has begun, and tell how long that takes."""
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
        """Begin the span of an attempt, which no other attempt under way equals.

        Args:
            part: the operation, of a call that takes several.
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
        """Add the event of a retry that was decided, with its reason.

        Args:
            part: the operation, of a call that takes several.
        """
        self._count_retry(part)
        if report.dispatches:
            self._retries_due.add(part)
        self._telemetry.add_event(self.span, *retry_event(report.reason, report.delay, dispatches=report.dispatches))

    def _count_retry(self, part: PartSpans | None) -> None:
        """Count the newest retry of an operation, now that it is sent or has failed."""
        if part in self._retries_due:
            self._retries_due.discard(part)
            self._retries += 1

    def refused(self, report: ReportRefusal, *, part: PartSpans | None = None) -> None:
        """Add the event of a retry that was refused, with its reason.

        Args:
            part: the operation, of a call that takes several.
        """
        self._count_retry(part)
        self._telemetry.add_event(self.span, *refusal_event(report.reason, report.error))

    def part_ended(self, part: PartSpans) -> None:
        """Drop the retry of an operation that has not been sent."""
        self._retries_due.discard(part)

    def part(self) -> PartSpans:
        """Return the spans of an operation of a call that takes several."""
        return PartSpans(self)

    def in_span(self, write: Callable[[V], None], report: V) -> None:
        """Pass ``report`` to ``write`` while the outer span is the current span."""
        with self._telemetry.current(self.span):
            write(report)

    def end(self, error: BaseException | None) -> None:
        """End all that is open: the call is over.

        Args:
            error: what the caller gets instead of a result.
        """
        if isinstance(error, self.expected):
            error = None
        self._end(None if error is None else error_type(error), outer_status(error))

    def abandon(self, reason: AbandonReason, *, is_ambiguous: bool = False) -> None:
        """End all that is open: the caller has left.

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
            # In the context of the caller: the driver's tasks have that of whoever opened the cluster.
            self._context.run(self._telemetry.record, self.span, took, self._attributes)
        self._telemetry.end_span(self.span, {**late, RETRIES: self._retries}, status)
        self._began_at = None

    def _take_labels(self) -> None:
        """Keep the labels of the cluster for spans that begin or end from now on, if the first config has arrived."""
        labels = self._telemetry.cluster_labels()
        if labels is not NO_LABELS:
            self._awaits_labels, self._late_labels = False, labels
            self._common = {**self._common, **labels}


class PartSpans:
    """Spans of one operation of a call that takes several: those of its attempts, inside the span of the call.

    Two operations of the call may travel on the same stream, so each has attempts of its own.
    """

    def __init__(self, call: CallSpans) -> None:
        self._call = call
        self._streams = set[StreamId]()
        """Those on which attempts are under way."""

    def encode_payload(self, encode: Callable[[], T]) -> T:
        """Return the result of ``encode`` inside a span of its own."""
        return self._call.encode_payload(encode)

    def in_span(self, write: Callable[[V], None], report: V) -> None:
        """Pass ``report`` to ``write`` while the span of the call is the current span."""
        self._call.in_span(write, report)

    def dispatched(self, stream: StreamId, attributes: Mapping[str, AttributeValue]) -> None:
        """Begin the span of an attempt."""
        self._streams.add(stream)
        self._call.dispatched((id(self), stream), attributes, part=self)

    def retried(self, report: ReportRetry) -> None:
        """Add the event of a retry that was decided, with its reason."""
        self._call.retried(report, part=self)

    def refused(self, report: ReportRefusal) -> None:
        """Add the event of a retry that was refused, with its reason."""
        self._call.refused(report, part=self)

    def answered(self, stream: StreamId, attributes: Mapping[str, AttributeValue]) -> None:
        """End the span of the attempt that travels on a stream."""
        self._streams.discard(stream)
        self._call.answered((id(self), stream), attributes)

    def end(self, error: BaseException | None) -> None:
        """End all attempts. The call decides whether an error of one of its operations is its own."""
        for stream in tuple(self._streams):
            self.answered(stream, {})
        self._call.part_ended(self)

    def abandon(self, reason: AbandonReason, *, is_ambiguous: bool = False) -> None:
        """End all attempts: the call is over, or its caller has left."""
        self.end(None)
