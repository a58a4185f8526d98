"""Tracer and meter that record everything, and check the rules of spans."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from triclinium.telemetry import RequestSpan, StatusCode

Attribute = str | int | float | bool

current_span: ContextVar[RequestSpan | None] = ContextVar("current_span", default=None)
"""Parent of each span that is started without a parent, as in OpenTelemetry."""


@dataclass(eq=False)
class RecordedSpan:
    """One span."""

    name: str
    parent: RequestSpan | None
    attributes: dict[str, Attribute] = field(default_factory=dict)
    events: list[tuple[str, Mapping[str, Attribute]]] = field(default_factory=list)
    status: StatusCode = StatusCode.UNSET
    ends: int = 0
    """Number of calls of ``end``."""
    children: list[RecordedSpan] = field(default_factory=list)
    reported_late: list[str] = field(default_factory=list)
    """Calls that broke a rule: after the end, for a fixed attribute, or ``end`` before the end of a child."""
    fixed: frozenset[str] = frozenset()
    """Attributes given when the span was started."""

    def set_attribute(self, key: str, value: Attribute) -> None:
        """Record an attribute."""
        self._check(key)
        self.attributes[key] = value

    def add_event(
        self, name: str, attributes: Mapping[str, Attribute] | None = None, timestamp: float | None = None
    ) -> None:
        """Record an event."""
        self._check(name)
        self.events.append((name, attributes or {}))

    def set_status(self, code: StatusCode) -> None:
        """Record the status."""
        self._check(code.name)
        self.status = code

    def end(self) -> None:
        """Count the end, and check that all children have ended."""
        self.reported_late += [f"end before {child.name}" for child in self.children if not child.ends]
        self.ends += 1

    def _check(self, reported: str) -> None:
        # Record a broken rule for the test. An exception would not reach it, because the client logs those of a tracer.
        if self.ends or reported in self.fixed:
            self.reported_late.append(reported)

    def shape(self) -> object:
        """Return the name of a span without children, or a tuple of the name and the shapes of its children."""
        return (self.name, *(child.shape() for child in self.children)) if self.children else self.name


@dataclass(eq=False)
class RecordingTracer:
    """Tracer that keeps all spans, oldest first."""

    spans: list[RecordedSpan] = field(default_factory=list)

    def request_span(self, name: str, parent: RequestSpan | None = None) -> RecordedSpan:
        """Start a span, by default as a child of the current one."""
        parent = parent if parent is not None else current_span.get()
        span = RecordedSpan(name, parent)
        if isinstance(parent, RecordedSpan):
            parent.children.append(span)
        self.spans.append(span)
        return span

    @property
    def roots(self) -> list[RecordedSpan]:
        """Spans without a parent."""
        return [span for span in self.spans if span.parent is None]

    def shapes(self) -> list[object]:
        """Return the names of all spans, nested like the spans."""
        return [span.shape() for span in self.roots]

    def of(self, name: str) -> list[RecordedSpan]:
        """Return the spans with this name."""
        return [span for span in self.spans if span.name == name]

    @property
    def broken_rules(self) -> list[str]:
        """Names of spans that are open, ended more than once, or broke a rule of ``reported_late``."""
        return [span.name for span in self.spans if span.ends != 1 or span.reported_late]


@dataclass(eq=False)
class RecordingMeter:
    """Meter that keeps all values, oldest first: metric, tags and microseconds."""

    values: list[tuple[str, Mapping[str, str], int]] = field(default_factory=list)

    def value_recorder(self, name: str, tags: Mapping[str, str]) -> _Recorder:
        """Return a recorder of values with these tags."""
        return _Recorder(self, name, dict(tags))


@dataclass(frozen=True)
class _Recorder:
    meter: RecordingMeter
    name: str
    tags: Mapping[str, str]

    def record_value(self, microseconds: int) -> None:
        """Record the value."""
        self.meter.values.append((self.name, self.tags, microseconds))
