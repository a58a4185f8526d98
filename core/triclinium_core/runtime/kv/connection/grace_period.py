"""Grace period: limit on the duration of an unwanted condition, such as a full table of requests."""

from __future__ import annotations

import math

SECONDS_MAX = 10.0
"""Maximum number of seconds for which a node may ignore the client's own requests, or for which the table of requests
may be full while operations wait."""


class GracePeriod:
    """Period that starts with the first ``try_at``, and ends some seconds later or at ``reset``."""

    def __init__(self, seconds: float = SECONDS_MAX) -> None:
        self._seconds = seconds
        self.ends: float = math.inf
        """End of the period; ``inf`` if it has not started."""

    def try_at(self, now: float, *, read_at: float = math.inf) -> bool:
        """Start the period unless it has started. Return whether it is over.

        Args:
            read_at: time at which the driver last read all received bytes. The period is over only if it ended by that
                time, because unread bytes may end the condition.
        """
        self.ends = min(self.ends, now + self._seconds)
        return min(now, read_at) >= self.ends

    def reset(self) -> None:
        """Stop the period, because the condition has ended."""
        self.ends = math.inf
