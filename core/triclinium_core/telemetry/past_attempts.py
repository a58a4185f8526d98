"""Sum of the attempts of an operation or request that are over."""

from __future__ import annotations

import msgspec


class PastAttempts(msgspec.Struct, gc=False):
    """How long they took. Durations are seconds; a server's are by its own clock, None where it has not told any."""

    last: float = 0.0
    """The newest one."""
    total: float = 0.0
    last_server: float | None = None
    total_server: float | None = None

    def add(self, seconds: float, server_seconds: float | None) -> None:
        """Add one that is over now."""
        self.last, self.last_server = seconds, server_seconds
        self.total += seconds
        if server_seconds is not None:
            self.total_server = (self.total_server or 0.0) + server_seconds
