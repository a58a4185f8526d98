"""Picture of an outage for many clients: load, goodput and amplification over time, with a column for each strategy.

The module needs matplotlib from the extra ``plot``, but neither a display nor a settings file.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from triclinium._cli.simulate.advice import advise
from triclinium._cli.simulate.report import recovery, share_succeeded, story
from triclinium._cli.simulate.scenario import capacity_of
from triclinium_core.tools.fleet import ClosedLoop, FleetFigures, Scenario, Steady, TimeStep

STYLE: dict[str, object] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica Neue", "Arial", "DejaVu Sans"],
    "font.size": 8.5,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    # Keep text as text: files are smaller, and their words can be found.
    "svg.fonttype": "none",
    # Without a salt, the ids in the file would differ in each run.
    "svg.hashsalt": "triclinium",
}
COLUMN_INCHES, WIDTH_LEAST, ROW_INCHES, MARGIN_INCHES = 1.8, 5.5, 1.2, 1.55
PNG_DPI = 150
TITLE_SIZE, TITLE_LENGTH = 9.5, 20
"""Font size of a title in points, and the number of characters above which it shrinks to fit its column."""
TOP_SHARE = 1.12
"""Height of a panel, as a multiple of the largest value in its row of panels."""
SMALL_SIZE = 7
LINE_INCHES = 0.15
"""Height of a text line above the panels in inches."""
ADVICE_CHARACTERS_PER_INCH, CAPTION_CHARACTERS_PER_INCH = 13.5, 16
"""Number of characters per inch in the widest font."""
EDGE_INCHES = 0.12


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of a picture."""

    paper: str
    ink: str
    """Colour of the most important text."""
    grey: str
    """Colour of other text."""
    lines: str
    """Colour of axes."""
    outage: str
    load: str
    goodput: str
    amplification: str
    """Colour of amplification. It and the two colours above are based on the palette of Okabe and Ito, whose
    colours colour-blind readers can distinguish. The dark theme has lighter versions."""
    filled: float
    """Opacity of the area under a line."""


THEMES: Mapping[str, Theme] = {
    "light": Theme(
        paper="#ffffff",
        ink="#1f2328",
        grey="#59636e",
        lines="#8c959f",
        outage="#e9ebee",
        load="#D55E00",
        goodput="#0072B2",
        amplification="#B65C95",
        filled=0.22,
    ),
    "dark": Theme(
        paper="#0d1117",
        ink="#f0f6fc",
        grey="#9198a1",
        lines="#59636e",
        outage="#262c36",
        load="#F08A3C",
        goodput="#56B4E9",
        amplification="#E39BC8",
        filled=0.28,
    ),
}


@dataclass(frozen=True, slots=True)
class Curve:
    """Kind of figure that a panel shows over time."""

    title: str
    colour: Callable[[Theme], str]
    value: Callable[[TimeStep, float], float | None]
    """Function that returns the figure of a bucket, given the bucket's width in seconds; None without a figure."""


LOAD = Curve("offered load\nrequests/s", lambda theme: theme.load, lambda bucket, width: bucket.sent / width)
GOODPUT = Curve("goodput\noperations/s", lambda theme: theme.goodput, lambda bucket, width: bucket.succeeded / width)
AMPLIFICATION = Curve(
    "amplification\nattempts/operation", lambda theme: theme.amplification, lambda bucket, width: bucket.amplification
)
DEMAND = Curve("demand\noperations/s", lambda theme: theme.grey, lambda bucket, width: bucket.begun / width)
CURVES = (LOAD, GOODPUT, AMPLIFICATION)
DASHES_OF_DEMAND, DASHES_OF_CAPACITY = (0, (2, 2)), (0, (5, 1.5))


def draw(scenario: Scenario, figures: Sequence[FleetFigures], path: Path, *, theme: str = "light") -> None:
    """Write the picture to ``path`` in the format of its suffix: ``.svg`` or ``.png``.

    Args:
        theme: one of ``THEMES``.

    Raises:
        OSError: the file cannot be written.
    """
    write(lambda: picture(scenario, figures, THEMES[theme]), path)


