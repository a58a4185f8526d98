"""Durable writes of a fake cluster, from their preparation to their end.

Theory of operation. A durable write is *prepared*: everybody else goes on to see the document as it was. Every node of
the vbucket that replication reaches has it at once, in memory and on disk. When most copies of the vbucket have it, it
is *committed*, which is when it is seen and acknowledged; mostly that is at once. Meanwhile nobody else can write the
document. When it takes longer than the client gave it, or when too few nodes are left for it ever to succeed, it is
*aborted*, and the client is told that its end is ambiguous, because a real node does not know either.

A write whose node dies or is failed over, or whose vbucket moves, is left to the node that has the vbucket next, if
that one has it; until it is committed there, which no timeout prevents, nobody can even read the document.

Source: kv_engine docs/BinaryProtocol.md, "Durability Requirement"; the rules are those of the durability monitors of
its ep engine.
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
"""A vbucket with more copies has no durable writes, as on a real cluster: a majority of four is no better than of three."""


@dataclass(slots=True, eq=False)
class SyncWrite:
    """One durable write that was prepared."""

    address: DocumentAddress
    document: Document
    active: int
    """The node that has the vbucket, by its place."""
    due: float
    """When the client no longer waits for it."""
    holders: set[int] = field(default_factory=set)
    """The nodes that have it."""
    is_left: bool = False
    """Whether the node that has the vbucket next, or the same one after a restart, has to end it."""
    outcome: Status | None = None
    """What its client is to be told; None while that has to wait."""

    @property
    def is_settled(self) -> bool:
        """Whether it is known what the client is to be told."""
        return self.outcome is not None

    def settle(self, status: Status) -> None:
        """Settle what the client is told, unless that is settled already."""
        if self.outcome is None:
            self.outcome = status

    def leave(self) -> None:
        """Leave it to the node that has the vbucket next."""
        self.settle(Status.SYNC_WRITE_AMBIGUOUS)
        self.is_left, self.due = True, math.inf


class SyncWrites:
    """All durable writes that are prepared and neither committed nor aborted, one for a document at most."""

    def __init__(self, documents: FakeDocuments) -> None:
        self._documents = documents
        self._pending: dict[DocumentAddress, SyncWrite] = {}

    def check_free(self, address: DocumentAddress, *, to_write: bool) -> None:
        """Raise CommandRefused where a durable write to a document is prepared, or left to be committed again."""
        write = self._pending.get(address)
        if write is None:
            return
        if write.is_left:
            raise CommandRefused(Status.SYNC_WRITE_RE_COMMIT_IN_PROGRESS)
        if to_write:
            raise CommandRefused(Status.SYNC_WRITE_IN_PROGRESS)

    def add(self, write: SyncWrite) -> None:
        """Add a write that was just prepared, the only one to its document."""
        self._pending[write.address] = write
        self._documents.prepared[write.address] = write.document

    def due_of(self, node: int) -> float:
        """Return when the first write of a node is due; infinity for never."""
        if not self._pending:
            return math.inf
        return min((write.due for write in self._pending.values() if write.active == node), default=math.inf)

    def expire(self, now: float) -> None:
        """Abort what has taken too long."""
        for write in [write for write in self._pending.values() if write.due <= now]:
            self._abort(write)

    def lose(self, node: int, owners: Sequence[int]) -> None:
        """Abort the writes of a node that is failed over, where the one that takes over does not have them."""
        for write in list(self._pending.values()):
            if write.active == node and owners[write.address.vbucket] not in write.holders:
                self._abort(write)

    def review(self, known: FakeMap, *, dead: Collection[int], held: Collection[int]) -> None:
        """Have what is pending go as far as it can: ``dead`` nodes do nothing, and replication does not reach those ``held``."""
        for write in list(self._pending.values()):
            owner = known.owners[write.address.vbucket]
            if owner != write.active:
                # The node that takes a vbucket over gets all that belongs to it.
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
    """Return how many copies are most of a chain, with those that no node has now."""
    return len(chain) // 2 + 1
