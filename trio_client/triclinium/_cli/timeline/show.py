"""Timelines as text on a terminal, and as a picture of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO

from rich.console import Console
from rich.text import Text

from triclinium._cli._output import plain
from triclinium._cli._timeline_screen import (
    READABLE_WIDTH,
    STYLES,
    TIME_WIDTH,
    TimelineScreen,
    indented,
    moment,
    timeline_table,
)
from triclinium_core.shown import printable
from triclinium_core.timeline import Row, Timeline

BLOCK_MAX = 6
"""Maximum number of rows that are recognised as one repetition."""
REPETITIONS_MIN = 3
"""Minimum number of repetitions of which only the first is shown."""

NETWORK_FONT = re.compile(r"@font-face \{.*?\}", re.DOTALL)
"""Font in a picture by rich, which a viewer would request from a server."""


class Screen(TimelineScreen):
    """Printer of timelines from a tape."""

    def timeline(self, shown: Timeline) -> None:
        """Print one timeline."""
        times = [moment((row.at - shown.began_at) * 1000) for row in shown.rows]
        table = timeline_table(max(TIME_WIDTH, *map(len, times)))
        first, clause = 0, ""
        for run, size in repeated([_key(row) for row in shown.rows]):
            for at, row in zip(times[first : first + size], shown.rows[first : first + size], strict=True):
                table.add_row(at, Text(row.source, STYLES[row.source]), self._event(row, clause))
                clause = (row.decision and row.decision.clause) or clause
            if run > size:
                table.add_row(times[first + run - 1], "", _rest(shown.rows[first : first + run], size))
            first += run
        table.rows[-1].style = "green" if shown.succeeded else "yellow"
        self._print(Text("\n").append(plain(shown.title, "bold")))
        for note in shown.notes:
            self._print(indented(plain(note, "dim"), 2))
        self._print(table)

    def sentences(self, sentences: Iterable[str]) -> None:
        """Print lines of text after an empty line."""
        self._print(Text("\n").join([Text(), *map(plain, sentences)]))

    def _event(self, row: Row, clause: str) -> Text:
        """Return an event, the decision, and its clause unless that is the clause of the previous decision."""
        text = Text.assemble(plain(row.text), plain(f" ({row.numbers})" if row.numbers else "", "dim"))
        if row.decided:
            stops = row.decision is not None and row.decision.kind in ("fail", "expire")
            text.append("\n").append(plain(f"{self._arrow} {row.decided}", "yellow" if stops else "green"))
        if row.decision is not None and row.decision.clause not in (None, clause):
            text.append("\n").append(plain(f"  {row.decision.clause}", "dim"))
        return text


class Picture(Screen):
    """Timelines as an SVG picture of a terminal."""

    def __init__(self) -> None:
        super().__init__(
            Console(
                file=StringIO(),
                record=True,
                width=READABLE_WIDTH,
                force_terminal=True,
                color_system="truecolor",
                no_color=False,
                legacy_windows=False,
            )
        )

    def svg(self, title: str) -> str:
        """Return the picture, with a title, as XML."""
        return NETWORK_FONT.sub("", self._console.export_svg(title=printable(title)))


def _key(row: Row) -> object:
    """Return the content of a row without its time, its numbers and its delay."""
    decision = row.decision
    return row.source, row.text, decision and (decision.kind, decision.reason, decision.error, decision.clause)


def repeated(keys: Sequence[object]) -> Iterator[tuple[int, int]]:
    """Divide rows into runs. Yield the length of each run, and how many of its first rows the other rows repeat."""
    first = 0
    while first < len(keys):
        run = size = 1
        for length in range(1, BLOCK_MAX + 1):
            block, end = keys[first : first + length], first + length
            while keys[end : end + length] == block:
                end += length
            if end - first >= REPETITIONS_MIN * length:
                run, size = end - first, length
                break
        yield run, size
        first += run


def _rest(rows: Sequence[Row], size: int) -> Text:
    delays = [row.decision.delay for row in rows[size:] if row.decision is not None and row.decision.delay is not None]
    times = f"the same {len(rows) // size - 1} more times"
    if delays:
        times += f", with delays of {min(delays) * 1000:g} to {max(delays) * 1000:g} ms"
    return Text(times, "dim")