def write(make: Callable[[], Figure], path: Path) -> None:
    """Create a picture in the common style, and write it to ``path`` in the format of its suffix.

    Raises:
        OSError: the file cannot be written.
    """
    # The type of the settings' names differs between releases of matplotlib.
    with mpl.rc_context(cast(Any, STYLE)):
        figure = make()
        if path.suffix.lower() == ".svg":
            text = StringIO()
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
            path.write_text(_concise(text.getvalue()), encoding="utf-8")
        else:
            figure.savefig(path, dpi=PNG_DPI)


def picture(scenario: Scenario, figures: Sequence[FleetFigures], theme: Theme = THEMES["light"]) -> Figure:
    """Return the picture in the current style.

    From the top: the recommended strategy, the scenario, a column for each strategy with a panel for each curve, and
    the legend. The panels of a row have the same scales.
    """
    width = max(COLUMN_INCHES * len(figures) + 0.7, WIDTH_LEAST)
    advice = advise(scenario, figures)
    headline = [] if advice is None else _lines(str(advice), int(width * ADVICE_CHARACTERS_PER_INCH))
    caption = _lines(story(scenario), int(width * CAPTION_CHARACTERS_PER_INCH))
    above = LINE_INCHES * (1.25 * len(headline) + len(caption)) + 2 * EDGE_INCHES
    height = ROW_INCHES * len(CURVES) + MARGIN_INCHES + above
    figure = Figure(figsize=(width, height), facecolor=theme.paper)
    grid = figure.subplots(len(CURVES), len(figures), sharex=True, sharey="row", squeeze=False)
    for curve, axes in zip(CURVES, grid, strict=True):
        for panel, found in zip(axes, figures, strict=True):
            _draw_panel(panel, curve, scenario, found, theme)
        axes[0].set_ylabel(curve.title, color=curve.colour(theme), fontsize=8.5)
        axes[0].set_ylim(0, _top(curve, scenario, figures))
    for panel, found in zip(grid[0], figures, strict=True):
        is_advised = advice is not None and found.strategy == advice.strategy
        _entitle(panel, scenario, found, theme, is_advised=is_advised)
    for panel in grid[-1]:
        panel.set_xlabel("seconds", color=theme.grey)
    _write_above(figure, headline, caption, theme)
    _add_legend(figure, scenario, theme)
    figure.align_ylabels(grid[:, 0])
    figure.tight_layout(pad=0.6, h_pad=1.0, w_pad=1.1, rect=(0, 0.24 / height, 1, 1 - above / height))
    return figure


def _top(curve: Curve, scenario: Scenario, figures: Sequence[FleetFigures]) -> float:
    """Return the upper limit of a curve's panels."""
    top = max(value for found in figures for value in _values(curve, found, scenario, 0.0))
    if curve is not AMPLIFICATION:
        begun = max(value for found in figures for value in _values(DEMAND, found, scenario, 0.0))
        top = max(top, begun, capacity_of(scenario) or 0.0)
    return max(top * TOP_SHARE, 1.0)


def _write_above(figure: Figure, headline: Sequence[str], caption: Sequence[str], theme: Theme) -> None:
    width, height = figure.get_size_inches()
    down = EDGE_INCHES
    for lines, colour, size, leading in ((headline, theme.ink, 9.0, 1.25), (caption, theme.grey, 7.5, 1.0)):
        for line in lines:
            figure.text(EDGE_INCHES / width, 1 - down / height, line, color=colour, fontsize=size, va="top")
            down += LINE_INCHES * leading


def _add_legend(figure: Figure, scenario: Scenario, theme: Theme) -> None:
    """Add a legend for everything that the titles of rows and columns do not name."""
    handles: list[Artist] = [
        Line2D([], [], color=theme.grey, linewidth=0.9, linestyle=DASHES_OF_DEMAND, label="demand"),
    ]
    if capacity_of(scenario) is not None:
        label = "capacity of the service"
        handles.append(Line2D([], [], color=theme.ink, linewidth=0.8, linestyle=DASHES_OF_CAPACITY, label=label))
    if scenario.outage is not None:
        handles.insert(0, Patch(facecolor=theme.outage, edgecolor=theme.lines, linewidth=0.4, label="outage"))
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.0, 0.0),
        ncols=len(handles),
        frameon=False,
        fontsize=SMALL_SIZE + 0.5,
        labelcolor=theme.grey,
        handlelength=1.8,
        columnspacing=2.0,
        borderaxespad=0.4,
    )


