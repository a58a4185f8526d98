"""Protocols of tracers and spans.

The user supplies the tracer. The client calls the methods of tracers and spans in the task of the operation or in
background tasks of the client, so they must not block. The client logs and suppresses their exceptions, so that no
operation fails because of them.

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
    """The client has set no status."""
    OK = "ok"
    ERROR = "error"


class RequestSpan(Protocol):
    """Span of time from ``request_span`` to ``end``. The client calls ``end`` exactly once.

    A tracer that does not support attributes, events or the status ignores them.
    """

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        """Set an attribute of the span. A later value replaces an earlier value with the same key."""
        ...

    def add_event(
        self, name: str, attributes: Mapping[str, AttributeValue] | None = None, timestamp: float | None = None
    ) -> None:
        """Add an event that happened during the span.

        Args:
            timestamp: time of the event in seconds since the epoch; None for now.
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

    If ``request_span`` has a parameter ``attributes``, the client passes the attributes that are known when the span
    begins, so that a sampler can use them. Otherwise the client sets these attributes on the new span.
    """

    def request_span(self, name: str, parent: RequestSpan | None = None) -> RequestSpan:
        """Begin a span now.

        Args:
            parent: parent span; None to let the tracer choose, for example the current span of the calling task.
        """
        ...


class AttributedTracer(Protocol):
    """Tracer whose ``request_span`` has a parameter ``attributes``."""

    def request_span(
        self,
        name: str,
        parent: RequestSpan | None = None,
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> RequestSpan:
        """Begin a span now, with ``attributes``."""
        ...


def takes_attributes(tracer: object) -> TypeGuard[AttributedTracer]:
    """Return whether ``request_span`` of the tracer has a parameter ``attributes`` that can be passed by name."""
    try:
        parameter = signature(tracer.request_span).parameters.get("attributes")  # type: ignore[attr-defined]
    except Exception:
        # The tracer is user code: its method may have no signature, and inspecting it may raise any exception.
        return False
    return parameter is not None and parameter.kind in _NAMED


_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
"""Kinds of parameters that can be passed by name."""


SPAN_METHODS = ("set_attribute", "add_event", "set_status", "end")
"""Methods of a ``RequestSpan``."""


def is_span(value: object) -> bool:
    """Return whether ``value`` is an object with the methods of a ``RequestSpan``."""
    return not isinstance(value, type) and not _missing_methods(value)


def _missing_methods(value: object) -> list[str]:
    """Return the methods of a ``RequestSpan`` that ``value`` lacks, or that raise when they are looked up."""
    missing = []
    for name in SPAN_METHODS:
        try:
            is_method = callable(getattr(value, name, None))
        except Exception:
            # An object of the user may raise any exception; the caller gets the name of the method instead.
            is_method = False
        if not is_method:
            missing.append(name)
    return missing


def check_parent(span: T) -> T:
    """Return ``span``, the parent span of a call or None, if it is valid.

    Raises:
        InvalidArgumentException: ``span`` is neither None nor a ``RequestSpan``. The error calls it ``parent_span``.
    """
    if span is None or is_span(span):
        return span
    missing = _missing_methods(span)
    hint = f"it lacks {', '.join(missing)}" if missing else "it is a class"
    raise errors.InvalidArgumentException(
        f"parent_span={shown(span)} must be a span of the cluster's tracer, with the methods "
        f"{', '.join(SPAN_METHODS)}, or None; {hint}",
        parameter="parent_span",
    )
