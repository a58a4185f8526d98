"""Picture of the cost of a get, with bars for two rows of the tables on the page on performance.

``uv run python -m tests.docs.cost_bars`` draws it for light and dark pages. It measures nothing.
``tests.bench --plot`` draws a new measurement with matplotlib, whose output differs between versions; a test compares
this picture byte by byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from tests.bench.report import PLACE
from tests.docs.pages import DOCS
from tests.docs.retried_write import COLOURS, SANS, Colours

PAGE = DOCS / "internals" / "performance.md"
PICTURES = {
    theme: DOCS / "pictures" / f"cost_of_a_get{suffix}.svg" for theme, suffix in (("light", ""), ("dark", "-dark"))
}
ALT_TEXT = "Bars of the time of a get of 100 bytes by several clients of memcached, for one task and for 256 tasks."
UNIT = "µs of wall clock"

WIDTH, PANEL, GAP = 900, 442, 16
NAMES_WIDTH, VALUES_WIDTH = 130, 56
TOP, ROW, BAR = 62, 26, 16


class Source(NamedTuple):
    """One row of a table, which one panel shows."""

    title: str
    table: str
    row: str


SOURCES = (
    Source("Get of 100 B, one task", "end to end: one task", "get of 100 B"),
    Source("Get of 100 B, 256 tasks", "end to end: gets of 100 B", "256 tasks"),
)


def costs(page: str, source: Source) -> dict[str, float]:
    """Return the median of each contender in one row, the lowest first. Missing contenders are left out."""
    places = {place["name"]: place[0] for place in PLACE.finditer(page)}
    (table,) = [each for each in places[source.table].split("\n\n") if each.lstrip().startswith(f"| {UNIT} |")]
    cells = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()]
    (found,) = [row for row in cells if row[0] == source.row]
    medians = {name: re.match(r"\**([\d,.]*\d)", cell) for name, cell in zip(cells[0][1:], found[1:], strict=True)}
    known = {name: float(median[1].replace(",", "")) for name, median in medians.items() if median is not None}
    return dict(sorted(known.items(), key=lambda item: item[1]))


def drawn(panels: Mapping[str, Mapping[str, float]], colours: Colours) -> str:
    """Return the picture as SVG, with the panels side by side."""
    height = TOP + ROW * max(map(len, panels.values())) + 8
    style = (
        f"text {{ font: 12.5px {SANS}; fill: {colours.ink} }} "
        f".title {{ font-weight: 600; font-size: 14.5px }} .grey {{ fill: {colours.grey} }}"
    )
    head = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {head} aria-label={quoteattr(ALT_TEXT)}>',
        f"<style>{style}</style>",
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="{colours.paper}"/>',
    ]
    for number, (title, bars) in enumerate(panels.items()):
        lines += [f'<g transform="translate({number * (PANEL + GAP)} 0)">', *_panel(title, bars, colours), "</g>"]
    return "\n".join([*lines, "</svg>", ""])


def _panel(title: str, bars: Mapping[str, float], colours: Colours) -> Iterator[str]:
    yield f'<text x="12" y="24" class="title">{escape(title)}</text>'
    yield f'<text x="12" y="44" class="grey">{UNIT}; less is better</text>'
    scale = (PANEL - NAMES_WIDTH - VALUES_WIDTH) / max(bars.values())
    for number, (name, cost) in enumerate(bars.items()):
        y, length = TOP + ROW * number, round(cost * scale, 1)
        colour = colours.decision if name == "triclinium" else colours.grey
        yield f'<text x="{NAMES_WIDTH - 8}" y="{y + 12}" text-anchor="end">{escape(name)}</text>'
        yield f'<rect x="{NAMES_WIDTH}" y="{y}" width="{length:g}" height="{BAR}" rx="2" fill="{colour}"/>'
        yield f'<text x="{NAMES_WIDTH + length + 6:g}" y="{y + 12}">{cost:g}</text>'


def pictures() -> dict[str, str]:
    """Return the picture for each theme."""
    page = PAGE.read_text(encoding="utf-8")
    panels = {source.title: costs(page, source) for source in SOURCES}
    return {theme: drawn(panels, colours) for theme, colours in COLOURS.items()}


if __name__ == "__main__":
    for theme, picture in pictures().items():
        PICTURES[theme].write_text(picture, encoding="utf-8")
