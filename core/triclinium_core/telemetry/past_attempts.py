"""Durations of the ended attempts of an operation or request."""

from __future__ import annotations

import msgspec


class PastAttempts(msgspec.Struct, gc=False):
    """Durations in seconds. A server duration is the time that the server reported; None without a report."""

    last: float = 0.0
    """Duration of the newest ended attempt."""
    total: float = 0.0
    last_server: float | None = None
    total_server: float | None = None

    def add(self, seconds: float, server_seconds: float | None) -> None:
        """Add an attempt that has just ended."""
        self.last, self.last_server = seconds, server_seconds
        self.total += seconds
        if server_seconds is not None:
            self.total_server = (self.total_server or 0.0) + server_seconds
