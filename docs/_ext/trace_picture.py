"""Picture of the trace of a retried write: ``python -m docs._ext.trace_picture`` records a trace and draws it.

The spans are real: a client writes to a fake node with the system's clock, and the OpenTelemetry SDK collects them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import trio
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from triclinium.opentelemetry import OpenTelemetryRequestTracer
from triclinium.testing import Opcode, open_fake_cluster, temporary_failure
from triclinium_core.telemetry.retry_events import DELAY, REASON, RETRY

PICTURE = Path(__file__).resolve().parents[1] / "howto" / "traces" / "retried_write.svg"
"""Path of the picture for the light theme; the picture for the dark theme is in the same folder."""
ALT_TEXT = (
    "A write as a tree of spans over time: its encoding, and three dispatches with a pause after each of two failures."
)

WIDTH, MARGIN = 880, 16
NAMES_WIDTH = 210
ROW, BAR, BAR_WIDTH_MIN = 28, 18, 2
TOP = 34
RECORDINGS = 200
"""Number of recordings. ``main`` draws the shortest one, because other processes disturbed it the least."""


class Theme(NamedTuple):
    """Colours of a picture."""

    text: str
    faint: str
    bars: Mapping[str, str]
    """Colours by the name of the span."""
    other: str
    """Colour of every other span."""
    event: str


THEMES: Mapping[str, Theme] = {
    "": Theme(
        text="#1f2328",
        faint="#d0d7de",
        bars={"upsert": "#0969da", "request_encoding": "#8250df", "dispatch_to_server": "#1a7f37"},
        other="#8c959f",
        event="#bc4c00",
    ),
    "-dark": Theme(
        text="#e6edf3",
        faint="#3d444d",
        bars={"upsert": "#4493f8", "request_encoding": "#ab7df8", "dispatch_to_server": "#3fb950"},
        other="#9198a1",
        event="#f0883e",
    ),
}
"""Themes, by the suffix of the file name."""


class Retry(NamedTuple):
    """Retry that an event of a span reports."""

    moment: int
    """Time of the decision in nanoseconds since the epoch."""
    reason: str
    delay: float
    """Delay in seconds."""


async def _write(provider: TracerProvider) -> None:
    async with (
        open_fake_cluster() as fake,
        fake.open_client(tracer=OpenTelemetryRequestTracer(provider), meter=None) as cluster,
    ):
        people = cluster.bucket("default").default_collection()
        # Connect and make Python load the code for writes and retries, so that the picture does not show this time.
        fake.node.faults.next(Opcode.SET, temporary_failure())
        await people.upsert("warm-up", 0)
        fake.node.faults.next(Opcode.SET, temporary_failure(), times=2)
        with provider.get_tracer("shop").start_as_current_span("checkout"):
            await people.upsert("ada", {"born": 1815})


def record() -> list[ReadableSpan]:
    """Return the spans of one write that is retried twice, each before its children."""
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trio.run(_write, provider)
    spans = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
    (root,) = (span for span in spans if span.name == "checkout")
    return [span for span in spans if span.context.trace_id == root.context.trace_id]


def _length(spans: Sequence[ReadableSpan]) -> int:
    """Return the duration of the first span in nanoseconds."""
    return (spans[0].end_time or 0) - (spans[0].start_time or 0)


def words(spans: Sequence[ReadableSpan]) -> list[str]:
    """Return the texts of the picture except times: the names of the spans and the reasons of the retries."""
    names = [span.name for span in spans]
    return names + [retry.reason for span in spans for retry in _retries(span)]


def draw(spans: Sequence[ReadableSpan], theme: Theme) -> str:
    """Return the picture as SVG."""
    began = min(span.start_time or 0 for span in spans)
    milliseconds = (max(span.end_time or 0 for span in spans) - began) / 1e6
    rows: list[ReadableSpan | Retry] = []
    for span in spans:
        rows += [span, *_retries(span)]
    canvas = Canvas(theme, began, (WIDTH - NAMES_WIDTH - 2 * MARGIN) / milliseconds, TOP + ROW * len(rows) + MARGIN)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {canvas.height}" width="{WIDTH}" '
        f'height="{canvas.height}" role="img" aria-label="{escape(ALT_TEXT)}" font-family="system-ui, sans-serif" '
        f'font-size="13" fill="{theme.text}">'
    )
    parts = [head, *canvas.axis(milliseconds)]
    depths: dict[int, int] = {}
    for number, row in enumerate(rows):
        top = TOP + ROW * number
        if isinstance(row, Retry):
            parts += canvas.retry(row, top)
        else:
            depth = depths.get(row.parent.span_id, 0) + 1 if row.parent is not None else 0
            depths[row.context.span_id] = depth
            parts += canvas.span(row, top, depth)
    return "\n".join([*parts, "</svg>", ""])


class Canvas(NamedTuple):
    """Drawing area that maps time to positions."""

    theme: Theme
    began: int
    """Start of the trace in nanoseconds since the epoch."""
    scale: float
    """Pixels per millisecond."""
    height: int

    def x(self, moment: int | None) -> float:
        """Return the horizontal position in pixels of a time in nanoseconds since the epoch."""
        return NAMES_WIDTH + MARGIN + ((moment or 0) - self.began) / 1e6 * self.scale

    def axis(self, milliseconds: float) -> Iterator[str]:
        """Yield lines at a few round times."""
        step = next(size for size in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if milliseconds / size <= 8)
        for tick in range(int(milliseconds / step) + 1):
            x = NAMES_WIDTH + MARGIN + tick * step * self.scale
            yield (
                f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{self.height - MARGIN}" '
                f'stroke="{self.theme.faint}"/>'
            )
            yield f'<text x="{x:.1f}" y="{TOP - 14}" text-anchor="middle">{tick * step:g} ms</text>'

    def span(self, span: ReadableSpan, top: int, depth: int) -> Iterator[str]:
        """Yield the name of a span and its bar."""
        left, right = self.x(span.start_time), self.x(span.end_time)
        colour = self.theme.bars.get(span.name, self.theme.other)
        yield f'<text x="{MARGIN + 14 * depth}" y="{top + BAR - 4}">{escape(span.name)}</text>'
        yield (
            f'<rect x="{left:.1f}" y="{top}" width="{max(right - left, BAR_WIDTH_MIN):.1f}" height="{BAR}" rx="2" '
            f'fill="{colour}"/>'
        )

    def retry(self, retry: Retry, top: int) -> Iterator[str]:
        """Yield a dot and, next to it, the reason of the retry."""
        x, colour = self.x(retry.moment), self.theme.event
        is_late = x > (NAMES_WIDTH + WIDTH) / 2
        yield f'<circle cx="{x:.1f}" cy="{top + BAR / 2}" r="5" fill="{colour}"/>'
        yield (
            f'<text x="{x + (-12 if is_late else 12):.1f}" y="{top + BAR - 4}" font-size="12" fill="{colour}" '
            f'text-anchor="{"end" if is_late else "start"}">{escape(retry.reason)}: '
            f"again in {retry.delay * 1000:g} ms</text>"
        )


def _retries(span: ReadableSpan) -> Iterator[Retry]:
    for event in span.events:
        reported = event.attributes or {}
        delay = reported.get(DELAY)
        if event.name == RETRY and isinstance(delay, float):
            yield Retry(event.timestamp, str(reported.get(REASON)), delay)


def main() -> None:
    """Record several writes, and draw the shortest for both themes."""
    spans = min((record() for _ in range(RECORDINGS)), key=_length)
    PICTURE.parent.mkdir(exist_ok=True)
    for suffix, theme in THEMES.items():
        PICTURE.with_stem(f"{PICTURE.stem}{suffix}").write_text(draw(spans, theme), encoding="utf-8")


if __name__ == "__main__":
    main()
