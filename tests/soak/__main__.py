"""``python -m tests.soak --seconds 600``: one soak, its figures, and what is wrong with them."""

from __future__ import annotations

import argparse
import random
import sys

from tests.soak.figures import FIGURES
from tests.soak.soak import Report, Soak
from tests.soak.work import OPCODES, READS


def main() -> int:
    """Run a soak and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    parser.add_argument(
        "--pause", type=float, default=0.05, help="seconds between two operations of a task, on average"
    )
    parser.add_argument("--interval", type=float, default=2.0, help="seconds between two samples")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, {arguments.tasks} tasks, {arguments.seconds:g} s", flush=True)
    report = Soak(**vars(arguments)).run()
    show(report)
    complaints = report.complaints()
    for complaint in complaints:
        print(f"WRONG: {complaint}")
    print("something is wrong" if complaints else "all is well")
    return 1 if complaints else 0


def show(report: Report) -> None:
    """Print the figures."""
    applied, commands = report.nodes["applied"], report.nodes["commands"]
    print(f"\n{'operation':16} {'begun':>9} {'succeeded':>9} {'failed':>7} {'maybe':>6} {'applied':>8} {'requests':>9}")
    for kind, told in report.known.told.items():
        name = OPCODES[kind].name
        done = "" if kind in READS else applied.get(name, 0)
        figures = f"{told.begun:9} {told.succeeded:9} {told.failed.total():7} {told.maybe:6}"
        print(f"{kind:16} {figures} {done:>8} {commands.get(name, 0):9}")
    print(f"{'all':16} {report.known.begun:9}, {report.known.begun / report.seconds:.0f} a second")
    print("\nfailures:   " + ", ".join(f"{name} {count}" for name, count in report.known.failures.most_common()))
    assert report.statistics is not None
    retries = sorted(report.statistics.retries_by_reason.items(), key=lambda item: -item[1])
    print("retries:    " + ", ".join(f"{reason} {count}" for reason, count in retries))
    print("troubles:   " + ", ".join(f"{name} {count}" for name, count in sorted(report.nodes["events"].items())))
    print(
        f"left:       {report.tasks_left} tasks, {report.waiters_left} waiters, {report.files_left} files, "
        f"{len(report.timers_left)} timers, {report.statistics.open_operations} operations, "
        f"{report.statistics.in_flight} in flight; {report.statistics.orphans} orphans were dropped"
    )
    print(f"\n{'memory':16} {'first quarter':>14} {'last quarter':>14} {'growth':>8} {'an hour':>12}")
    for name in FIGURES:
        found = report.samples.trend(name)
        print(f"{name:16} {found.first:14,.0f} {found.last:14,.0f} {found.growth:8.2%} {found.slope_per_hour:12,.0f}")


sys.exit(main())
