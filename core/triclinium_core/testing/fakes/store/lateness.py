"""Delay until the nodes of a fake cluster see changes by the cluster manager.

A real node learns of a new bucket, or of a new manifest, when the cluster manager on it has read the news. Until then it
answers as before: it lets nobody select the bucket, and does not know the collection.
"""

from __future__ import annotations

from triclinium_core.testing.fakes.store.documents import FakeDocuments


class Lateness:
    """Seconds by node; a node that stands here with none hears of everything at once.

    Args:
        documents: they know what time it is.
    """

    def __init__(self, documents: FakeDocuments) -> None:
        self._documents = documents
        self._seconds: dict[int, float] = {}

    @property
    def now(self) -> float:
        """The time of the last event."""
        return self._documents.now

    @property
    def longest(self) -> float:
        """How late the latest node is; 0 where none is."""
        return max(self._seconds.values(), default=0.0)

    def set(self, node: int, seconds: float) -> None:
        """Have a node hear of things so many seconds late; 0 for at once, also of what it has not heard of yet."""
        self._seconds[node] = seconds

    def heard_at(self, node: int) -> float:
        """Return the instant whose news a node has heard by now, and none that are later."""
        return self._documents.now - self._seconds.get(node, 0.0)
