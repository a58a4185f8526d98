"""``python -m tests.bench``: every figure of docs/internals/performance.md, all contenders of a row in turn."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
from rich.console import Console

from tests.bench import core, end_to_end
from tests.bench.report import machine, plot, show
from tests.bench.turns import Row

PARTS: Mapping[str, Callable[[int], Iterator[Row]]] = {
    "core": core.rows,
    "end-to-end": end_to_end.rows,
}


def main() -> int:
    """Measure, and show what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="measure these parts alone")
    parser.add_argument("--rounds", type=int, default=5, help="in which all contenders of a row take turns")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--plot", metavar="FILE", help="draw bars there, as SVG, PNG or PDF")
    arguments = parser.parse_args()
    console = Console()
    console.print(machine())
    found = list[Row]()
    for part in arguments.only:
        for row in PARTS[part](arguments.rounds):
            found.append(row)
            show([row], console)
    if arguments.json is not None:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode({"machine": machine(), "rows": found})))
    if arguments.plot is not None:
        plot(found, arguments.plot)
    return 0


sys.exit(main())
