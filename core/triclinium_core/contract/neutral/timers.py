"""Heap of timers, each with a kind and a subject, and the time of the next timer.

Cancelling a timer releases its subject immediately, but may leave its time in the heap. ``Timers`` skips the times of
cancelled timers, and sweeps them out of a heap of more than ``SWEEP_SIZE_MIN`` entries when they outnumber the live
timers. A large heap therefore grows only with the number of live timers.
"""

from __future__ import annotations

import heapq
import math
from typing import Generic, NewType, TypeVar

K = TypeVar("K")

TimerId = NewType("TimerId", int)


SWEEP_SIZE_MIN = 64
"""Number of entries up to which the heap is not swept, because a sweep would cost more than it frees."""


class Timers(Generic[K]):
    """Timers by id, each with a kind and a subject, and a heap of their times. ``K`` is the type of the kinds."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, TimerId]] = []
        """Times and ids of the live timers, and of cancelled ones that have not been removed. The heap has no
        references to subjects."""
        self._live: dict[TimerId, tuple[K, object]] = {}
        """Kind and subject of each timer that has neither fired nor been cancelled."""
        self._next_id = 0
        self.wakeup: float = math.inf
        """Time at which the next timer is due; ``inf`` without timers."""

    def __len__(self) -> int:
        return len(self._live)

    def schedule(self, when: float, kind: K, subject: object) -> TimerId:
        """Add a timer and return its id. A timer for ``inf`` never fires."""
        self._next_id += 1
        timer = TimerId(self._next_id)
        if when < math.inf:
            self._live[timer] = kind, subject
            heapq.heappush(self._heap, (when, timer))
            self.wakeup = self._heap[0][0]
        return timer

    def cancel(self, timer: TimerId | None) -> None:
        """Remove a timer and its subject. Ignore None and a timer that has fired."""
        if timer is None:
            return
        self._live.pop(timer, None)
        if len(self._heap) > SWEEP_SIZE_MIN and len(self._heap) > 2 * len(self._live):
            self._heap = [entry for entry in self._heap if entry[1] in self._live]
            heapq.heapify(self._heap)
        self._look_ahead()

    @property
    def newest(self) -> TimerId:
        """Id of the newest timer; 0 before the first."""
        return TimerId(self._next_id)

    def pop_due(self, now: float, newest: TimerId) -> tuple[K, object] | None:
        """Remove the first due timer, and return its kind and its subject.

        Return None if no timer is due, or if the first due timer was added after ``newest``.
        """
        if self.wakeup > now or not self._heap or self._heap[0][1] > newest:
            return None
        _, timer = heapq.heappop(self._heap)
        due = self._live.pop(timer)
        self._look_ahead()
        return due

    def _look_ahead(self) -> None:
        while self._heap and self._heap[0][1] not in self._live:
            heapq.heappop(self._heap)
        self.wakeup = self._heap[0][0] if self._heap else math.inf
