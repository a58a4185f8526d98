"""Figures of the client for Node beside the trio client, with one memcached.

Usage: ``uv run python -m tests.hosts.js.figures [--rounds N] [--scale SHARE]``. Shows medians and quartiles of all
rounds, in which both clients take turns. Exit statuses: 0 if all figures were measured, 1 if a program is missing or
fails, 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from tests.bench.clients import Job, Kind, fill, on_trio, triclinium
from tests.bench.report import show
from tests.bench.servers import BenchServer, memcached
from tests.bench.turns import WALL, Effort, Row, Turn, measure
from tests.hosts.folders import HOSTS
from tests.hosts.js.conftest import installed

GETS: Mapping[int, int] = {1: 2_000, 64: 20_480}
"""Number of gets in flight, and the number of gets in a turn."""
START = "s to import the package and open a cluster"


def rows(server: BenchServer, folder: Path, effort: Effort) -> Iterator[Row]:
    """Measure gets, the start of the client for Node, and its size."""

    def in_node(tasks: int, gets: int) -> Mapping[str, float]:
        command = ["node", str(folder / "speed.mjs"), server.connection_string, str(tasks), str(gets)]
        measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return {WALL: measured["us"], START: measured["opened"]}

    fill(job := Job(server, Kind.GET, bytes(100)))
    for tasks, gets in GETS.items():
        trio = on_trio(triclinium)(job, tasks, effort.of(gets))
        turns = {"trio": partial(only, WALL, trio), "Node": partial(in_node, tasks, effort.of(gets))}
        yield from measure("gets of about 100 B", f"{tasks} in flight", turns, effort)
    yield from measure("start", "a program", {"Node": partial(only, START, partial(in_node, 1, 1))}, effort)
    yield from measure("size", "a cluster", {"Node": partial(sizes, folder)}, Effort(rounds=1))


def only(unit: str, turn: Turn) -> Mapping[str, float]:
    """Return one of the costs of a turn."""
    return {unit: turn()[unit]}


def sizes(folder: Path) -> Mapping[str, float]:
    """Return the size of what a cluster loads, raw and compressed with xz. Wheels are compressed already."""
    assets = folder / "node_modules" / "triclinium" / "assets"
    listed = json.loads((assets / "assets.json").read_text(encoding="utf-8"))
    pyodide = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
    loaded = [assets / "pyodide" / name for name in pyodide] + [assets / "wheels" / name for name in listed["wheels"]]
    raw = [path.read_bytes() for path in loaded]
    return {"MB": sum(map(len, raw)) / 1e6, "MB compressed": sum(len(lzma.compress(each)) for each in raw) / 1e6}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, show the figures, and return the exit status."""
    parser = argparse.ArgumentParser(description="Measure the client for Node beside the trio client.")
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds (default: 5)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the work (default: 1)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary, memcached() as server:
        if server is None or shutil.which("node") is None:
            print("memcached and node are needed; install them", file=sys.stderr)
            return 1
        assets = Path(temporary) / "assets"
        subprocess.run([sys.executable, HOSTS / "js" / "assets.py", assets], check=True)
        for row in rows(server, installed(Path(temporary) / "programs", assets), Effort(options.rounds, options.scale)):
            show(row, Console())
    return 0


if __name__ == "__main__":
    sys.exit(main())
