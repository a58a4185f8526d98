"""An explanation, for people: on a terminal in colours and lines of readable length, elsewhere one sentence a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from triclinium_core.explain.explanation import Explanation, Outcome

READABLE_WIDTH = 100
"""Columns beyond which lines are hard to read."""

GOOD, BAD, OPEN = "bold green", "bold red", "bold yellow"
"""How what comes of it looks: all is well or may yet be, it is not, nobody knows."""

STYLES: Mapping[Outcome, str] = {
    Outcome.RETRY: GOOD,
    Outcome.SAME_NODE: GOOD,
    Outcome.NEXT_NODE: GOOD,
    Outcome.PREPARE: GOOD,
    Outcome.COMPLETE: GOOD,
    Outcome.EMPTY: OPEN,
    Outcome.CONSULT: OPEN,
    Outcome.OPEN: OPEN,
    Outcome.FAIL: BAD,
}


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


def telling_of(explanation: Explanation, circumstances: str) -> Telling:
    """Return an explanation as it is told to people.

    Args:
        circumstances: what else went into it, as a sentence.
    """
    happened, *steps = explanation.told
    is_cut = explanation.facts.get("dispatches") is False
    return Telling(
        happened.text,
        circumstances,
        [step.text for step in steps],
        explanation.clauses,
        {step.text: BAD if is_cut else STYLES[step.outcome] for step in steps if step.outcome is not None},
    )


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


def retries(count: int) -> str:
    """Return so many retries in words."""
    return {0: "no retry", 1: "1 retry"}.get(count, f"{count} retries")
