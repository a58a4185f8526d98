"""A tracer and a meter that keep what they are told, and hold the client to the rules of spans."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from triclinium import RequestSpan, StatusCode

Attribute = str | int | float | bool

current_span: ContextVar[RequestSpan | None] = ContextVar("current_span", default=None)
"""What the tracer takes for the parent where none is given, as OpenTelemetry does."""


@dataclass(eq=False)
class RecordedSpan:
    """One span."""

    name: str
    parent: RequestSpan | None
    attributes: dict[str, Attribute] = field(default_factory=dict)
    events: list[tuple[str, Mapping[str, Attribute]]] = field(default_factory=list)
    status: StatusCode = StatusCode.UNSET
    ends: int = 0
    """How often it was ended."""
    children: list[RecordedSpan] = field(default_factory=list)
    told_late: list[str] = field(default_factory=list)
    """What was told when it was over, or when what is inside of it was not."""
    fixed: frozenset[str] = frozenset()
    """Attributes that the span began with."""

    def set_attribute(self, key: str, value: Attribute) -> None:
        """Keep it."""
        self._check(key)
        self.attributes[key] = value

    def add_event(
        self, name: str, attributes: Mapping[str, Attribute] | None = None, timestamp: float | None = None
    ) -> None:
        """Keep it."""
        self._check(name)
        self.events.append((name, attributes or {}))

    def set_status(self, code: StatusCode) -> None:
        """Keep it."""
        self._check(code.name)
        self.status = code

    def end(self) -> None:
        """Count it; what is inside of it is over by now."""
        self.told_late += [f"end before {child.name}" for child in self.children if not child.ends]
        self.ends += 1

    def _check(self, told: str) -> None:
        # The client logs what a tracer raises, and goes on: it is kept for the test to see.
        if self.ends or told in self.fixed:
            self.told_late.append(told)

    def shape(self) -> object:
        """Return its name alone, or with those inside of it, in order."""
        return (self.name, *(child.shape() for child in self.children)) if self.children else self.name


@dataclass(eq=False)
class RecordingTracer:
    """Keeps all spans, oldest first."""

    spans: list[RecordedSpan] = field(default_factory=list)

    def request_span(self, name: str, parent: RequestSpan | None = None) -> RecordedSpan:
        """Begin a span, inside of the one that is current where no other is given."""
        parent = parent if parent is not None else current_span.get()
        span = RecordedSpan(name, parent)
        if isinstance(parent, RecordedSpan):
            parent.children.append(span)
        self.spans.append(span)
        return span

    @property
    def roots(self) -> list[RecordedSpan]:
        """Those that are inside of no other."""
        return [span for span in self.spans if span.parent is None]

    def shapes(self) -> list[object]:
        """Return the names of all spans, nested as the spans are."""
        return [span.shape() for span in self.roots]

    def of(self, name: str) -> list[RecordedSpan]:
        """Return the spans with a name."""
        return [span for span in self.spans if span.name == name]

    @property
    def broken_rules(self) -> list[str]:
        """The names of spans that are open, were ended more than once, or were told something when they were over."""
        return [span.name for span in self.spans if span.ends != 1 or span.told_late]


@dataclass(eq=False)
class RecordingMeter:
    """Keeps all values, oldest first: metric, tags and microseconds."""

    values: list[tuple[str, Mapping[str, str], int]] = field(default_factory=list)

    def value_recorder(self, name: str, tags: Mapping[str, str]) -> _Recorder:
        """Return what records under these tags."""
        return _Recorder(self, name, dict(tags))


@dataclass(frozen=True)
class _Recorder:
    meter: RecordingMeter
    name: str
    tags: Mapping[str, str]

    def record_value(self, microseconds: int) -> None:
        """Keep it."""
        self.meter.values.append((self.name, self.tags, microseconds))
