"""An explanation, for people: on a terminal in colours and lines of readable length, elsewhere one sentence a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

READABLE_WIDTH = 100
"""Columns beyond which lines are hard to read."""

GOOD, BAD, OPEN = "bold green", "bold red", "bold yellow"
"""How what comes of it looks: all is well or may yet be, it is not, nobody knows."""


@dataclass(frozen=True, slots=True)
class Telling:
    """One decision in sentences.

    Args:
        happened: what is explained.
        circumstances: what else went into it.
        steps: from there to what comes of it, in order.
        clauses: what recedes where it stands in a step.
        styles: of the steps that stand out.
    """

    happened: str
    circumstances: str
    steps: Sequence[str]
    clauses: Sequence[str]
    styles: dict[str, str]


def show(telling: Telling) -> None:
    """Print it."""
    console = Console(highlight=False)
    if not console.is_terminal:
        for sentence in (telling.happened, telling.circumstances, *telling.steps):
            console.print(Text(sentence), soft_wrap=True)
        return
    console.width = min(console.width, READABLE_WIDTH)
    console.print(Text(telling.happened, style="bold"))
    console.print(Text(telling.circumstances, style="dim"))
    console.print()
    console.print(numbered(telling))


def numbered(telling: Telling) -> Table:
    """Return the steps with their clauses dimmed, and what comes of it in colour."""
    table = Table.grid(padding=(0, 2))
    for number, step in enumerate(telling.steps, start=1):
        text = Text(step, style=telling.styles.get(step, ""))
        text.highlight_words(telling.clauses, style="dim")
        table.add_row(Text(str(number), style="dim"), text)
    return table
