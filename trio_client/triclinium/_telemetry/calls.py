"""The calls that a tracer or a meter is told of, until they are over."""

from __future__ import annotations

from triclinium._telemetry.call_spans import CallSpans
from triclinium_core.client.actions import ReportAnswer, ReportDispatch, ReportRefusal, ReportRetry
from triclinium_core.client.events import Token


class Calls:
    """By token. Unknown ones are ignored: nobody is told of them, or their callers have left."""

    def __init__(self) -> None:
        self.open: dict[Token, CallSpans] = {}

    def retried(self, action: ReportRetry) -> None:
        """Tell that a call will be retried."""
        call = self.open.get(action.token)
        if call is not None:
            call.retried(action)

    def refused(self, action: ReportRefusal) -> None:
        """Tell that a call is not retried."""
        call = self.open.get(action.token)
        if call is not None:
            call.refused(action)

    def dispatched(self, action: ReportDispatch) -> None:
        """Begin the span of an attempt."""
        call = self.open.get(action.token)
        if call is not None:
            call.dispatched(action.attributes)

    def answered(self, action: ReportAnswer) -> None:
        """End the span of an attempt."""
        call = self.open.get(action.token)
        if call is not None:
            call.answered(action.attributes)

    def end(self, token: Token, error: BaseException | None) -> None:
        """Tell how a call has ended."""
        call = self.open.pop(token, None)
        if call is not None:
            call.end(error)

    def cancel(self, token: Token) -> None:
        """Tell that the caller has left."""
        call = self.open.pop(token, None)
        if call is not None:
            call.cancel()

    def end_all(self, error: Exception) -> None:
        """Tell that all calls have ended so."""
        for token in tuple(self.open):
            self.end(token, error)
