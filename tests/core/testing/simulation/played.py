"""Histories that several tests read."""

from __future__ import annotations

from functools import cache

from triclinium_core.testing.simulation.history import ClusterHistory


@cache
def played(seed: int) -> ClusterHistory:
    """Return the complete history of a seed. A process plays each history once, so tests must not change it."""
    history = ClusterHistory(seed)
    history.run()
    return history
