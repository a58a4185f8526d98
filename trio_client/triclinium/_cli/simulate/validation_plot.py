"""Picture of the validation: the published figures, their tolerances, and the simulated figures.

The module needs matplotlib from the extra ``plot``, but neither a display nor a settings file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from triclinium._cli.simulate.plot import SMALL_SIZE, THEMES, Theme, write
from triclinium._cli.simulate.validation import verdict
from triclinium_core.tools.fleet.references import Row

WIDTH_INCHES, LINE_INCHES, PANEL_INCHES = 9.0, 0.16, 0.75
"""Sizes in inches: the width of the picture, the height of a line for one figure, and the rest of a panel's height."""
MARGIN_INCHES = 0.75
THEIRS_SIZE, OURS_SIZE = 6.0, 2.6
BAND_HEIGHT = 0.16


@dataclass(frozen=True, slots=True)
class Panel:
    """Panel for one reference and one unit."""

    reference: str
    unit: str
    title: str
    is_logarithmic: bool = False


PANELS: Sequence[Sequence[Panel]] = (
    (
        Panel("backoff and jitter", "ms", "optimistic concurrency: ms until the last client is done", True),
        Panel("backoff and jitter", "writes", "optimistic concurrency: writes", True),
    ),
    (
        Panel("retries under failures", "success", "retries under failures: share of calls that succeed"),
        Panel("retries under failures", "attempts", "retries under failures: attempts per call"),
    ),
    (
        Panel("collapse by retries", "runs", "collapse by retries: runs without goodput at the end"),
        Panel("collapse by retries", "goodput/s", "collapse by retries: goodput/s of the other runs"),
    ),
)
"""Rows of adjacent panels from the top. The last row of the picture shows all figures."""


def draw_validation(rows: Sequence[Row], path: Path, *, theme: str = "light") -> None:
    """Write the picture to ``path`` in the format of its suffix: ``.svg`` or ``.png``.

    Raises:
        OSError: the file cannot be written.
    """
    write(lambda: validation_picture(rows, THEMES[theme]), path)


def validation_picture(rows: Sequence[Row], theme: Theme) -> Figure:
    """Return the picture in the current style.

    From the top: the number of figures that agree or differ, the figures in ``PANELS``, and the distance of all figures
    from the expected ones, in tolerances.
    """
    references = list(dict.fromkeys(row.reference for row in rows))
    groups = [[_rows_of(rows, panel) for panel in panels] for panels in PANELS]
    lines = [max(map(len, group)) for group in groups] + [2 * len(references)]
    heights = [count * LINE_INCHES + PANEL_INCHES for count in lines]
    height = sum(heights) + MARGIN_INCHES
    figure = Figure(figsize=(WIDTH_INCHES, height), facecolor=theme.paper)
    grid = figure.add_gridspec(len(heights), 2, height_ratios=heights)
    for row, (panels, group) in enumerate(zip(PANELS, groups, strict=True)):
        for column, (panel, found) in enumerate(zip(panels, group, strict=True)):
            _draw_figures(figure.add_subplot(grid[row, column]), panel, found, theme)
    _draw_distances(figure.add_subplot(grid[len(PANELS), :]), references, rows, theme)
    figure.text(0.012, 1 - 0.1 / height, verdict(rows), color=theme.ink, fontsize=9.5, fontweight="bold", va="top")
    _add_legend(figure, theme)
    figure.tight_layout(pad=0.6, h_pad=1.2, w_pad=1.6, rect=(0, 0.3 / height, 1, 1 - 0.3 / height))
    return figure


def _rows_of(rows: Sequence[Row], panel: Panel) -> Sequence[Row]:
    return [row for row in rows if (row.reference, row.unit) == (panel.reference, panel.unit)]


def _style(axes: Axes, title: str, labels: Sequence[str], theme: Theme) -> None:
    axes.set_facecolor(theme.paper)
    axes.set_title(title, color=theme.ink, fontsize=8.5)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(colors=theme.lines, labelcolor=theme.grey, labelsize=7.5)
    axes.spines[:].set_color(theme.lines)
    axes.grid(visible=True, axis="x", color=theme.outage, linewidth=0.8)
    axes.set_axisbelow(True)


def _draw_figures(axes: Axes, panel: Panel, rows: Sequence[Row], theme: Theme) -> None:
    _style(axes, panel.title, [row.subject for row in rows], theme)
    for line, row in enumerate(rows):
        colour = theme.goodput if row.ok else theme.load
        axes.plot(
            [row.expected - row.tolerance, row.expected + row.tolerance],
            [line, line],
            color=theme.grey,
            alpha=0.45,
            linewidth=5.0,
            solid_capstyle="butt",
        )
        axes.plot([row.expected], [line], "o", markersize=THEIRS_SIZE, markerfacecolor="none", color=theme.ink)
        axes.plot([row.got], [line], "o", markersize=OURS_SIZE, color=colour)
    if panel.is_logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(lambda value, position: f"{value:,.0f}")


def _draw_distances(axes: Axes, references: Sequence[str], rows: Sequence[Row], theme: Theme) -> None:
    # Break a name after each comma.
    labels = [reference.replace(", ", ",\n") for reference in references]
    _style(axes, "all figures: distance from the expected value, in tolerances", labels, theme)
    axes.axvspan(-1, 1, color=theme.outage, linewidth=0, zorder=0)
    for line, reference in enumerate(references):
        found = [row for row in rows if row.reference == reference]
        for place, row in enumerate(found):
            distance = (row.got - row.expected) / row.tolerance if row.tolerance else 0.0 if row.ok else 2.0
            axes.plot(
                [min(max(distance, -2.0), 2.0)],
                [line + BAND_HEIGHT * ((place % 5) - 2)],
                "o",
                markersize=OURS_SIZE,
                color=theme.goodput if row.ok else theme.load,
            )
    axes.set_xlim(-2.1, 2.1)


def _add_legend(figure: Figure, theme: Theme) -> None:
    figure.legend(
        handles=[
            Line2D([], [], color=theme.ink, marker="o", markersize=THEIRS_SIZE, markerfacecolor="none", linewidth=0),
            Line2D([], [], color=theme.grey, alpha=0.45, linewidth=5.0),
            Line2D([], [], color=theme.goodput, marker="o", markersize=OURS_SIZE, linewidth=0),
            Line2D([], [], color=theme.load, marker="o", markersize=OURS_SIZE, linewidth=0),
        ],
        labels=["published", "within the tolerance", "simulated", "simulated, different"],
        loc="lower left",
        bbox_to_anchor=(0.0, 0.0),
        ncols=4,
        frameon=False,
        fontsize=SMALL_SIZE + 0.5,
        labelcolor=theme.grey,
        borderaxespad=0.4,
    )
