"""Durability levels, and the time that the server may take for each.

The server has to give up before the client does, or the client would never hear how the write ended: it gets nine
tenths of the time that the operation has left, anew at each attempt (decision C29).

Source: SDK-RFC 0053 "DurabilityLevel"; kv_engine ``docs/BinaryProtocol.md`` "Durability Requirement".
"""

from __future__ import annotations

import struct
from enum import Enum, unique

from triclinium_core import errors
from triclinium_core.shown import shown

DURABLE_TIMEOUT_MIN = 1.5
"""Seconds that a durable operation has at least: the timers of servers are too coarse for less, which would end most
writes as ambiguous (a floor that other clients of Couchbase have too)."""

TIMEOUT_MS_MAX = 0xFFFE
"""Longest time, in milliseconds, that the field can say: 0xffff, like 0, is refused."""

_PERCENT_FOR_SERVER = 90
_REQUIREMENT = struct.Struct(">BH")


@unique
class DurabilityLevel(Enum):
    """What has to have happened before a write is answered as a success, and is seen by readers."""

    NONE = 0
    """The node that has the document has it in memory."""
    MAJORITY = 1
    """Most of the document's copies are in the memory of their nodes."""
    MAJORITY_AND_PERSIST_TO_ACTIVE = 2
    """As ``MAJORITY``, and the node that answers has written it to disk."""
    PERSIST_TO_MAJORITY = 3
    """Most of the document's copies have been written to disk."""


def check_durability(value: object) -> DurabilityLevel:
    """Return a durability level.

    Raises:
        InvalidArgumentException: anything else, the number of a level too.
    """
    if not isinstance(value, DurabilityLevel):
        names = ", ".join(level.name for level in DurabilityLevel)
        raise errors.InvalidArgumentException(
            f"durability={shown(value)} must be one of DurabilityLevel: {names}", parameter="durability"
        )
    return value


def encode_requirement(level: DurabilityLevel, time_left: float) -> bytes:
    """Return the content of the frame info DURABILITY.

    Layout: level, one byte; milliseconds that the server may take, two bytes.

    Args:
        level: not NONE, which is said by sending nothing.
        time_left: seconds until the operation's deadline; ``math.inf`` for no limit.
    """
    # Cut first: infinity is no integer. Counted in whole milliseconds, since 0.9 is no binary fraction.
    milliseconds = round(min(max(time_left, 0.0), TIMEOUT_MS_MAX) * 1000)
    timeout = min(max(milliseconds * _PERCENT_FOR_SERVER // 100, 1), TIMEOUT_MS_MAX)
    return _REQUIREMENT.pack(level.value, timeout)
