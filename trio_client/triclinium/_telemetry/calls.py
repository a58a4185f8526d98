"""Open calls whose spans and durations go to a tracer or a meter."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import trio

from triclinium._telemetry.call_spans import CallSpans, PartSpans, encoding_call
from triclinium._telemetry.telemetry import Telemetry
from triclinium._telemetry.wrapping import SharedCall
from triclinium_core.client.call_attributes import Asked, attributes_of, name_of
from triclinium_core.contract import couchbase
from triclinium_core.contract.neutral import Token
from triclinium_core.telemetry.tracing import RequestSpan, check_parent

P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V")
A = TypeVar("A", bound=Asked)


class Calls:
    """Open calls by token. Unknown tokens are ignored: their calls are not observed, or have ended.

    Args:
        telemetry: receives spans and durations; None without a tracer and a meter.
    """

    def __init__(self, telemetry: Telemetry | None) -> None:
        self.open: dict[Token, CallSpans | PartSpans] = {}
        self._telemetry = telemetry

    def observed(self, token: Token, parent: RequestSpan | SharedCall | None, make: Callable[P, A]) -> Callable[P, A]:
        """Return a function that builds an operation or a request like ``make``, and begins its call.

        If ``make`` raises before it encodes a value, as for an invalid key, there is no span. If it raises later, the
        function ends the spans that it has begun.

        Args:
            parent: parent of the outer span, None for the tracer's choice, or the call whose span the operation shares.

        Raises:
            InvalidArgumentException: the returned function raises it if ``parent`` is not a span, even without a
                tracer.
        """

        def made(*args: P.args, **kwargs: P.kwargs) -> A:
            if isinstance(parent, SharedCall):
                if parent.spans is not None:
                    self.open[token] = parent.spans.part()
                return make(*args, **kwargs)
            check_parent(parent)
            if self._telemetry is None:
                return make(*args, **kwargs)
            call = CallSpans(self._telemetry, parent)
            encoding = encoding_call.set(call)
            try:
                asked = make(*args, **kwargs)
            except BaseException as error:
                call.end(error)
                raise
            finally:
                encoding_call.reset(encoding)
            call.begin(name_of(asked), attributes_of(asked))
            self.open[token] = call
            return asked

        return made

    def retried(self, action: couchbase.ReportRetry) -> None:
        """Record the decision to retry a call."""
        call = self.open.get(action.token)
        if call is not None:
            call.retried(action)

    def refused(self, action: couchbase.ReportRefusal) -> None:
        """Record that a call is not retried."""
        call = self.open.get(action.token)
        if call is not None:
            call.refused(action)

    def in_span(self, token: Token, write: Callable[[V], None], report: V) -> None:
        """Pass ``report`` to ``write`` while the outer span of the call, if it has one, is the current span."""
        call = self.open.get(token)
        if call is None:
            write(report)
        else:
            call.in_span(write, report)

    def encoding(self, token: Token) -> Callable[[Callable[[], T]], tuple[T, float]]:
        """Return a function that encodes a payload, in a span if the call has one, and returns it with the seconds it took."""

        def encoded(encode: Callable[[], T]) -> tuple[T, float]:
            call, began_at = self.open.get(token), trio.current_time()
            payload = encode() if call is None else call.encode_payload(encode)
            return payload, trio.current_time() - began_at

        return encoded

    def dispatched(self, action: couchbase.ReportDispatch) -> None:
        """Begin the span of an attempt."""
        call = self.open.get(action.token)
        if call is not None:
            call.dispatched(action.stream, action.attributes)

    def answered(self, action: couchbase.ReportAnswer) -> None:
        """End the span of an attempt."""
        call = self.open.get(action.token)
        if call is not None:
            call.answered(action.stream, action.attributes)

    def ended(self, action: couchbase.ReportEnd) -> None:
        """Record the end of a request whose rows may not have been read yet."""
        self.end(action.token, action.error)

    def end(self, token: Token, error: BaseException | None) -> None:
        """Record the end of a call. Ignore a call that has ended."""
        call = self.open.pop(token, None)
        if call is not None:
            call.end(error)

    def abandon(self, token: Token, reason: couchbase.AbandonReason, *, is_ambiguous: bool = False) -> None:
        """End a call whose caller has left.

        Args:
            is_ambiguous: whether the call may have been or may still be applied.
        """
        call = self.open.pop(token, None)
        if call is not None:
            call.abandon(reason, is_ambiguous=is_ambiguous)

    def end_all(self, error: Exception) -> None:
        """End all calls with ``error``."""
        for token in tuple(self.open):
            self.end(token, error)
