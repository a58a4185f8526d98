"""Answers of the playground: a choice in, HTML out. The worker calls ``answer``, and so does the build of the pages."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from docs._static.playground import cluster, coordinators, outage
from docs._static.playground.story import tag
from triclinium_core.argument_error import ArgumentError
from triclinium_core.tools import fleet

OWN = "your own"
"""Strategy whose code the reader writes."""
KINDS: Mapping[str, Any] = {
    **dict.fromkeys((*cluster.OPERATIONS, *cluster.QUERIES), cluster),
    **dict.fromkeys(coordinators.OPERATIONS, coordinators),
}


def answer(question: str, on_progress: Callable[[float], None] = lambda share: None) -> str:
    """Return the answer to a question as HTML. The answer to an invalid one describes the error.

    Args:
        question: JSON object. Its member ``form`` is ``story`` or ``outage``; the others are the fields of the form.
        on_progress: callback with the finished share of a simulation.
    """
    choice = json.loads(question)
    try:
        if choice["form"] == "outage":
            fleets = {name: row.make_process for name, row in fleet.STRATEGIES.items()}
            fleets[OWN] = fleet.couchbase_clients(lambda: own_strategy(choice["code"]))
            return outage.played(choice, {name: _one_of(fleets, name) for name in choice["fleet"]}, on_progress)
        kind = _one_of(KINDS, choice["operation"])
        strategies = {**kind.STRATEGIES, OWN: lambda _: own_strategy(choice["code"])}
        faults = [*choice["fault"], *(fault for fault in choice["more"].split(";") if fault.strip())]
        return str(kind.play(choice["operation"], faults, _one_of(strategies, choice["strategy"])))
    except ValueError as error:
        return tag("p", tag("strong", "Invalid choice"), f": {error}", class_="outcome bad")


def _one_of(known: Mapping[str, Any], name: str) -> Any:
    if name not in known:
        raise ArgumentError(f"{name[:60]!r} is unknown; choose from {', '.join(known)}", parameter="choice")
    return known[name]


def own_strategy(code: str) -> Any:
    """Run code of the reader. Return the object that it names ``strategy``, or raise ArgumentError."""
    names: dict[str, Any] = {}
    try:
        exec(compile(code, "<your code>", "exec"), names)  # noqa: S102  # Readers run it in the worker of their page.
        return names["strategy"]
    except Exception as error:
        reason = "".join(traceback.format_exception_only(error)).strip()
        raise ArgumentError(f"your code does not define strategy: {reason}", parameter="code") from None
