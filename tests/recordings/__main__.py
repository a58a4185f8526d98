"""``python -m tests.recordings``: record the actions of simulated histories, and compare two recordings.

Before a change without an effect on behaviour, record; after it, record again and compare::

    uv run python -m tests.recordings record before.gz
    uv run python -m tests.recordings record after.gz
    uv run python -m tests.recordings compare before.gz after.gz

Exits with 1 if the recordings differ.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path

from tests.recordings.comparison import compared, read
from tests.recordings.recording import write

SEEDS_DEFAULT = 100


def main() -> int:
    """Run one of the two commands, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.recordings", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="write the events and actions of histories to a file")
    record.add_argument("file", type=Path)
    record.add_argument("--seeds", type=int, default=SEEDS_DEFAULT, help="number of histories")
    compare = commands.add_parser("compare", help="show the first difference of each history")
    compare.add_argument("old", type=Path)
    compare.add_argument("new", type=Path)
    compare.add_argument(
        "--renamed",
        action="append",
        default=[],
        nargs=2,
        metavar=("OLD", "NEW"),
        help="a class or field that has a new name",
    )
    arguments = parser.parse_args()
    if arguments.command == "record":
        write(arguments.file, range(arguments.seeds), _in_processes)
        return 0
    comparison = compared(read(arguments.old), read(arguments.new), dict(arguments.renamed))
    for difference in comparison.differences:
        print(difference, end="\n\n")
    print(
        f"{comparison.actions:,} actions of {comparison.histories:,} histories: "
        f"{len(comparison.differences):,} histories differ"
    )
    return bool(comparison.differences)


def _in_processes(work: Callable[[int], Sequence[str]], seeds: Iterable[int]) -> Iterator[Sequence[str]]:
    with get_context("spawn").Pool(os.cpu_count()) as pool:
        yield from pool.imap(work, seeds)


if __name__ == "__main__":
    sys.exit(main())
