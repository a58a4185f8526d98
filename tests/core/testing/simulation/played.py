"""Histories that several tests look at."""

from __future__ import annotations

from functools import cache

from triclinium_core.testing.simulation.history import ClusterHistory


@cache
def played(seed: int) -> ClusterHistory:
    """Return the history of a seed, which is over; each is played once in a process, so it is only to be read."""
    history = ClusterHistory(seed)
    history.run()
    return history
