"""Delay after which the nodes of a fake cluster see changes that the cluster manager made.

A real node learns of a new bucket, or of a new manifest, when its cluster manager has read the change. Until then it
behaves as before the change: the bucket cannot be selected, and the collection is unknown.
"""

from __future__ import annotations

from triclinium_core.testing.fakes.store.documents import FakeDocuments


class Lateness:
    """Delay in seconds by node; a node without an entry sees all changes immediately.

    Args:
        documents: source of the current time.
    """

    def __init__(self, documents: FakeDocuments) -> None:
        self._documents = documents
        self._seconds: dict[int, float] = {}

    @property
    def now(self) -> float:
        """Time of the last event."""
        return self._documents.now

    @property
    def longest(self) -> float:
        """Longest delay of any node; 0 if no node is late."""
        return max(self._seconds.values(), default=0.0)

    def set(self, node: int, seconds: float) -> None:
        """Set the delay of a node in seconds. 0 removes the delay, also for changes that the node has not seen yet."""
        self._seconds[node] = seconds

    def learned_until(self, node: int) -> float:
        """Return the time up to which a node has seen all changes; it has seen no later changes."""
        return self._documents.now - self._seconds.get(node, 0.0)
