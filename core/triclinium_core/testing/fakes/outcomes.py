"""What comes of one command of a fake node, and how a fault that strikes late changes it."""

from __future__ import annotations

import struct
from typing import NamedTuple, assert_never

from triclinium_core.testing.fakes.faults import (
    Delay,
    DropResponse,
    FaultAfterApplying,
    Garble,
    HangUpAfterApplying,
    HangUpMidReply,
    WrongLength,
)

_BODY_LENGTH_OFFSET = 8
"""Where the length of the body stands in a header."""


class Outcome(NamedTuple):
    """Bytes to send now or later, and whether the connection ends."""

    data: bytes = b""
    status: int | None = None
    """The status that a client can read in ``data``."""
    delay: float = 0.0
    hangs_up: bool = False


def strike_after(reply: bytes, status: int, fault: FaultAfterApplying | None) -> Outcome:
    """Return what comes of a command that was carried out and whose reply, if there is one, says ``status``."""
    match fault:
        case None:
            return Outcome(reply, status)
        case Delay(seconds):
            return Outcome(reply, status, seconds)
        case DropResponse():
            return Outcome()
        case HangUpAfterApplying():
            return Outcome(hangs_up=True)
        case HangUpMidReply(bytes_sent):
            return Outcome(reply[: min(bytes_sent, len(reply) - 1)], hangs_up=True)
        case Garble():
            return Outcome(bytes(byte ^ 0xFF for byte in reply))
        case WrongLength(announced):
            header = bytearray(reply)
            struct.pack_into(">I", header, _BODY_LENGTH_OFFSET, announced)
            return Outcome(bytes(header))
        case _:
            assert_never(fault)
