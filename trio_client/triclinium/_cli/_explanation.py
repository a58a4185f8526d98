"""An explanation, for people: on a terminal in colours and lines of readable length, elsewhere one sentence a line."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from triclinium_core.retry.explain import Case
from triclinium_core.retry.explanation import Explanation, Outcome, milliseconds

READABLE_WIDTH = 100
"""Columns beyond which lines are hard to read."""

STYLES: Mapping[Outcome, str] = {
    Outcome.RETRY: "bold green",
    Outcome.FAIL: "bold red",
    Outcome.COMPLETE: "bold green",
    Outcome.CONSULT: "bold yellow",
}


def show(case: Case, explanation: Explanation) -> None:
    """Print why a request would be retried, or not."""
    console = Console(highlight=False)
    happened, *steps = explanation.sentences()
    if not console.is_terminal:
        for sentence in (happened, circumstances(case), *steps):
            console.print(Text(sentence), soft_wrap=True)
        return
    console.width = min(console.width, READABLE_WIDTH)
    console.print(Text(happened, style="bold"))
    console.print(Text(circumstances(case), style="dim"))
    console.print()
    console.print(numbered(explanation))


def circumstances(case: Case) -> str:
    """Return how far the request had come, as a sentence."""
    retries = {0: "no retry", 1: "1 retry"}.get(case.attempt, f"{case.attempt} retries")
    elapsed = milliseconds(case.elapsed)
    if math.isinf(case.timeout):
        return f"Until then: {retries}, and {elapsed} ms have passed; no timeout ends it."
    return f"Until then: {retries}, and {elapsed} ms of {milliseconds(case.timeout)} ms have passed."


def numbered(explanation: Explanation) -> Table:
    """Return the steps of the decision with their clauses dimmed, and what comes of it in colour."""
    _, idempotency, reason, decision, outcome, *orders = explanation.sentences()
    outcome_style = "bold red" if explanation.dispatches is False else STYLES[explanation.outcome]
    styles = {outcome: outcome_style}
    table = Table.grid(padding=(0, 2))
    for number, step in enumerate((idempotency, reason, decision, outcome, *orders), start=1):
        text = Text(step, style=styles.get(step, ""))
        text.highlight_words(explanation.clauses, style="dim")
        table.add_row(Text(str(number), style="dim"), text)
    return table
