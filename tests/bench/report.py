"""Results as text in a terminal, as tables on a page, and as a plot."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import fill

from rich.console import Console
from rich.table import Table

from docs._ext.markdown import markdown
from tests.bench.turns import Row, Spread

MACHINE = "machine"
CONTENDERS = (
    "trio",
    "aiomcache",
    "emcache",
    "pymemcache",
    "pylibmc",
    "couchbase",
    "httpx",
    "tenacity",
    "stamina",
    "ijson",
    "msgspec",
)
"""Packages whose versions matter to the figures."""
PROSE_WIDTH = 120
PLOT_COLUMNS = 3
PLOT_TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
PLACE = re.compile(r"(<!-- figures: (?P<name>.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def machine() -> str:
    """Return a description of the machine and the packages in one line."""
    model = re.search(r"^model name\s*: (.+)$", _cpu_info(), re.MULTILINE)
    processor = model[1] if model is not None else platform.machine()
    where = f"{platform.system()}, {os.cpu_count()} cores of {processor}"
    packages = ", ".join(f"{name} {found}" for name in CONTENDERS if (found := _version(name)))
    return f"{platform.python_implementation()} {platform.python_version()} on {where}; {packages}"


def _cpu_info() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def show(row: Row, console: Console) -> None:
    """Print a row, with one line for each contender."""
    table = Table(title=f"{row.table}, {row.what}: {row.unit}", title_justify="left", min_width=72)
    first = next(iter(row.costs), "")
    for heading in ("contender", "median", "quartiles", f"times {first}"):
        table.add_column(heading, justify="left" if heading == "contender" else "right")
    for name, cost in row.costs.items():
        ratio = row.ratios.get(name)
        times = "" if ratio is None else f"{ratio.median:.2f}{_quartiles(ratio)}"
        table.add_row(name, _figure(cost.median), _quartiles(cost).strip(" ()"), times)
    for name in row.missing:
        table.add_row(name, "missing", "", "")
    console.print(table)


def write_page(page: Path, rows: Sequence[Row]) -> None:
    """Insert the tables into a page between the marks with their names; other places stay as they are.

    Raises:
        ValueError: the page has no place for a table.
    """
    tables = {MACHINE: fill(machine() + ".", PROSE_WIDTH) + "\n"}
    for name in dict.fromkeys(row.table for row in rows):
        tables[name] = _markdown([row for row in rows if row.table == name])
    text = page.read_text(encoding="utf-8")
    places = {place["name"] for place in PLACE.finditer(text)}
    if lost := tables.keys() - places:
        raise ValueError(f"{page} has no place for {', '.join(sorted(lost))}: add <!-- figures: … --> and <!-- end -->")

    def filled(place: re.Match[str]) -> str:
        table = tables.get(place["name"])
        return place[0] if table is None else f"{place[1]}\n{table}\n{place[3]}"

    text = PLACE.sub(filled, text)
    page.write_text(text, encoding="utf-8")


def _markdown(rows: Sequence[Row]) -> str:
    """Return a table for each unit, which is its first heading: a column for each contender, a line for each row."""
    return "\n".join(
        markdown((unit, *contenders), ([row.what, *(_cell(row, name) for name in contenders)] for row in lines)) + "\n"
        for unit, lines, contenders in _by_unit(rows)
    )


def _by_unit(rows: Sequence[Row]) -> Iterator[tuple[str, Sequence[Row], Sequence[str]]]:
    """Yield each unit with its rows, and with the contenders of these rows."""
    for unit in dict.fromkeys(row.unit for row in rows):
        lines = [row for row in rows if row.unit == unit]
        yield unit, lines, list(dict.fromkeys(name for row in lines for name in (*row.costs, *row.missing)))


def _cell(row: Row, name: str) -> str:
    if name in row.missing:
        return "missing"
    cost, ratio = row.costs.get(name), row.ratios.get(name)
    if cost is None:
        return ""
    if ratio is None:
        return f"**{_figure(cost.median)}**{_quartiles(cost)}"
    return f"{_figure(cost.median)}, \N{MULTIPLICATION SIGN}{_figure(ratio.median)}{_quartiles(ratio)}"


def _figure(value: float) -> str:
    """Return a figure with three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _quartiles(value: Spread) -> str:
    """Return the quartiles in brackets after a space; nothing if they are equal."""
    low, high = _figure(value.low), _figure(value.high)
    return "" if low == high else f" ({low}\N{EN DASH}{high})"


def plot(rows: Sequence[Row], path: str) -> None:
    """Draw the cost of each contender relative to the first: bars of medians, whiskers of quartiles.

    Each table is drawn with its first unit only.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - the import takes a second, and only plots need it

    tables = dict[str, list[Row]]()
    for row in rows:
        if row.ratios:
            tables.setdefault(row.table, []).append(row)
    lines = -(-len(tables) // PLOT_COLUMNS)
    picture = Figure(figsize=(7 * PLOT_COLUMNS, 3.5 * lines), layout="constrained")
    places = list(picture.subplots(lines, PLOT_COLUMNS, squeeze=False, sharex=True).flat)
    for axes, table in zip(places, tables.values(), strict=False):
        unit, first = table[0].unit, next(iter(table[0].costs))
        rows_of_unit = [row for row in table if row.unit == unit]
        bars = {f"{row.what}: {name}": ratio for row in rows_of_unit for name, ratio in row.ratios.items()}
        medians = [ratio.median for ratio in bars.values()]
        whiskers = [[one.median - one.low for one in bars.values()], [one.high - one.median for one in bars.values()]]
        axes.barh(range(len(bars)), [median - 1 for median in medians], left=1, xerr=whiskers, color="#2a6f97")
        axes.set_yticks(range(len(bars)), bars, fontsize=6)
        axes.set_title(f"{table[0].table}, {unit}: times {first}", fontsize=8, loc="left")
        axes.axvline(1, color="black", linewidth=0.8)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xticks(PLOT_TICKS, map(str, PLOT_TICKS))
        axes.minorticks_off()
        axes.tick_params(labelbottom=True)
    for axes in places[len(tables) :]:
        axes.set_axis_off()
    picture.savefig(path)
