"""Figures of the client for Node beside the trio client, with one memcached.

Usage: ``uv run python -m tests.hosts.js.figures [--rounds N] [--seconds SECONDS]``. Prints the medians of all rounds,
in which both clients take turns. Exit statuses: 0 if all figures were measured, 1 if a program is missing or fails, 2
for wrong arguments.
"""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import trio

import triclinium
from tests.hosts.folders import HOSTS
from tests.live.memcached import Memcached

PROGRAMS = Path(__file__).parent / "programs"


async def gets_per_second(connection_string: str, tasks: int, seconds: float) -> float:
    """Return the gets per second of the trio client."""
    count = 0
    async with triclinium.open_cluster(connection_string) as cluster, trio.open_nursery() as nursery:
        store = cluster.default_collection()
        await store.upsert("ada", {"text": "x" * 80})
        end = trio.current_time() + seconds

        async def task() -> None:
            nonlocal count
            while trio.current_time() < end:
                assert (await store.get("ada")).content
                count += 1

        for _ in range(tasks):
            nursery.start_soon(task)
    return count / seconds


def sizes(assets: Path) -> tuple[float, float]:
    """Return the size in MB of what a cluster loads, raw and compressed with xz. Wheels are compressed already."""
    listed = json.loads((assets / "assets.json").read_text(encoding="utf-8"))
    pyodide = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
    loaded = [assets / "pyodide" / name for name in pyodide] + [assets / "wheels" / name for name in listed["wheels"]]
    raw = [path.read_bytes() for path in loaded]
    return sum(map(len, raw)) / 1e6, sum(len(lzma.compress(each)) for each in raw) / 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the figures, and return the exit status."""
    parser = argparse.ArgumentParser(description="Measure the client for Node beside the trio client.")
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds (default: 5)")
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds of each measurement (default: 2)")
    options = parser.parse_args(arguments)
    program, node = shutil.which("memcached"), shutil.which("node")
    if program is None or node is None:
        print("memcached and node are needed; install them", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as temporary, Memcached(program) as server:
        package = Path(temporary) / "node_modules" / "triclinium"
        shutil.copytree(HOSTS / "js", package, ignore=shutil.ignore_patterns("assets", "node_modules"))
        assets = package / "assets"
        subprocess.run([sys.executable, HOSTS / "js" / "assets.py", assets], check=True)
        shutil.copytree(PROGRAMS, temporary, dirs_exist_ok=True)
        command = [node, str(Path(temporary) / "speed.mjs"), server.connection_string, str(options.seconds)]
        rows: dict[str, list[float]] = {}

        def note(name: str, value: float) -> None:
            rows.setdefault(name, []).append(value)

        for _ in range(options.rounds):
            began = time.perf_counter()
            measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            note("seconds of the Node program in all", time.perf_counter() - began)
            note("seconds to import the package and open a cluster", measured["opened"])
            for tasks, name in ((1, "one"), (64, "many")):
                note(f"gets per second with {tasks} in flight, Node", measured[name])
                trios = trio.run(gets_per_second, server.connection_string, tasks, options.seconds)
                note(f"gets per second with {tasks} in flight, trio client", trios)
        raw, compressed = sizes(assets)
        note("MB that a cluster loads", raw)
        note("MB that a cluster loads, compressed", compressed)
    for name, values in rows.items():
        print(f"{name:52} {statistics.median(values):10,.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
