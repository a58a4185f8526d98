"""Timelines on a console: columns, colours, and plain output without trailing spaces."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Column, Table

from triclinium_core.timeline import Source

READABLE_WIDTH = 110
"""Maximum width in columns: longer lines are hard to read."""
PIPED_WIDTH = 100

STYLES: Mapping[Source, str] = {
    Source.CALLER: "bold",
    Source.CLIENT: "cyan",
    Source.NETWORK: "blue",
    Source.NODE: "magenta",
}
TIME_WIDTH = len("999.9 ms")
SOURCE_WIDTH = max(map(len, Source))


class TimelineScreen:
    """Printer of timelines: in colours on a terminal, elsewhere as plain text without trailing spaces.

    Args:
        console: console to print to; default: standard output.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = Console() if console is None else console
        self._console.width = min(self._console.width, READABLE_WIDTH) if self._console.is_terminal else PIPED_WIDTH
        self._speaks_unicode = self._console.encoding.lower().startswith("utf")
        self._arrow = "\N{RIGHTWARDS ARROW}" if self._speaks_unicode else "->"

    def _print(self, what: RenderableType) -> None:
        if self._console.is_terminal:
            self._console.print(what)
            return
        with self._console.capture() as captured:
            self._console.print(what)
        self._console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def timeline_table(time_width: int = TIME_WIDTH) -> Table:
    """Return an empty table with columns for the time, the actor and the event."""
    return Table.grid(
        Column(justify="right", style="dim", no_wrap=True, width=time_width),
        Column(no_wrap=True, width=SOURCE_WIDTH),
        Column(),
        padding=(0, 2, 0, 0),
    )


def moment(at_ms: float) -> str:
    """Return a time in milliseconds as text."""
    return f"{at_ms:.1f} ms" if at_ms < 999.95 else f"{at_ms:.0f} ms"


def indented(what: RenderableType, columns: int) -> Padding:
    """Return ``what`` with ``columns`` spaces on its left."""
    return Padding(what, (0, 0, 0, columns), expand=False)
