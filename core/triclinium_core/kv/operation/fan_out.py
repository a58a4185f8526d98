"""Protocol of calls that consist of several operations, such as a scan.

A ``FanOut`` returns operations to submit and items to deliver.

The driver of a ``FanOut`` waits and submits operations. It decides nothing:

1. Call ``next_operations`` at the start, after each ``settled`` and ``take``, and when ``wakeup`` is reached. Submit
   the operations that it returns, and pass the outcome of each to ``settled``.
2. To get the next items, call ``take``. If it returns no item and the call ``is_over``, raise its ``failure``, or
   report the end. If the call is not over, call ``take`` again after the next ``settled``.
3. When the call ``is_over``, or the caller wants no more items, abandon the open operations. If an operation has
   completed before it was abandoned, pass its outcome to ``settled``. Then call ``close`` once, submit the operations
   that it returns, and abandon them immediately, because no caller waits for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from triclinium_core.kv.operation.document_operations import Operation

T_co = TypeVar("T_co", covariant=True)


class FanOut(Protocol[T_co]):
    """Call that consists of several operations."""

    @property
    def bucket(self) -> str | None:
        """Bucket of all operations of the call; None for a plain memcached."""

    @property
    def wakeup(self) -> float:
        """Time at which to call ``next_operations`` even if nothing has happened; ``inf`` for never."""

    @property
    def is_over(self) -> bool:
        """Whether the call needs no further operation. ``take`` may still return items."""

    @property
    def failure(self) -> Exception | None:
        """Exception to raise once the call is over and all items are taken; None if the call succeeded."""

    def next_operations(self, now: float, *, replicas: int | None = None) -> Sequence[Operation]:
        """Return the operations to submit now, in addition to the open operations.

        Args:
            replicas: ``replica_count`` of the client's machine for the bucket.
        """

    def settled(self, operation: Operation, outcome: object, *, vbuckets: int, replicas: int | None) -> None:
        """Record the outcome of an operation.

        Args:
            outcome: result or exception of the operation. An exception other than a ``CouchbaseException`` comes from
                the driver and ends the call.
            vbuckets: current ``vbucket_count`` of the client's machine for the bucket.
            replicas: current ``replica_count`` of the client's machine for the bucket.
        """

    def take(self) -> Sequence[T_co]:
        """Return some or all of the items that have arrived and that ``take`` has not returned before."""

    def close(self) -> Sequence[Operation]:
        """End the call, and return the operations that release the state of the call on the nodes."""
