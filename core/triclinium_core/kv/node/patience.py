"""How long a peer may owe us something before its connection is given up."""

from __future__ import annotations

import math

SECONDS_MAX = 10.0
"""So long may all questions of ours stay unanswered, or the table of requests full."""


class Patience:
    """Runs out ``SECONDS_MAX`` after it was tried first, unless it came to rest in between."""

    def __init__(self) -> None:
        self._since = math.inf

    def try_at(self, now: float) -> bool:
        """Try it once more, and return whether it has run out."""
        self._since = min(self._since, now)
        return now - self._since >= SECONDS_MAX

    def rest(self) -> None:
        """Be content: nothing is owed now."""
        self._since = math.inf
