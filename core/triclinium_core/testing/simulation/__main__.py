"""Command line entry of the simulation. No other module of the core uses a clock, a terminal or processes."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from triclinium_core.testing.simulation.history import SeedResult
from triclinium_core.testing.simulation.simulation_command import KeepTapes, Spread, main

NOT_WRITTEN, PIPE_CLOSED = 74, 141
"""Exit statuses for a failed write of the output (sysexits.h), and for a closed pipe (the status of SIGPIPE)."""


def write(line: str) -> None:
    """Print a line. If that fails, exit with a message; exit silently if the reader of the output closed the pipe."""
    try:
        print(line, flush=True)
    except OSError as error:
        # Redirect the output, because Python flushes the buffer again at exit, which would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            sys.exit(PIPE_CLOSED)
        print(f"cannot write to standard output: {error.strerror}", file=sys.stderr)
        sys.exit(NOT_WRITTEN)


def spread(jobs: int) -> Spread:
    """Return a function that runs histories in ``jobs`` processes."""
    return map if jobs == 1 else partial(_in_processes, jobs)


def _in_processes(jobs: int, work: Callable[[int], SeedResult], seeds: Iterable[int]) -> Iterator[SeedResult]:
    with get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(work, seeds)


def keep_tapes(folder: str | None) -> KeepTapes:
    """Return a function that writes tapes to a new folder inside ``folder``; None for that of temporary files."""
    return partial(_write_tapes, folder)


def _write_tapes(folder: str | None, tapes: Sequence[bytes]) -> Sequence[str]:
    """Write tapes, and return their paths. If that fails, print a message and return no path."""
    try:
        if folder is not None:
            os.makedirs(folder, exist_ok=True)
        # Only the owner can read the new folder.
        inner = Path(tempfile.mkdtemp(prefix="triclinium-tapes-", dir=folder))
        paths = [inner / f"client-{number}.jsonl" for number in range(len(tapes))]
        for path, tape in zip(paths, tapes, strict=True):
            path.write_bytes(tape)
    except OSError as error:
        print(f"cannot write the tapes: {error}; name another folder with --tapes", file=sys.stderr)
        return ()
    return [str(path) for path in paths]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], clock=time.monotonic, write=write, spread=spread, keep_tapes=keep_tapes))
