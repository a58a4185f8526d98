"""What a fake node orders its driver to do, in the order given."""

from __future__ import annotations

import msgspec


class SendReply(msgspec.Struct, frozen=True, gc=False):
    """Write to a connection, after all that was ordered for it before."""

    connection: int
    data: bytes


class HangUp(msgspec.Struct, frozen=True, gc=False):
    """Send what was ordered before and close; the node has forgotten the connection already."""

    connection: int


NodeAction = SendReply | HangUp
