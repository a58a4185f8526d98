"""Facts about the stream of an attempt."""

from __future__ import annotations

import msgspec


class Link(msgspec.Struct, frozen=True, gc=False):
    """Facts about one stream. Each attempt on the stream records them."""

    stream: int
    node: str
    """Name of the node in logs and errors: ``host:port``."""
    local_address: str | None
    """Local address of the stream, if the driver reported it."""
    remote_address: str | None = None
    """Remote address of the stream (not a host name), if the driver reported it."""
    local_id: str | None = None
    """Id of the connection that the client sent in HELLO; None without a HELLO."""
