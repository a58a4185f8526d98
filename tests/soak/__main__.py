"""``python -m tests.soak``: one soak, its figures, and its complaints."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path

from tests.soak.figures import FIGURES
from tests.soak.soak import Soak, SoakReport
from tests.soak.work import OPCODES, READS

WIDTH = 80
GLUE = "\N{NO-BREAK SPACE}"
"""Separator that keeps a count and its name on one line."""


def main() -> int:
    """Run a soak, print its results, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description="One client on real sockets and three nodes in constant trouble: prints what was "
        "done, what is left over, and whether memory has grown.",
        epilog="Exit status: 0 when all is well, 1 when something is wrong.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="how long")
    parser.add_argument("--tasks", type=int, default=64, help="how many work at once")
    parser.add_argument(
        "--seed",
        type=int,
        default=argparse.SUPPRESS,
        help="of what tasks do and what happens to nodes; unless given, another one each time",
    )
    parser.add_argument(
        "--pause", type=float, default=0.05, help="seconds between two operations of a task, on average"
    )
    parser.add_argument("--interval", type=float, default=2.0, help="seconds between two samples")
    parser.add_argument(
        "--no-tape",
        action="store_true",
        help="record no event tape; by default a soak in which something is wrong leaves one in a temporary folder",
    )
    drawn = argparse.Namespace(seed=random.SystemRandom().randrange(2**31))
    arguments = vars(parser.parse_args(namespace=drawn))
    tape = None if arguments.pop("no_tape") else Path(tempfile.mkdtemp(prefix="triclinium-soak-"), "tape.jsonl")
    print(f"seed {arguments['seed']}, {arguments['tasks']} tasks, {arguments['seconds']:g} s", flush=True)
    report = Soak(**arguments, tape=tape).run()
    show(report)
    complaints = report.complaints()
    for complaint in complaints:
        print(f"WRONG: {complaint}")
    print("something is wrong" if complaints else "all is well")
    if complaints and tape is not None:
        print(f"to replay the client: triclinium replay {tape}")
    elif tape is not None:
        shutil.rmtree(tape.parent)
    return 1 if complaints else 0


def show(report: SoakReport) -> None:
    """Print the figures."""
    applied, commands = report.nodes["applied"], report.nodes["commands"]
    print(f"\n{'operation':16} {'begun':>9} {'succeeded':>9} {'failed':>7} {'maybe':>6} {'applied':>8} {'requests':>9}")
    for kind, reported in report.known.reported.items():
        name = OPCODES[kind].name
        done = "" if kind in READS else applied.get(name, 0)
        figures = f"{reported.begun:9} {reported.succeeded:9} {reported.failed.total():7} {reported.maybe:6}"
        print(f"{kind:16} {figures} {done:>8} {commands.get(name, 0):9}")
    print(f"{'all':16} {report.known.begun:9}, {report.known.begun / report.seconds:.0f} a second")
    assert report.statistics is not None
    left = {
        "tasks": report.tasks_left,
        "waiters": report.waiters_left,
        "files": report.files_left,
        "timers": len(report.timers_left),
        "operations": report.statistics.open_operations,
        "requests in flight": report.statistics.in_flight,
    }
    print()
    say("failures", report.known.failures)
    say("retries", {str(reason): count for reason, count in report.statistics.retries_by_reason.items()})
    say("troubles", report.nodes["events"])
    say("left over", left)
    say("dropped", {"orphans": report.statistics.orphans})
    print(f"\n{'memory':16} {'first quarter':>14} {'last quarter':>14} {'growth':>8} {'an hour':>16}")
    for name in FIGURES:
        found = report.samples.trend(name)
        print(f"{name:16} {found.first:14,.0f} {found.last:14,.0f} {found.growth:8.2%} {found.slope_per_hour:16,.0f}")


def say(title: str, counts: Mapping[str, int]) -> None:
    """Print counts with their names on lines that fit a terminal, the greatest first."""
    ordered = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    words = (f"{count:,} {name}".replace(" ", GLUE) for name, count in ordered)
    text = textwrap.fill(", ".join(words) or "none", WIDTH, initial_indent=f"{title:12}", subsequent_indent=12 * " ")
    print(text.replace(GLUE, " "))


sys.exit(main())
