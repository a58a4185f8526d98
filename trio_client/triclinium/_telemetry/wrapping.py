"""Calls that wrap operations. The span of a call is the parent of the spans of its operations, or they share it.

A separate span of an operation has the operation's error, such as ``IndexExists``, even if the call ignores that error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import trio

from triclinium._deadlines import Report, abandon_reason, noted
from triclinium._telemetry.call_spans import CallSpans
from triclinium._telemetry.telemetry import Telemetry
from triclinium_core import errors
from triclinium_core.telemetry.attributes import SERVICE
from triclinium_core.telemetry.span_names import WrappingCall
from triclinium_core.telemetry.tracing import AttributeValue, RequestSpan, check_parent


class SharedCall(NamedTuple):
    """Call whose operations share one span and one duration. It is passed as the ``parent`` of each operation."""

    spans: CallSpans | None
    """Spans of the call; None without a tracer and a meter."""


class Wrapping(NamedTuple):
    """Kind, parent span and attributes of a call that wraps operations."""

    call: WrappingCall
    parent: RequestSpan | None
    about: Mapping[str, AttributeValue]

    def begin(self, telemetry: Telemetry | None, *, is_measured: bool = False) -> CallSpans | None:
        """Begin the span of the call, and return the call's spans; None without a tracer and a meter.

        Args:
            is_measured: whether the meter records the call; otherwise it records each of its operations.
        """
        if telemetry is None:
            return None
        spans = CallSpans(telemetry, self.parent, is_measured=is_measured)
        spans.begin(self.call.value, {SERVICE: str(self.call.service), **self.about})
        return spans

    @asynccontextmanager
    async def around(self, telemetry: Telemetry | None) -> AsyncIterator[RequestSpan | None]:
        """Begin the span of the call, yield it as the parent of the operations, and end it after the block.

        Without a tracer and a meter, yield the call's parent. Entering is a checkpoint only if it raises.

        Raises:
            InvalidArgumentException: the parent is not a span.
        """
        try:
            check_parent(self.parent)
        except errors.InvalidArgumentException:
            await trio.lowlevel.checkpoint()
            raise
        spans = self.begin(telemetry)
        if spans is None:
            yield self.parent
            return
        report = Report()
        try:
            with noted(report):
                yield spans.as_parent
        except trio.Cancelled:
            spans.abandon(abandon_reason(trio.lowlevel.current_task()), is_ambiguous=report.is_ambiguous)
            raise
        except BaseException as error:
            spans.end(error)
            raise
        spans.end(None)
