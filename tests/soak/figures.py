"""What the machine says while the client works, and whether it grows."""

from __future__ import annotations

import gc
import statistics
import sys
from array import array
from dataclasses import dataclass
from pathlib import Path

import trio

from tests.soak.nodes import resident_bytes

GROWTH_MAX = 0.03
"""Of a median, between the first and the last quarter of the time after the beginning."""
WARM_UP_SHARE = 0.2
"""Of the samples, in which caches fill and the allocator finds its size."""


FIGURES = ("resident", "blocks", "objects", "tasks", "open_operations", "nodes_resident")
"""Bytes of this process; pieces of memory that Python's allocator has given out; objects that the garbage collector looks
after; tasks; operations that are open; bytes of the nodes' process."""
MEMORY = ("resident", "blocks", "objects", "nodes_resident")
"""The figures that must not grow."""


class Samples:
    """The figures of many moments, in arrays, so that they take no part in what they measure."""

    def __init__(self) -> None:
        self._times = array("d")
        self._figures = {name: array("d") for name in FIGURES}

    def add(self, elapsed: float, **figures: float) -> None:
        """Take down all figures of one moment."""
        self._times.append(elapsed)
        for name in FIGURES:
            self._figures[name].append(figures[name])

    def trend(self, name: str) -> Trend:
        """Return how a figure went, without the first of its time."""
        cold = int(len(self._times) * WARM_UP_SHARE)
        times, values = self._times[cold:], self._figures[name][cold:]
        quarter = max(1, len(values) // 4)
        slope = statistics.linear_regression(times, values).slope if len(values) > 1 else 0.0
        return Trend(statistics.median(values[:quarter]), statistics.median(values[-quarter:]), slope * 3600)


def living_tasks() -> int:
    """Return how many tasks there are."""
    return trio.lowlevel.current_statistics().tasks_living


def open_files() -> int:
    """Return how many files and sockets this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def own_figures() -> dict[str, float]:
    """Return the figures of this process, without what only waits for the garbage collector."""
    gc.collect()
    return {
        "resident": resident_bytes(),
        "blocks": sys.getallocatedblocks(),
        "objects": len(gc.get_objects()),
        "tasks": living_tasks(),
    }


@dataclass(frozen=True)
class Trend:
    """How one figure went."""

    first: float
    """Median of the first quarter, once all is warm."""
    last: float
    """Median of the last quarter."""
    slope_per_hour: float
    """By least squares."""

    @property
    def growth(self) -> float:
        """How much more the last is than the first, as a share of it."""
        return self.last / self.first - 1 if self.first else 0.0

    @property
    def is_flat(self) -> bool:
        """Whether it has not grown beyond chance."""
        return self.growth <= GROWTH_MAX
