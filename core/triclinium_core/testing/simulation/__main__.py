"""Runs the simulation as a command: the one module of the core with a clock, a terminal and processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing import get_context

from triclinium_core.testing.simulation.command import Spread, main
from triclinium_core.testing.simulation.hour import Outcome


def spread(jobs: int) -> Spread:
    """Return what plays histories in so many processes."""
    return map if jobs == 1 else partial(_in_processes, jobs)


def _in_processes(jobs: int, work: Callable[[int], Outcome], seeds: Iterable[int]) -> Iterator[Outcome]:
    with get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(work, seeds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], clock=time.monotonic, write=partial(print, flush=True), spread=spread))
