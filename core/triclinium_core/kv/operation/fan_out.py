"""A call that takes several operations, such as a scan: what to submit and when, and what its caller takes.

Whoever drives a ``FanOut`` waits and sends, and decides nothing:

1. Ask ``next_operations`` at first, after each ``settled`` and ``take``, and when ``wakeup`` has come. Submit what it
   returns, and record with ``settled`` what becomes of each.
2. Whoever wants something calls ``take``. Where that returns nothing, wait for the next ``settled`` and ask again; once
   the call ``is_over``, raise its ``failure``, or tell that there is no more.
3. When it ``is_over``, or nobody wants any more, give up the operations that are open, and record those that were settled
   all the same. Then ask ``close`` once, submit what it returns, and abandon that at once: nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from triclinium_core.kv.operation.document_operations import Operation

T_co = TypeVar("T_co", covariant=True)


class FanOut(Protocol[T_co]):
    """Several operations for one call."""

    @property
    def bucket(self) -> str | None:
        """The bucket of all its operations."""

    @property
    def wakeup(self) -> float:
        """When ``next_operations`` is to be asked although nothing has happened; ``inf`` for never."""

    @property
    def is_over(self) -> bool:
        """Whether no operation is needed any more. There may still be something to take."""

    @property
    def failure(self) -> Exception | None:
        """What to raise once it is over and all is taken; None where there is simply no more."""

    def next_operations(self, now: float, *, replicas: int | None = None) -> Sequence[Operation]:
        """Return the operations to submit now, beside those that are open.

        Args:
            replicas: ``replica_count`` of the client's machine for the bucket.
        """

    def settled(self, operation: Operation, outcome: object, *, vbuckets: int, replicas: int | None) -> None:
        """Record what became of an operation.

        Args:
            outcome: its result or its exception. One that is no ``CouchbaseException`` is the driver's own, and ends the
                call.
            vbuckets: what the client's machine says of the bucket by now, as ``vbucket_count``.
            replicas: the same, as ``replica_count``.
        """

    def take(self) -> Sequence[T_co]:
        """Return what has come and was not taken yet, or some of it."""

    def close(self) -> Sequence[Operation]:
        """End the call, and return what has nodes forget it."""
