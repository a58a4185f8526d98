"""Protocol of tracers and spans.

The user supplies the tracer. The client calls it from the task of the operation or from its background tasks; none of
these methods may block. The client logs and suppresses their exceptions: no operation fails because of them.

Source: SDK-RFC 0067 "Request Tracing".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from inspect import Parameter, signature
from typing import Protocol, TypeGuard, TypeVar, runtime_checkable

from triclinium_core import errors
from triclinium_core.shown import shown

T = TypeVar("T")

AttributeValue = str | int | float | bool
"""Type of an attribute."""


@unique
class StatusCode(Enum):
    """Status of a span."""

    UNSET = "unset"
    """No status was set."""
    OK = "ok"
    ERROR = "error"


class RequestSpan(Protocol):
    """One period of time, from ``request_span`` to ``end``, which is called exactly once.

    A tracer without events, attributes or status ignores them.
    """

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        """Set an attribute of the span; a later value of the same key wins."""
        ...

    def add_event(
        self, name: str, attributes: Mapping[str, AttributeValue] | None = None, timestamp: float | None = None
    ) -> None:
        """Add an event that happened during the span.

        Args:
            timestamp: seconds since the epoch; None for now.
        """
        ...

    def set_status(self, code: StatusCode) -> None:
        """Set the status of the span."""
        ...

    def end(self) -> None:
        """End the span now."""
        ...


@runtime_checkable
class RequestTracer(Protocol):
    """Factory of spans.

    If ``request_span`` has a parameter ``attributes``, it receives the attributes that are known when the span begins,
    for example for a sampler. They are not set again afterwards. Otherwise the client sets them on the new span.
    """

    def request_span(self, name: str, parent: RequestSpan | None = None) -> RequestSpan:
        """Begin a span now.

        Args:
            parent: parent span; None for the tracer's choice, such as the current span of the calling task.
        """
        ...


class AttributedTracer(Protocol):
    """A tracer whose spans begin with attributes."""

    def request_span(
        self,
        name: str,
        parent: RequestSpan | None = None,
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> RequestSpan:
        """Begin a span now, with ``attributes``."""
        ...


def takes_attributes(tracer: object) -> TypeGuard[AttributedTracer]:
    """Return whether the tracer's ``request_span`` has a parameter named ``attributes``."""
    try:
        parameter = signature(tracer.request_span).parameters.get("attributes")  # type: ignore[attr-defined]
    except Exception:
        # The tracer is user code: its method may have no signature, or raise any exception.
        return False
    return parameter is not None and parameter.kind in _NAMED


_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
"""Kinds of parameters that can be passed by name."""


SPAN_METHODS = ("set_attribute", "add_event", "set_status", "end")
"""Methods of a ``RequestSpan``."""


def is_span(value: object) -> bool:
    """Return whether ``value`` is an object with the methods of a ``RequestSpan``."""
    if isinstance(value, type):
        return False
    try:
        return all(callable(getattr(value, name, None)) for name in SPAN_METHODS)
    except Exception:
        # A tracer's object may raise any exception. Treat it as no span, so that the tracer breaks no operation.
        return False


def check_parent(span: T) -> T:
    """Return the parent span of a call, or None.

    Raises:
        InvalidArgumentException: ``span`` is not a ``RequestSpan``; the argument is called ``parent_span``.
    """
    if span is None or is_span(span):
        return span
    missing = [name for name in SPAN_METHODS if not callable(getattr(span, name, None))]
    hint = f"it lacks {', '.join(missing)}" if missing else "it is a class"
    raise errors.InvalidArgumentException(
        f"parent_span={shown(span)} must be a span of the cluster's tracer, with the methods "
        f"{', '.join(SPAN_METHODS)}, or None; {hint}",
        parameter="parent_span",
    )
