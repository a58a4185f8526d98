"""What was measured, for people: a table, and bars."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from tests.bench.turns import Row, Spread


def machine() -> str:
    """Return in one line what the figures were taken on."""
    return f"{platform.python_implementation()} {platform.python_version()} on {platform.system()} {platform.machine()}"


def show(rows: Iterable[Row], console: Console) -> None:
    """Print a table of all contenders, row by row, as soon as each is there."""
    for row in rows:
        table = Table(title=f"{row.part}: {row.what}", title_justify="left", min_width=72)
        table.add_column("contender")
        table.add_column(row.unit, justify="right")
        table.add_column("quartiles", justify="right")
        table.add_column("times as much as ours", justify="right")
        for name, cost in row.costs.items():
            table.add_row(name, figure(cost.median), between(cost), _times(row.ratios.get(name)))
        console.print(table)


def figure(value: float) -> str:
    """Return a figure with three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def between(value: Spread) -> str:
    """Return the quartiles."""
    return f"{figure(value.low)} to {figure(value.high)}"


def _times(ratio: Spread | None) -> str:
    return "" if ratio is None else f"{ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def plot(rows: Sequence[Row], path: str) -> None:
    """Write a plot of all rows that have more than one contender: bars of their medians, whiskers of their quartiles."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - it takes a second, and only who asks for a plot pays it

    compared = [row for row in rows if len(row.costs) > 1]
    height = 0.3 * sum(len(row.costs) + 1 for row in compared) + 0.6
    picture = Figure(figsize=(9, height), layout="constrained")
    axes = picture.subplots()
    labels, place = list[str](), 0.0
    places = list[float]()
    for row in compared:
        for name, cost in row.costs.items():
            whiskers = [[cost.median - cost.low], [cost.high - cost.median]]
            is_ours = name == next(iter(row.costs))
            axes.barh(place, cost.median, xerr=whiskers, color="#2a6f97" if is_ours else "#c9d6df", height=0.8)
            labels.append(f"{row.what}: {name}")
            places.append(place)
            place += 1
        place += 1
    axes.set_yticks(places, labels, fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("processor time of an operation; less is better")
    picture.savefig(path)
