"""Durable writes of a fake cluster, from preparation to completion.

Theory of operation. A durable write is *prepared*: other clients still see the previous version. Every node of the
vbucket that replication reaches has it immediately, in memory and on disk. When a majority of the copies of the vbucket
have it, it is *committed*: it becomes visible and is acknowledged, in most cases immediately. Until then no client
can write the document again. If the write exceeds the client's timeout, or if too few nodes are left, the write is
*aborted*, and the client gets an ambiguous status, because a real node does not know the result either.

If the node of a write dies or is failed over, or its vbucket moves, the next node of the vbucket completes the write,
if that node has received it. Until the write is committed there, which no timeout prevents, no client can even read
the document, except from a replica.

Source: kv_engine docs/BinaryProtocol.md, "ID:1 - Durability Requirement"; the durability monitors of its ep engine.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.answers import CommandRefused
from triclinium_core.testing.fakes.store.cluster_map import NO_NODE, FakeMap
from triclinium_core.testing.fakes.store.documents import Document, DocumentAddress, FakeDocuments

COPIES_MAX = 3
"""Maximum number of copies of a vbucket for durable writes, as on a real cluster: a fourth copy adds no safety."""


@dataclass(slots=True, eq=False)
class SyncWrite:
    """One prepared durable write."""

    address: DocumentAddress
    document: Document
    active: int
    """Index of the node that has the vbucket."""
    due: float
    """Time at which the client's timeout ends."""
    holders: set[int] = field(default_factory=set)
    """Nodes that have the write."""
    is_left: bool = False
    """Whether the next node of the vbucket, or the current node after a restart, must complete the write."""
    outcome: Status | None = None
    """Status for the client; None while it is undecided."""

    @property
    def is_settled(self) -> bool:
        """Whether the status for the client is decided."""
        return self.outcome is not None

    def settle(self, status: Status) -> None:
        """Decide the status for the client, unless it is decided already."""
        if self.outcome is None:
            self.outcome = status

    def leave(self) -> None:
        """Leave the write to the next node of the vbucket."""
        self.settle(Status.SYNC_WRITE_AMBIGUOUS)
        self.is_left, self.due = True, math.inf


class SyncWrites:
    """Prepared durable writes that are neither committed nor aborted, at most one per document."""

    def __init__(self, documents: FakeDocuments) -> None:
        self._documents = documents
        self._pending: dict[DocumentAddress, SyncWrite] = {}

    def check_free(self, address: DocumentAddress, *, to_write: bool) -> None:
        """Raise CommandRefused for a write if a durable write to the document is pending.

        Raise it for a read too if the durable write is to be committed again.
        """
        write = self._pending.get(address)
        if write is None:
            return
        if write.is_left:
            raise CommandRefused(Status.SYNC_WRITE_RE_COMMIT_IN_PROGRESS)
        if to_write:
            raise CommandRefused(Status.SYNC_WRITE_IN_PROGRESS)

    def add(self, write: SyncWrite) -> None:
        """Add a newly prepared write, the only one to its document."""
        self._pending[write.address] = write
        self._documents.prepared[write.address] = write.document

    def due_of(self, node: int) -> float:
        """Return the time at which the first write of a node times out; infinity without one."""
        if not self._pending:
            return math.inf
        return min((write.due for write in self._pending.values() if write.active == node), default=math.inf)

    def expire(self, now: float) -> None:
        """Abort the writes that have timed out."""
        for write in [write for write in self._pending.values() if write.due <= now]:
            self._abort(write)

    def lose(self, node: int, owners: Sequence[int]) -> None:
        """Abort the writes of a failed-over node, unless the node that takes over has them."""
        for write in list(self._pending.values()):
            if write.active == node and owners[write.address.vbucket] not in write.holders:
                self._abort(write)

    def review(self, known: FakeMap, *, dead: Collection[int], held: Collection[int]) -> None:
        """Advance pending writes; ``dead`` nodes do nothing, and replication does not reach ``held`` nodes."""
        for write in list(self._pending.values()):
            owner = known.owners[write.address.vbucket]
            if owner != write.active:
                # The node that takes over a vbucket gets all of its writes.
                write.leave()
                write.active = owner
                write.holders.add(owner)
            if owner in dead:
                write.leave()
            elif owner != NO_NODE:
                self._replicate(write, known.chain(write.address.vbucket), {*dead, *held} - {owner})

    def _replicate(self, write: SyncWrite, chain: list[int], unreachable: Collection[int]) -> None:
        copies = {node for node in chain if node != NO_NODE}
        write.holders |= copies.difference(unreachable)
        if len(write.holders & copies) >= majority_of(chain):
            del self._pending[write.address]
            self._documents.store(write.address, self._documents.prepared.pop(write.address))
            write.settle(Status.SUCCESS)
        elif len(copies) < majority_of(chain):
            self._abort(write)

    def _abort(self, write: SyncWrite) -> None:
        del self._pending[write.address]
        del self._documents.prepared[write.address]
        write.settle(Status.SYNC_WRITE_AMBIGUOUS)


def majority_of(chain: list[int]) -> int:
    """Return the number of copies that is a majority of a chain, including the copies that no node has."""
    return len(chain) // 2 + 1
