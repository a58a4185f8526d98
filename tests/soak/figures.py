"""Figures of the process while the client runs, and their growth."""

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
"""Maximum growth of the median from the first to the last quarter of the time after the warm-up, as a share."""
WARM_UP_SHARE = 0.2
"""Share of the samples that are ignored, while caches fill and the allocator reaches its size."""


FIGURES = ("resident", "blocks", "objects", "tasks", "open_operations", "nodes_resident")
"""Figures of a sample.

They are the resident bytes of this process, the memory blocks that Python's allocator has handed out, the objects that
the garbage collector tracks, tasks, open operations, and the resident bytes of the nodes' process.
"""
MEMORY = ("resident", "blocks", "objects", "nodes_resident")
"""Figures that must not grow by more than ``GROWTH_MAX``."""


class Samples:
    """Figures at many moments. They are in arrays, which hardly change the measured memory."""

    def __init__(self) -> None:
        self._times = array("d")
        self._figures = {name: array("d") for name in FIGURES}

    def add(self, elapsed: float, **figures: float) -> None:
        """Record all figures of one moment."""
        self._times.append(elapsed)
        for name in FIGURES:
            self._figures[name].append(figures[name])

    def trend(self, name: str) -> Trend:
        """Return the trend of a figure, without the warm-up."""
        cold = int(len(self._times) * WARM_UP_SHARE)
        times, values = self._times[cold:], self._figures[name][cold:]
        quarter = max(1, len(values) // 4)
        slope = statistics.linear_regression(times, values).slope if len(values) > 1 else 0.0
        return Trend(statistics.median(values[:quarter]), statistics.median(values[-quarter:]), slope * 3600)


def living_tasks() -> int:
    """Return the number of live tasks."""
    return trio.lowlevel.current_statistics().tasks_living


def open_files() -> int:
    """Return the number of open files and sockets of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def own_figures() -> dict[str, float]:
    """Return the figures of this process after a garbage collection."""
    gc.collect()
    return {
        "resident": resident_bytes(),
        "blocks": sys.getallocatedblocks(),
        "objects": len(gc.get_objects()),
        "tasks": living_tasks(),
    }


@dataclass(frozen=True)
class Trend:
    """Trend of one figure."""

    first: float
    """Median of the first quarter of the samples after the warm-up."""
    last: float
    """Median of the last quarter of the same samples."""
    slope_per_hour: float
    """Change of the figure per hour, by least squares."""

    @property
    def growth(self) -> float:
        """Growth from the first to the last median, relative to the first."""
        return self.last / self.first - 1 if self.first else 0.0

    @property
    def is_flat(self) -> bool:
        """Whether the growth is within the tolerance."""
        return self.growth <= GROWTH_MAX
