"""Statistics of the bytes and responses that one connection receives."""

from __future__ import annotations

import math

import msgspec

from triclinium_core.runtime.kv.connection.server_time import ServerTime


class Received(msgspec.Struct):
    """Received bytes and responses of one connection, over all its streams."""

    at: float = -math.inf
    """Time at which the newest complete frame arrived, or at which the stream opened; ``-inf`` before."""
    work: int = 0
    """Units of work of the newest bytes."""
    server_time: ServerTime = msgspec.field(default_factory=ServerTime)

    def add_work(self, units: int) -> None:
        """Add the work of a parser to the work of the newest bytes."""
        self.work += units
