"""Durable writes that are prepared; what a client sees of them stands in ``test_durable_commands``."""

from __future__ import annotations

import math

from triclinium_core.testing.fakes.store.documents import DocumentAddress, FakeDocuments
from triclinium_core.testing.fakes.store.sync_writes import SyncWrite, SyncWrites

ADDRESS = DocumentAddress("travel", 0, 0, b"ada")


def test_a_failover_ends_only_what_the_lost_node_had_alone() -> None:
    """Not the writes of other nodes, whoever has their vbucket next."""
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
