"""Blocks and outcomes of the bulk operations: ``Collection.get_many``, ``upsert_many`` and so on."""

from __future__ import annotations

from triclinium._bulk.outcomes import BulkOutcomes, BulkReads, BulkWrites
from triclinium._bulk.record import BulkOutcome
from triclinium._bulk.sources import Keys, Pairs

__all__ = [
    "BulkOutcome",
    "BulkOutcomes",
    "BulkReads",
    "BulkWrites",
    "Keys",
    "Pairs",
]
