"""The stream on which an attempt travels."""

from __future__ import annotations

import msgspec


class Link(msgspec.Struct, frozen=True, gc=False):
    """One stream, as its attempts remember it."""

    stream: int
    node: str
    """Name of the node in logs and errors: ``host:port``."""
    local_address: str | None
    """Our end of the stream, if the driver reported it."""
    remote_address: str | None = None
    """The other end, as an address and not a name, if the driver reported it."""
    local_id: str | None = None
    """Id of the connection that HELLO sent; None without a HELLO."""
