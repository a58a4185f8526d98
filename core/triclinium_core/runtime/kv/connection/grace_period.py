"""Limit on the duration of an unwanted condition."""

from __future__ import annotations

import math

SECONDS_MAX = 10.0
"""Maximum number of seconds without a response to the client's own requests, or with a full table of requests while
operations wait."""


class GracePeriod:
    """Period that starts with the first ``try_at`` and ends some seconds later, unless ``reset`` is called before."""

    def __init__(self, seconds: float = SECONDS_MAX) -> None:
        self._seconds = seconds
        self.ends: float = math.inf
        """End of the period; ``inf`` if it has not started."""

    def try_at(self, now: float, *, read_at: float = math.inf) -> bool:
        """Start the period unless it has started. Return whether it is over.

        Args:
            read_at: when all received bytes were last read: bytes that arrived later may end the condition.
        """
        self.ends = min(self.ends, now + self._seconds)
        return min(now, read_at) >= self.ends

    def reset(self) -> None:
        """Stop the period, because the condition has ended."""
        self.ends = math.inf
