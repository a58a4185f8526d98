"""Text of the demo: a timeline for each scenario, then a summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from triclinium._cli._timeline_screen import STYLES, TimelineScreen, indented, moment, timeline_table
from triclinium._cli.demo.checks import Check
from triclinium._cli.demo.recorder import Play
from triclinium._cli.demo.scenarios import SUCCESS
from triclinium._cli.demo.timeline import ClientDecision, TimelineRow, rows_of

Judged = tuple[Play, Sequence[Check]]

REASON_WIDTH = 33
"""Length of the longest reason in the demo, and a space. Columns of fixed width align all timelines."""
DELAYS_WIDTH = 12
"""Remaining width of an 80-column screen, for the delays of several consecutive retries."""


class Screen(TimelineScreen):
    """Printer of the demo.

    Args:
        console: console to print to; default: standard output.
    """

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        self._tick = "\N{CHECK MARK}" if self._speaks_unicode else "ok"
        self._cross = "\N{BALLOT X}" if self._speaks_unicode else "NO"

    def opening(self) -> None:
        """Print the introduction."""
        self._print(
            Text(
                "A fake node on this machine, and the trio client over TCP. Things go wrong on purpose. The client "
                "reports its decisions, the node's log shows its actions, and RFC 0049 defines what is right."
            )
        )

    def scenario(self, number: int, play: Play, checks: Sequence[Check]) -> None:
        """Print one scenario, and its differences from the requirements of the RFC."""
        timeline = timeline_table()
        for row, delays in _folded(rows_of(play)):
            timeline.add_row(moment(row.at_ms), Text(row.source, STYLES[row.source]), self._event(row, delays))
        timeline.rows[-1].style = "green" if play.outcome == SUCCESS else "yellow"
        self._print(Text())
        self._print(Text.assemble(self._mark(checks), f" {number}. ", (play.scenario.title, "bold")))
        self._print(indented(Text(play.scenario.clause, "dim"), 4))
        self._print(indented(timeline, 2))
        for check in checks:
            if not check.holds:
                self._print(indented(self._difference(check), 4))

    def summary(self, judged: Sequence[Judged], seconds: float, missing: int) -> None:
        """Print an overview of the scenarios, and in the last line whether all requirements are met."""
        table = Table(
            Column("\n  scenario"),
            Column("client:\noutcome"),
            Column("\nretries", justify="right"),
            Column("node:\nframes", justify="right"),
            Column("\napplied", justify="right"),
            box=None,
            header_style="dim",
            padding=(0, 2, 0, 0),
            pad_edge=False,
        )
        for play, checks in judged:
            numbers = (len(play.delays), len(play.frames), play.applied)
            style = "" if _all_hold(checks) else "red"
            name = Text.assemble(self._mark(checks), f" {play.scenario.name}")
            table.add_row(name, play.outcome, *map(str, numbers), style=style)
        for what in (Text(), table, Text(), _verdict(judged, seconds, missing)):
            self._print(what)

    def _mark(self, checks: Sequence[Check]) -> Text:
        return Text(self._tick, "bold green") if _all_hold(checks) else Text(self._cross, "bold red")

    def _event(self, row: TimelineRow, delays: str) -> Text:
        if row.decision is None:
            return Text(row.event)
        retries = row.decision is ClientDecision.RETRY
        decided = f"{self._arrow} again in {delays} ms" if retries else f"{self._arrow} {row.decision}"
        return Text.assemble(f"{row.event:<{REASON_WIDTH}}", (decided, "green" if retries else "yellow"))

    def _difference(self, check: Check) -> Text:
        return Text(f"{self._cross} {check.name}: demanded {check.demanded}; observed {check.observed}", "bold red")


def _folded(rows: Iterable[TimelineRow]) -> Iterator[tuple[TimelineRow, str]]:
    """Yield the rows. Of several consecutive retries, yield only the first, with all their delays."""
    for (_, _, decision), run in groupby(rows, key=lambda row: (row.source, row.event, row.decision)):
        if decision is ClientDecision.RETRY:
            first, *others = run
            yield first, _in_short([f"{row.delay_ms:g}" for row in (first, *others)])
        else:
            yield from ((row, "") for row in run)


def _in_short(delays: Sequence[str]) -> str:
    listed = ", ".join(delays)
    return listed if len(listed) <= DELAYS_WIDTH else f"{delays[0]} ... {delays[-1]}"


def _all_hold(checks: Sequence[Check]) -> bool:
    return all(check.holds for check in checks)


def _verdict(judged: Sequence[Judged], seconds: float, missing: int) -> Text:
    played = f"{len(judged)} scenario{'' if len(judged) == 1 else 's'}"
    differing = sum(not _all_hold(checks) for _, checks in judged)
    if not differing and not missing:
        held = sum(len(checks) for _, checks in judged)
        return Text(f"{played}, {held} checks: all as RFC 0049 demands ({seconds:.2f} s).", "bold green")
    parts = [f"{differing} of {played} not as RFC 0049 demands"] if differing else []
    if missing:
        parts.append(f"{missing} not played, because time ran out")
    return Text(f"{'; '.join(parts)} ({seconds:.2f} s).", "bold red")
