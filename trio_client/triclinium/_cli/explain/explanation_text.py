"""Text of an explanation: in colours and wrapped on a terminal, otherwise one sentence a line."""

from __future__ import annotations

from collections.abc import Mapping

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from triclinium._cli._output import plain
from triclinium_core.explain.explanation import Explanation, Outcome
from triclinium_core.shown import json_text

READABLE_WIDTH = 100
"""Maximum width in columns: longer lines are hard to read."""

GOOD, BAD, OPEN = "bold green", "bold red", "bold yellow"
"""Styles of the outcome: success or possible success, failure, unknown."""

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


def print_explanation(explanation: Explanation, circumstances: str, *, as_json: bool) -> None:
    """Print an explanation, as JSON on one line or for people.

    Args:
        circumstances: facts about the case besides the event, in sentences; not part of the JSON.
    """
    if as_json:
        click.echo(json_text(explanation.to_json()))
        return
    console = Console(highlight=False)
    happened, *steps = explanation.sentences()
    if not console.is_terminal:
        for sentence in (happened, circumstances, *steps):
            console.print(plain(sentence), soft_wrap=True)
        return
    console.width = min(console.width, READABLE_WIDTH)
    console.print(plain(happened, "bold"))
    console.print(plain(circumstances, "dim"))
    console.print()
    console.print(numbered(explanation))


def numbered(explanation: Explanation) -> Table:
    """Return a table of the numbered steps, with the clauses dimmed and the outcome in colour."""
    is_cut = explanation.facts.get("dispatches") is False
    table = Table.grid(padding=(0, 2))
    for number, step in enumerate(explanation.steps[1:], start=1):
        style = "" if step.outcome is None else BAD if is_cut else STYLES[step.outcome]
        text = plain(step.text, style)
        text.highlight_words(explanation.clauses, style="dim")
        table.add_row(Text(str(number), style="dim"), text)
    return table


def retries(count: int) -> str:
    """Return a number of retries as text."""
    return {0: "no retries", 1: "1 retry"}.get(count, f"{count} retries")
