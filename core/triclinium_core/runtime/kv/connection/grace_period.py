"""A limit on the duration of an unwanted condition."""

from __future__ import annotations

import math

SECONDS_MAX = 10.0
"""So long may all questions of ours stay unanswered, or the table of requests full while operations wait."""


class GracePeriod:
    """Runs out some seconds after it was tried first, unless it came to rest in between."""

    def __init__(self, seconds: float = SECONDS_MAX) -> None:
        self._seconds = seconds
        self.ends: float = math.inf
        """When it runs out; ``inf`` as long as nothing is wrong."""

    def try_at(self, now: float, *, read_at: float = math.inf) -> bool:
        """Try it once more, and return whether it has run out.

        Args:
            read_at: when all that had come was read last: what is owed may be among what came since.
        """
        self.ends = min(self.ends, now + self._seconds)
        return min(now, read_at) >= self.ends

    def reset(self) -> None:
        """Be content: nothing is owed now."""
        self.ends = math.inf
