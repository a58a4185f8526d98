"""Time that a server spends on the requests of one connection, as the server measures it.

The rest of a caller's waiting time is spent on the network and in this client.

Source: kv_engine ``docs/BinaryProtocol.md`` "ID:0 - Server Recv->Send duration"; HELLO feature ``Tracing``.
"""

from __future__ import annotations

import msgspec

from triclinium_core.kv.wire.framing_extras import server_duration


class ServerTime(msgspec.Struct, gc=False):
    """Durations that the server reported, in seconds, over all streams of a connection."""

    answers: int = 0
    """Number of responses with a duration."""
    total: float = 0.0
    longest: float = 0.0

    def note(self, framing_extras: bytes) -> None:
        """Record the duration that a response reports, if it reports one."""
        duration = server_duration(framing_extras)
        if duration is not None:
            self.answers += 1
            self.total += duration
            self.longest = max(self.longest, duration)
