"""What a fleet's outage was like, for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from msgspec import to_builtins
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from triclinium_core.testing.fleet import (
    STRATEGIES,
    ContendedRow,
    FleetFigures,
    ParallelService,
    Scenario,
    SimulatedService,
    TimeStep,
)
from triclinium_core.testing.fleet.figures import COUNTS

BARS = " ▁▂▃▄▅▆▇█"
BARS_OF_ASCII = " .:-=+*#@"
"""Where the encoding of the output has no others."""
BARS_MAX = 30
BARS_LEAST = 8
COLUMNS_BESIDE_BARS = 58
"""What the other columns take, but for the names of the strategies."""
ROWS_MAX = 12
"""Lines of a table over time; several steps are put into one where there are more."""
WIDTH = 120
"""Columns of output that is not a terminal."""


def show_fleet(scenario: Scenario, figures: Sequence[FleetFigures]) -> None:
    """Print the strategies side by side, and then each over time."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDTH)
    console.print(Text(story(scenario)), soft_wrap=True)
    console.print()
    levels = BARS if console.encoding.lower().startswith("utf") else BARS_OF_ASCII
    console.print(summary(scenario, figures, console.width, levels))
    for found in figures:
        console.print()
        console.print(
            Text.assemble((found.strategy, "bold"), f" {STRATEGIES[found.strategy].meaning}:"), soft_wrap=True
        )
        console.print(Padding(_over_time(scenario, found), (0, 0, 0, 2), expand=False))


def story(scenario: Scenario) -> str:
    """Return what is simulated, as sentences."""
    fleet, service, outage = scenario.fleet, scenario.service, scenario.outage
    away = "There is no outage."
    if outage is not None:
        away = f"From {outage.start:g} s to {outage.end:g} s it {_AWAY[outage.kind]}."
    match service:
        case SimulatedService(capacity=capacity):
            serves = f"The service can serve {capacity:,.0f}."
        case ParallelService():
            serves = "The service serves all requests at the same time."
        case ContendedRow():
            serves = "All of them update the same row."
        case _:
            assert_never(service)
    return (
        f"{fleet.clients:,} clients ask every {fleet.period:g} s, for {scenario.duration:g} s: {fleet.demand:,.0f} "
        f"operations a second. {serves} {away}"
    )


_AWAY = {
    "refuses": "refuses connections",
    "closes": "closes connections without an answer",
    "silent": "is silent",
    "denies": "refuses all credentials",
}


def summary(scenario: Scenario, figures: Sequence[FleetFigures], width: int, levels: str = BARS) -> Table:
    """Return a line for each strategy, with as many bars as so many columns have room for.

    Args:
        levels: what bars are made of, from none to the highest.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("strategy", no_wrap=True)
    for title in ("succeeded", "attempts", "peak load", "back after", "p99"):
        table.add_column(title, justify="right", no_wrap=True)
    names = max(len(found.strategy) for found in figures)
    bars = min(width - names - COLUMNS_BESIDE_BARS, BARS_MAX)
    if bars >= BARS_LEAST:
        table.add_column("goodput over time" if bars == BARS_MAX else "goodput", no_wrap=True)
    for found in figures:
        totals = found.totals
        cells: list[Text | str] = [
            Text(found.strategy, style="bold"),
            share_succeeded(found),
            f"{totals.amplification:.2f} x" if totals.amplification is not None else "-",
            f"{found.peak_sent:,.0f}/s",
            recovery(scenario, found),
            f"{dict(found.latencies)[99.0] * 1000:,.0f} ms" if found.latencies else "-",
        ]
        if bars >= BARS_LEAST:
            cells.append(sparkline([bucket.succeeded for bucket in _joined(found.buckets, bars)], levels))
        table.add_row(*cells)
    return table


def share_succeeded(figures: FleetFigures) -> str:
    """Return how many of all operations succeeded."""
    return f"{figures.totals.succeeded / figures.totals.begun:.1%}" if figures.totals.begun else "-"


def recovery(scenario: Scenario, figures: FleetFigures) -> str:
    """Return how long it took to recover."""
    if scenario.outage is None:
        return "no outage"
    return "never" if figures.recovered_after is None else f"{figures.recovered_after:g} s"


def sparkline(values: Sequence[float], levels: str = BARS) -> str:
    """Return the values as bars of text, the highest as high as one can be."""
    most = max(values, default=0)
    return "".join(levels[round(value / most * (len(levels) - 1))] if most else levels[0] for value in values)


def _over_time(scenario: Scenario, figures: FleetFigures) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("from", "demand/s", "offered/s", "goodput/s", "failed/s", "attempts", "queue"):
        table.add_column(title, justify="right", no_wrap=True)
    rows = _joined(figures.buckets, ROWS_MAX)
    ends = [*(row.start for row in rows[1:]), scenario.duration]
    for row, end in zip(rows, ends, strict=True):
        width = end - row.start
        rates = (f"{count / width:,.0f}" for count in (row.begun, row.sent, row.succeeded, row.failed))
        amplification = f"{row.amplification:.2f} x" if row.amplification is not None else "-"
        is_away = scenario.outage is not None and row.start < scenario.outage.end and scenario.outage.start < end
        style = "red" if is_away else ""
        table.add_row(f"{row.start:g} s", *rates, amplification, f"{row.queue:,.0f}", style=style)
    return table


def _joined(buckets: Sequence[TimeStep], count_max: int) -> Sequence[TimeStep]:
    """Return no more than ``count_max`` buckets, each made of as many that follow each other."""
    size = -(-len(buckets) // count_max)
    return [_sum(buckets[first : first + size]) for first in range(0, len(buckets), size)]


def _sum(buckets: Sequence[TimeStep]) -> TimeStep:
    sums = {name: sum(getattr(bucket, name) for bucket in buckets) for name in COUNTS}
    return TimeStep(start=buckets[0].start, queue=max(bucket.queue for bucket in buckets), **sums)


def figures_as_json(scenario: Scenario, seed: int, figures: Sequence[FleetFigures]) -> dict[str, object]:
    """Return the scenario and the figures of each strategy as an object for JSON."""
    return {"scenario": to_builtins(scenario), "seed": seed, "strategies": [found.to_json() for found in figures]}
