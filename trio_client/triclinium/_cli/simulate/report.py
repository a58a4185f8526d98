"""Report on an outage for many clients, as text and as JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import assert_never

from msgspec import to_builtins
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from triclinium._cli._output import plain
from triclinium._cli.simulate.advice import advise
from triclinium_core.shown import printable
from triclinium_core.tools.fleet.demand import ClosedLoop, Steady
from triclinium_core.tools.fleet.figures import COUNTS, FleetFigures, TimeStep
from triclinium_core.tools.fleet.scenario import ContendedRow, Fleet, ParallelService, Scenario, SimulatedService
from triclinium_core.tools.fleet.strategies import STRATEGIES

BARS = " ▁▂▃▄▅▆▇█"
BARS_OF_ASCII = " .:-=+*#@"
"""Bars for output whose encoding has no block characters."""
BARS_MAX = 30
BARS_LEAST = 8
COLUMNS_BESIDE_BARS = 58
"""Total width of all columns except the bars and the names of the strategies."""
NARROW = 80
"""Width in columns below which names of strategies have separate lines and amplification over time is omitted."""
INDENT = "  "
ROWS_MAX = 12
"""Maximum number of lines in a table over time. Longer tables merge consecutive steps."""
WIDTH = 120
"""Width in columns of output that is not a terminal, unless ``COLUMNS`` is set. Lines of text are not wrapped."""


def show_fleet(scenario: Scenario, figures: Sequence[FleetFigures]) -> None:
    """Print the scenario, an overview of the strategies, the recommended one, and a table over time for each."""
    console = Console(highlight=False)
    is_endless = not console.is_terminal and "COLUMNS" not in os.environ
    if is_endless:
        console = Console(highlight=False, width=WIDTH)
    levels = BARS if console.encoding.lower().startswith("utf") else BARS_OF_ASCII
    is_narrow = console.width < NARROW
    console.print(Text(story(scenario)), soft_wrap=is_endless)
    console.print()
    if is_narrow:
        console.print(narrow_summary(scenario, figures, console.width, levels))
    else:
        console.print(summary(scenario, figures, console.width, levels))
    advice = advise(scenario, figures)
    if advice is not None:
        console.print()
        console.print(
            Text.assemble("Use ", plain(advice.strategy, "bold green"), plain(f": {advice.reason}")),
            soft_wrap=is_endless,
        )
    for found in figures:
        console.print()
        console.print(
            Text.assemble(plain(found.strategy, "bold"), f" {meaning(scenario, found.strategy)}:"), soft_wrap=is_endless
        )
        table = _over_time(scenario, found, is_narrow=is_narrow)
        console.print(Padding(table, (0, 0, 0, len(INDENT)), expand=False))


def meaning(scenario: Scenario, strategy: str) -> str:
    """Return the description of a strategy, or that it is defined in the scenario."""
    if any(retries.name == strategy for retries in scenario.strategies):
        return "is defined in the scenario"
    return STRATEGIES[strategy].meaning


def story(scenario: Scenario) -> str:
    """Return the description of the scenario in sentences."""
    service, outage = scenario.service, scenario.outage
    away = "There is no outage."
    if outage is not None:
        away = f"From {outage.start:g} s to {outage.end:g} s the service {_AWAY[outage.kind]}."
    match service:
        case SimulatedService(capacity=capacity):
            serves = f"The service can serve {capacity:,.0f} a second."
        case ParallelService():
            serves = "The service serves all requests at the same time."
        case ContendedRow():
            serves = "All of them update the same row."
        case _:
            assert_never(service)
    return f"{_demand(scenario.fleet, scenario.duration)} {serves} {away}"


def _demand(fleet: Fleet, duration: float) -> str:
    if isinstance(fleet.arrivals, ClosedLoop):
        each = f"{fleet.arrivals.operations:,} operation{'' if fleet.arrivals.operations == 1 else 's'}"
        return f"{fleet.clients:,} clients begin {each} each, one after the other, for at most {duration:g} s."
    usual = "" if isinstance(fleet.trend, Steady) else "usually "
    return (
        f"{fleet.clients:,} clients {usual}begin an operation every {fleet.period:g} s, for {duration:g} s: "
        f"{fleet.demand:,.0f} operations a second."
    )


_AWAY = {
    "refuses": "refuses connections",
    "closes": "closes connections without a response",
    "silent": "is silent",
    "denies": "refuses all credentials",
}


def summary(scenario: Scenario, figures: Sequence[FleetFigures], width: int, levels: str = BARS) -> Table:
    """Return a table with a row for each strategy, which has bars if enough of them fit into ``width`` columns.

    Args:
        levels: characters of the bars, from empty to the highest.
    """
    table = _table()
    table.add_column("strategy", no_wrap=True)
    for title in FIGURES:
        table.add_column(title, justify="right", no_wrap=True)
    names = max(len(found.strategy) for found in figures)
    bars = min(width - names - COLUMNS_BESIDE_BARS, BARS_MAX)
    if bars >= BARS_LEAST:
        table.add_column("goodput over time" if bars == BARS_MAX else "goodput", no_wrap=True)
    for found in figures:
        cells: list[Text | str] = [plain(found.strategy, "bold"), *_cells(scenario, found)]
        if bars >= BARS_LEAST:
            cells.append(sparkline([bucket.succeeded for bucket in _joined(found.buckets, bars)], levels))
        table.add_row(*cells)
    return table


def narrow_summary(
    scenario: Scenario, figures: Sequence[FleetFigures], width: int, levels: str = BARS
) -> RenderableType:
    """Return two lines for each strategy: its name, with bars if they fit, and its figures below."""
    rows = [_cells(scenario, found) for found in figures]
    widths = [max(map(len, column)) for column in zip(FIGURES, *rows, strict=True)]
    names = max(len(found.strategy) for found in figures)
    bars = min(width - names - len(INDENT), BARS_MAX)

    def line(cells: Sequence[str]) -> str:
        return "".join(f"{INDENT}{cell:>{size}}" for cell, size in zip(cells, widths, strict=True))

    text = Text(no_wrap=True)
    text.append(f"{'strategy':<{names}}{INDENT}{'goodput' if bars >= BARS_LEAST else ''}\n{line(FIGURES)}", "dim")
    for found, cells in zip(figures, rows, strict=True):
        text.append(f"\n{printable(found.strategy):<{names}}{INDENT}", "bold")
        if bars >= BARS_LEAST:
            text.append(sparkline([bucket.succeeded for bucket in _joined(found.buckets, bars)], levels))
        text.append(f"\n{line(cells)}")
    return text


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")


FIGURES = ("succeeded", "attempts", "peak load", "back after", "p99")


def _cells(scenario: Scenario, found: FleetFigures) -> list[str]:
    """Return the figures of one strategy as text, in the order of ``FIGURES``."""
    totals = found.totals
    return [
        share_succeeded(found),
        f"{totals.amplification:.2f} x" if totals.amplification is not None else "-",
        f"{found.peak_sent:,.0f}/s",
        recovery(scenario, found),
        f"{dict(found.latencies)[99.0] * 1000:,.0f} ms" if found.latencies else "-",
    ]


def share_succeeded(figures: FleetFigures) -> str:
    """Return the share of operations that succeeded, as text."""
    return f"{figures.totals.succeeded / figures.totals.begun:.1%}" if figures.totals.begun else "-"


def recovery(scenario: Scenario, figures: FleetFigures) -> str:
    """Return the seconds from the end of the outage to the recovery as text; else "never", or "no outage"."""
    if scenario.outage is None:
        return "no outage"
    return "never" if figures.recovered_after is None else f"{figures.recovered_after:g} s"


def sparkline(values: Sequence[float], levels: str = BARS) -> str:
    """Return the values as bars of text, scaled to the highest value."""
    most = max(values, default=0)
    return "".join(levels[round(value / most * (len(levels) - 1))] if most else levels[0] for value in values)


def _over_time(scenario: Scenario, figures: FleetFigures, *, is_narrow: bool) -> Table:
    table = _table()
    rates = ("demand/s", "offered/s", "goodput/s", "failed/s")
    for title in ("from", *rates, *(() if is_narrow else ("attempts",)), "queue"):
        table.add_column(title, justify="right", no_wrap=True)
    rows = _joined(figures.buckets, ROWS_MAX)
    ends = [*(row.start for row in rows[1:]), scenario.duration]
    for row, end in zip(rows, ends, strict=True):
        width = end - row.start
        cells = [f"{count / width:,.0f}" for count in (row.begun, row.sent, row.succeeded, row.failed)]
        if not is_narrow:
            cells.append(f"{row.amplification:.2f} x" if row.amplification is not None else "-")
        is_away = scenario.outage is not None and row.start < scenario.outage.end and scenario.outage.start < end
        style = "red" if is_away else ""
        table.add_row(f"{row.start:g} s", *cells, f"{row.queue:,.0f}", style=style)
    return table


def _joined(buckets: Sequence[TimeStep], count_max: int) -> Sequence[TimeStep]:
    """Return at most ``count_max`` buckets. Each merges the same number of ``buckets``, the last perhaps fewer."""
    size = -(-len(buckets) // count_max)
    return [_sum(buckets[first : first + size]) for first in range(0, len(buckets), size)]


def _sum(buckets: Sequence[TimeStep]) -> TimeStep:
    sums = {name: sum(getattr(bucket, name) for bucket in buckets) for name in COUNTS}
    return TimeStep(start=buckets[0].start, queue=max(bucket.queue for bucket in buckets), **sums)


def figures_as_json(scenario: Scenario, seed: int, figures: Sequence[FleetFigures]) -> dict[str, object]:
    """Return the scenario, the seed, the figures of each strategy and the recommendation as an object for JSON."""
    advice = advise(scenario, figures)
    return {
        "scenario": to_builtins(scenario),
        "seed": seed,
        "strategies": [found.to_json() for found in figures],
        "advice": None if advice is None else asdict(advice),
    }
