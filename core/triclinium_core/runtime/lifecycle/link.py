"""Stream of an attempt."""

from __future__ import annotations

import msgspec


class Link(msgspec.Struct, frozen=True, gc=False):
    """One stream, as its attempts record it."""

    stream: int
    node: str
    """Name of the node in logs and errors: ``host:port``."""
    local_address: str | None
    """Local address of the stream, if the driver reported it."""
    remote_address: str | None = None
    """Remote address of the stream, not a host name, if the driver reported it."""
    local_id: str | None = None
    """Id of the connection in HELLO; None without a HELLO."""
