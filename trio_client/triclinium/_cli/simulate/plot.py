"""A fleet's outage as a picture: a column for each strategy, and load, goodput and amplification over the same time.

It needs matplotlib, which the extra ``plot`` brings, and neither a display nor a file of settings.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from triclinium._cli.simulate.report import recovery, share_succeeded, story
from triclinium_core.testing.fleet import FleetFigures, Scenario, TimeStep

STYLE: dict[str, object] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica Neue", "Arial", "DejaVu Sans"],
    "font.size": 8.5,
    "axes.edgecolor": "#888888",
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    # Text stays text: files are smaller, and words in them can be found.
    "svg.fonttype": "none",
    # The same figures are the same file.
    "svg.hashsalt": "triclinium",
}
INK, GREY, SHADE = "#222222", "#777777", "#ececec"
COLUMN_INCHES, WIDTH_LEAST, ROW_INCHES, MARGIN_INCHES = 1.8, 5.5, 1.2, 1.3
PNG_DPI = 150
TITLE_SIZE, TITLE_LENGTH = 9.5, 20
"""Longer names are set smaller, so that they stay above their column."""
TOP_SHARE = 1.12
"""Height of a panel, as a multiple of the largest value in it."""
SMALL_SIZE = 7
CAPTION_CHARACTERS_PER_INCH = 18
"""Of the small type, in the widest of the fonts."""
CAPTION_LINE_INCHES = 0.14
LABEL_INCHES_LEAST = 0.15
"""Width of a shade that has room for its name, set upright; of a narrower one the caption tells."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One kind of figure, over time. Colours are those of Okabe and Ito, which the colour-blind can tell apart."""

    title: str
    colour: str
    value: Callable[[TimeStep, float], float | None]
    """Of a bucket, given its width."""


GOODPUT = Quantity("goodput\noperations/s", "#0072B2", lambda bucket, width: bucket.succeeded / width)
QUANTITIES = (
    Quantity("offered load\nrequests/s", "#D55E00", lambda bucket, width: bucket.sent / width),
    GOODPUT,
    Quantity("amplification\nattempts/operation", "#CC79A7", lambda bucket, width: bucket.amplification),
)


def draw(scenario: Scenario, figures: Sequence[FleetFigures], path: Path) -> None:
    """Write the picture to ``path``, as what its name ends in: ``.svg`` or ``.png``.

    Raises:
        OSError: it cannot be written.
    """
    # Which names of settings there are is typed differently from release to release.
    with mpl.rc_context(cast(Any, STYLE)):
        figure = picture(scenario, figures)
        if path.suffix.lower() == ".svg":
            text = StringIO()
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
            path.write_text(_concise(text.getvalue()), encoding="utf-8")
        else:
            figure.savefig(path, dpi=PNG_DPI)


def picture(scenario: Scenario, figures: Sequence[FleetFigures]) -> Figure:
    """Return the picture, in whatever style is set."""
    width = max(COLUMN_INCHES * len(figures) + 0.7, WIDTH_LEAST)
    caption = _lines(story(scenario), int(width * CAPTION_CHARACTERS_PER_INCH))
    below = CAPTION_LINE_INCHES * (len(caption) - 1)
    height = ROW_INCHES * len(QUANTITIES) + MARGIN_INCHES + below
    figure = Figure(figsize=(width, height))
    grid = figure.subplots(len(QUANTITIES), len(figures), sharex=True, sharey="row", squeeze=False)
    for quantity, axes in zip(QUANTITIES, grid, strict=True):
        for column, (panel, found) in enumerate(zip(axes, figures, strict=True)):
            _draw_panel(panel, quantity, scenario, found)
            if column == 0:
                panel.set_ylabel(quantity.title, color=quantity.colour, fontsize=8.5)
        top = max(value for found in figures for value in _values(quantity, found, scenario, 0.0))
        if quantity is GOODPUT:
            top = max(top, scenario.fleet.demand)
        axes[0].set_ylim(0, max(top * TOP_SHARE, 1.0))
    for panel, found in zip(grid[0], figures, strict=True):
        _entitle(panel, scenario, found)
    for panel in grid[-1]:
        panel.set_xlabel("seconds", color=GREY)
    _label(grid[QUANTITIES.index(GOODPUT)][0], width / len(figures), scenario)
    figure.text(0.012, 0.012, "\n".join(caption), color=GREY, fontsize=SMALL_SIZE)
    figure.align_ylabels(grid[:, 0])
    figure.tight_layout(pad=0.6, h_pad=1.0, w_pad=1.1, rect=(0, 0.045 + below / height, 1, 1))
    return figure


