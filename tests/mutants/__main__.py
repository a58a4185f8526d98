"""``python -m tests.mutants``: plant each bug in a copy of the sources, run the tests there, and show which ones fail.

The exit status is 1 if a bug survives or cannot be planted.
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from tests.mutants.judge import SECONDS_MAX, judge, table
from tests.mutants.mutant import drawn, mutants

WIDTH_MIN = 160
"""Columns that the table needs, even without a terminal."""


def main() -> int:
    """Judge the named mutants, a drawn selection, or all; return the exit status."""
    known = {mutant.name: mutant for mutant in mutants()}
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*known, []], metavar="mutant", help=", ".join(known))
    parser.add_argument("--seconds", type=float, default=SECONDS_MAX, help="that one run of tests may take")
    parser.add_argument("--shrink", action="store_true", help="shrink what the properties find, and show its faults")
    parser.add_argument("--draw", type=int, metavar="NUMBER", help="judge a few, which the number determines")
    parser.add_argument("--count", type=int, default=4, help="how many are drawn")
    arguments = parser.parse_args()
    names = arguments.names or known
    if arguments.draw is not None:
        names = drawn(names, arguments.draw, arguments.count)
    console = Console(width=max(Console().width, WIDTH_MIN))
    verdicts = []
    for name in names:
        verdict = judge(known[name], arguments.seconds, shrink=arguments.shrink)
        console.print(f"{name}: {verdict.summary}")
        verdicts.append(verdict)
    console.print(table(verdicts))
    survivors = [verdict.mutant.name for verdict in verdicts if not verdict.is_killed]
    if survivors:
        console.print(f"not killed: {', '.join(survivors)}", style="bold red")
    return bool(survivors)


sys.exit(main())
