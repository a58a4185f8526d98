"""The stream on which an attempt travels."""

from __future__ import annotations

import msgspec


class Link(msgspec.Struct, frozen=True, gc=False):
    """One stream, as an attempt that travels on it remembers it."""

    stream: int
    node: str
    """The node's name in logs and errors: ``host:port``."""
    local_address: str | None
    """Our end of the stream, where the driver told."""
    remote_address: str | None = None
    """The other end, as an address and not a name, where the driver told."""
    local_id: str | None = None
    """What HELLO has called the connection; None where there was no HELLO."""