def _lines(text: str, length: int) -> list[str]:
    """Return the text in lines of ``length`` at most; a number and its unit stay together."""
    return textwrap.wrap(re.sub(r"(?<=\d) s\b", "\N{NO-BREAK SPACE}s", text), length)


def _concise(svg: str) -> str:
    """Return the same picture in fewer digits: hundredths of a point, and no point of a line twice."""
    lines: list[str] = []
    for line in re.sub(r"\d+\.\d{3,}", lambda match: f"{float(match[0]):.2f}", svg).splitlines():
        text = line.rstrip()
        if not (text.startswith("L ") and text == lines[-1]):
            lines.append(text)
    return "\n".join([*lines, ""])


def _draw_panel(panel: Axes, quantity: Quantity, scenario: Scenario, found: FleetFigures) -> None:
    values, edges = _steps(_values(quantity, found, scenario, float("nan")), scenario)
    if scenario.outage is not None:
        panel.axvspan(scenario.outage.start, scenario.outage.end, color=SHADE, linewidth=0)
    if quantity is GOODPUT:
        panel.axhline(scenario.fleet.demand, color=GREY, linewidth=0.7, dashes=(2, 2))
    panel.stairs(values, edges, fill=True, color=quantity.colour, alpha=0.22, linewidth=0)
    panel.stairs(values, edges, color=quantity.colour, linewidth=1.2, baseline=None)
    panel.set_xlim(0, scenario.duration)
    panel.locator_params(axis="x", nbins=5)
    panel.locator_params(axis="y", nbins=4)
    panel.yaxis.set_major_formatter(lambda value, position: f"{value:,g}")


def _steps(values: Sequence[float], scenario: Scenario) -> tuple[list[float], list[float]]:
    """Return the values and the instants between them, neighbours of the same height as one."""
    heights: list[float] = []
    edges: list[float] = []
    for index, value in enumerate(values):
        if not heights or value != heights[-1]:
            heights.append(value)
            edges.append(index * scenario.bucket)
    return heights, [*edges, scenario.duration]


def _values(quantity: Quantity, found: FleetFigures, scenario: Scenario, missing: float) -> list[float]:
    # The last bucket may be cut short by the duration.
    values = (
        quantity.value(bucket, min(scenario.bucket, scenario.duration - bucket.start)) for bucket in found.buckets
    )
    return [missing if value is None else value for value in values]


def _entitle(panel: Axes, scenario: Scenario, found: FleetFigures) -> None:
    size = TITLE_SIZE if len(found.strategy) <= TITLE_LENGTH else TITLE_SIZE * TITLE_LENGTH / len(found.strategy)
    panel.set_title(
        found.strategy, color=INK, fontweight="bold", fontsize=size, pad=28 if scenario.outage is not None else 17
    )
    lines = [f"{share_succeeded(found)} succeeded"]
    if scenario.outage is not None:
        how = recovery(scenario, found)
        lines.append("does not recover" if found.recovered_after is None else f"recovered after {how}")
    panel.text(0, 1.06, "\n".join(lines), transform=panel.transAxes, color=GREY, fontsize=7.5, linespacing=1.3)


def _label(panel: Axes, inches: float, scenario: Scenario) -> None:
    """Write names onto what is drawn, once: there is no legend.

    The panel is that of the goodput, which an outage leaves empty, so that no line runs through the word.
    """
    demand, outage = scenario.fleet.demand, scenario.outage
    if outage is not None and (outage.end - outage.start) / scenario.duration * inches >= LABEL_INCHES_LEAST:
        middle = (outage.start + outage.end) / 2
        panel.text(middle, demand / 2, "outage", ha="center", va="center", rotation=90, color=GREY, fontsize=SMALL_SIZE)
    panel.annotate(
        "demand",
        (0.0, demand),
        (3, 2),
        "data",
        "offset points",
        ha="left",
        va="bottom",
        color=GREY,
        fontsize=SMALL_SIZE,
    )
