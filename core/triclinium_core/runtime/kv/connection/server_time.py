"""Time that a server spends on the requests of one connection, by its own clock.

The rest of what a caller waits for was spent on the network, and in this client.

Source: kv_engine ``docs/BinaryProtocol.md`` "Server Recv->Send duration"; HELLO feature ``Tracing``.
"""

from __future__ import annotations

import msgspec

from triclinium_core.kv.wire.framing_extras import server_duration


class ServerTime(msgspec.Struct, gc=False):
    """What the server said of its answers, over all streams of a connection. Durations are seconds."""

    answers: int = 0
    """Answers that told a duration."""
    total: float = 0.0
    longest: float = 0.0

    def note(self, framing_extras: bytes) -> None:
        """Record an answer, if it tells a duration."""
        duration = server_duration(framing_extras)
        if duration is not None:
            self.answers += 1
            self.total += duration
            self.longest = max(self.longest, duration)
