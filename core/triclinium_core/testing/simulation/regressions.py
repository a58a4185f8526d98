"""The seeds that ever broke a law: whatever else is played, these are played again."""

from __future__ import annotations

from collections.abc import Mapping

REGRESSIONS: Mapping[int, str] = {
    5_007: "a seed of the connection string that was no node any more, and an operation that failed fast",
    29_922_058: "a client that knew no map yet, of a cluster in which the document has no node",
}
"""By seed, what the history met that nothing had met before."""