def _lines(text: str, length: int) -> list[str]:
    """Return the text in lines of at most ``length`` characters. A number of seconds and its unit stay together."""
    return textwrap.wrap(re.sub(r"(?<=\d) s\b", "\N{NO-BREAK SPACE}s", text), length)


def _concise(svg: str) -> str:
    """Return the same picture with fewer digits: hundredths of a point, and no repeated points in a line."""
    lines: list[str] = []
    for line in re.sub(r"\d+\.\d{3,}", lambda match: f"{float(match[0]):.2f}", svg).splitlines():
        text = line.rstrip()
        if not (text.startswith("L ") and text == lines[-1]):
            lines.append(text)
    return "\n".join([*lines, ""])


def _draw_panel(panel: Axes, curve: Curve, scenario: Scenario, found: FleetFigures, theme: Theme) -> None:
    values, edges = _steps(_values(curve, found, scenario, float("nan")), scenario)
    colour = curve.colour(theme)
    panel.set_facecolor(theme.paper)
    if scenario.outage is not None:
        panel.axvspan(scenario.outage.start, scenario.outage.end, color=theme.outage, linewidth=0)
    panel.stairs(values, edges, fill=True, color=colour, alpha=theme.filled, linewidth=0)
    panel.stairs(values, edges, color=colour, linewidth=1.2, baseline=None)
    if curve is GOODPUT:
        dashes: dict[str, Any] = {"color": theme.grey, "linewidth": 0.9, "linestyle": DASHES_OF_DEMAND, "zorder": 0.9}
        if isinstance(scenario.fleet.trend, Steady) and not isinstance(scenario.fleet.arrivals, ClosedLoop):
            panel.axhline(scenario.fleet.demand, **dashes)
        else:
            panel.stairs(*_steps(_values(DEMAND, found, scenario, 0.0), scenario), baseline=None, **dashes)
    capacity = capacity_of(scenario)
    if curve is not AMPLIFICATION and capacity is not None:
        panel.axhline(capacity, color=theme.ink, linewidth=0.8, linestyle=DASHES_OF_CAPACITY, zorder=0.9)
    panel.set_xlim(0, scenario.duration)
    panel.locator_params(axis="x", nbins=5)
    panel.locator_params(axis="y", nbins=4)
    panel.yaxis.set_major_formatter(lambda value, position: f"{value:,g}")
    panel.tick_params(colors=theme.lines, labelcolor=theme.grey)
    panel.spines[:].set_color(theme.lines)


def _steps(values: Sequence[float], scenario: Scenario) -> tuple[list[float], list[float]]:
    """Return the heights and the edges of steps. Adjacent equal values form one step."""
    heights: list[float] = []
    edges: list[float] = []
    for index, value in enumerate(values):
        if not heights or value != heights[-1]:
            heights.append(value)
            edges.append(index * scenario.bucket)
    return heights, [*edges, scenario.duration]


def _values(curve: Curve, found: FleetFigures, scenario: Scenario, missing: float) -> list[float]:
    # The last bucket is shorter if the simulation ends within it.
    values = (curve.value(bucket, min(scenario.bucket, scenario.duration - bucket.start)) for bucket in found.buckets)
    return [missing if value is None else value for value in values]


def _entitle(panel: Axes, scenario: Scenario, found: FleetFigures, theme: Theme, *, is_advised: bool) -> None:
    size = TITLE_SIZE if len(found.strategy) <= TITLE_LENGTH else TITLE_SIZE * TITLE_LENGTH / len(found.strategy)
    panel.set_title(
        found.strategy,
        color=theme.goodput if is_advised else theme.ink,
        fontweight="bold",
        fontsize=size,
        pad=28 if scenario.outage is not None else 17,
    )
    lines = [f"{share_succeeded(found)} succeeded"]
    if scenario.outage is not None:
        how = recovery(scenario, found)
        lines.append("does not recover" if found.recovered_after is None else f"recovered after {how}")
    panel.text(0, 1.06, "\n".join(lines), transform=panel.transAxes, color=theme.grey, fontsize=7.5, linespacing=1.3)
