"""What the machine says while the client works, and whether it grows."""

from __future__ import annotations

import gc
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import trio

from tests.soak.nodes import resident_bytes

GROWTH_MAX = 0.03
"""Of a median, between the first and the last quarter of the time after the beginning."""
WARM_UP_SHARE = 0.2
"""Of the samples, in which caches fill and the allocator finds its size."""


@dataclass(frozen=True)
class Sample:
    """One moment."""

    elapsed: float
    resident: int
    """Bytes of this process."""
    blocks: int
    """Pieces of memory that Python's allocator has given out."""
    objects: int
    """Objects that the garbage collector looks after."""
    tasks: int
    open_operations: int
    nodes_resident: int
    """Bytes of the process of the nodes."""


def living_tasks() -> int:
    """Return how many tasks there are."""
    return trio.lowlevel.current_statistics().tasks_living


def open_files() -> int:
    """Return how many files and sockets this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def sample(elapsed: float, *, open_operations: int, nodes_resident: int) -> Sample:
    """Return what there is now, without what only waits for the garbage collector."""
    gc.collect()
    return Sample(
        elapsed=elapsed,
        resident=resident_bytes(),
        blocks=sys.getallocatedblocks(),
        objects=len(gc.get_objects()),
        tasks=living_tasks(),
        open_operations=open_operations,
        nodes_resident=nodes_resident,
    )


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


def trend(samples: Sequence[Sample], name: str) -> Trend:
    """Return how a field of the samples went, without the first of them."""
    warm = samples[int(len(samples) * WARM_UP_SHARE) :]
    times = [found.elapsed for found in warm]
    values = [float(getattr(found, name)) for found in warm]
    quarter = max(1, len(values) // 4)
    slope = statistics.linear_regression(times, values).slope if len(set(times)) > 1 else 0.0
    return Trend(statistics.median(values[:quarter]), statistics.median(values[-quarter:]), slope * 3600)
