"""Calls into a user's tracer or meter, whose errors do not fail the operation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar, runtime_checkable

from triclinium_core.shown import shown
from triclinium_core.telemetry.tracing import AttributeValue, RequestSpan, RequestTracer, takes_attributes

T = TypeVar("T")

logger = logging.getLogger("triclinium.telemetry")


@runtime_checkable
class CurrentSpan(RequestSpan, Protocol):
    """Span that can be made the current one, so that new spans become its children."""

    def as_current(self) -> AbstractContextManager[object]:
        """Make the span the current span of the task during a block."""
        ...


class Guard:
    """Caller of a user's methods. It logs the first exception that any of them raises, and ignores all later ones.

    Args:
        subject: the tracer or the meter, which the log names.
    """

    def __init__(self, subject: object) -> None:
        self._subject = subject
        self._attributed = subject if takes_attributes(subject) else None
        """The subject if it is a tracer that accepts attributes for a new span."""
        self._has_failed = False

    def __call__(self, use: Callable[[], T]) -> T | None:
        """Return the result of ``use``; None if it raises an Exception.

        Args:
            use: looks up the method and calls it. The lookup may raise too, for example because the method is missing.
        """
        try:
            return use()
        except Exception:
            if not self._has_failed:
                self._has_failed = True
                logger.exception(
                    "%s failed, which does not affect the operation; its further failures are not logged",
                    shown(self._subject),
                )
            return None

    @contextmanager
    def current(self, span: RequestSpan | None) -> Iterator[None]:
        """Make ``span`` the current span during a block, if there is a span and its tracer supports this."""
        current = self(span.as_current) if isinstance(span, CurrentSpan) else None
        if current is not None:
            self(lambda: current.__enter__())  # noqa: PLW0108  # the method may be missing
        try:
            yield
        finally:
            if current is not None:
                self(lambda: current.__exit__(None, None, None))

    def begin_span(
        self, tracer: RequestTracer, name: str, parent: RequestSpan | None, attributes: Mapping[str, AttributeValue]
    ) -> RequestSpan | None:
        """Return a new span with attributes, which the tracer gets at creation if it supports this; None on failure."""
        attributed = self._attributed
        if attributed is not None:
            return self(lambda: attributed.request_span(name, parent, attributes=attributes))
        span = self(lambda: tracer.request_span(name, parent))
        if span is not None:
            for key, value in attributes.items():
                self.set_attribute(span, key, value)
        return span

    def set_attribute(self, span: RequestSpan, key: str, value: AttributeValue) -> None:
        """Set an attribute of a span."""
        self(lambda: span.set_attribute(key, value))
