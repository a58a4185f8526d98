"""``python -m tests.bench``: every figure of docs/internals/performance.md, with all contenders of a row in turn.

Other clients are measured if they are installed: ``uv run --group bench python -m tests.bench`` installs them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
from rich.console import Console

from tests.bench.parts import (
    bounds,
    bulk,
    calls,
    component,
    core,
    drivers,
    end_to_end,
    growth,
    headers,
    official,
    queries,
    retries,
    services,
    start_up,
    tapes,
    telemetry,
    tls,
)
from tests.bench.report import machine, plot, show, write_page
from tests.bench.turns import Effort, Row

PARTS: Mapping[str, Callable[[Effort], Iterator[Row]]] = {
    "end-to-end": end_to_end.rows,
    "tls": tls.rows,
    "official": official.rows,
    "bulk": bulk.rows,
    "core": core.rows,
    "drivers": drivers.rows,
    "calls": calls.rows,
    "headers": headers.rows,
    "retries": retries.rows,
    "growth": growth.rows,
    "start-up": start_up.rows,
    "services": services.rows,
    "queries": queries.rows,
    "telemetry": telemetry.rows,
    "bounds": bounds.rows,
    "tapes": tapes.rows,
    "component": component.rows,
}


def main() -> int:
    """Measure, and show the results."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="measure these parts alone")
    parser.add_argument("--rounds", type=int, default=3, help="in which all contenders of a row take turns")
    parser.add_argument("--scale", type=float, default=1.0, help="do this share of the work, to see that all rows work")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the tables into this page, where it names them")
    parser.add_argument("--plot", metavar="FILE", help="draw bars there, as SVG, PNG or PDF")
    arguments = parser.parse_args()
    console = Console()
    console.print(machine())
    found, effort = list[Row](), Effort(arguments.rounds, arguments.scale)
    for part in arguments.only:
        began = time.monotonic()
        for row in PARTS[part](effort):
            found.append(row)
            show(row, console)
        console.print(f"{part} took {time.monotonic() - began:.0f} seconds\n")
    if arguments.json is not None:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode({"machine": machine(), "rows": found})))
    if arguments.page is not None:
        write_page(arguments.page, found)
    if arguments.plot is not None:
        plot(found, arguments.plot)
    return 0


sys.exit(main())
