"""One heap of named timers, and the next wakeup.

Cancelling releases the subject immediately and leaves the time in the heap. Times of cancelled timers are skipped, and
removed once they outnumber the live ones, so the size of the heap is proportional to the number of live timers.
"""

from __future__ import annotations

import heapq
import math
from typing import Generic, NewType, TypeVar

K = TypeVar("K")

TimerId = NewType("TimerId", int)


SWEEP_SIZE_MIN = 64
"""Number of entries up to which a sweep would cost more than it frees."""


class Timers(Generic[K]):
    """Timers by id, each with kind and subject, and a heap of their times. ``K`` is the type of the kinds."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, TimerId]] = []
        """Times of all timers, including cancelled ones. It refers to no subject."""
        self._live: dict[TimerId, tuple[K, object]] = {}
        """Kind and subject of each timer that is neither cancelled nor fired."""
        self._next_id = 0
        self.wakeup: float = math.inf
        """Instant at which the next timer is due; ``inf`` for never."""

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
        """Remove and return the first due timer. Return None if no timer is due, or it was added after ``newest``."""
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
