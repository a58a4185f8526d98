"""Prepared durable writes in the store. ``commands/test_durable.py`` tests them through a client."""

from __future__ import annotations

import math

from triclinium_core.testing.fakes.store.documents import DocumentAddress, FakeDocuments
from triclinium_core.testing.fakes.store.sync_writes import SyncWrite, SyncWrites

ADDRESS = DocumentAddress("travel", 0, 0, b"ada")


def test_failover_ends_only_the_lost_nodes_writes() -> None:
    """A failover ends the writes that only the lost node had, and keeps those of other nodes."""
    documents = FakeDocuments(vbuckets=128, wall_seconds_at_zero=0.0)
    writes = SyncWrites(documents)
    with documents.hiding() as written:
        documents.write(ADDRESS, b"2", flags=0, expires_at=math.inf)
    (document,) = written
    writes.add(SyncWrite(ADDRESS, document, active=0, due=5.0))
    writes.lose(3, [1])
    untouched = writes.due_of(0)
    writes.lose(0, [1])

    assert (5.0, math.inf) == (untouched, writes.due_of(0))
