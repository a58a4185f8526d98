"""Durability levels, and the time that the server may take for each.

The server must time out before the client does, or the client never learns the result of the write. At each attempt,
the server gets nine tenths of the time that the operation has left (decision C29).

Source: SDK-RFC 0053 "DurabilityLevel"; kv_engine ``docs/BinaryProtocol.md`` "Durability Requirement".
"""

from __future__ import annotations

import struct
from enum import Enum, unique

from triclinium_core import errors
from triclinium_core.shown import shown

DURABLE_TIMEOUT_MIN = 1.5
"""Minimum timeout of a durable operation in seconds. Server timers are too coarse for less: most writes would end as
ambiguous. Other Couchbase clients have the same floor."""

TIMEOUT_MS_MAX = 0xFFFE
"""Longest time that the field can hold, in milliseconds: servers refuse 0xffff, and 0."""

_PERCENT_FOR_SERVER = 90
_REQUIREMENT = struct.Struct(">BH")


@unique
class DurabilityLevel(Enum):
    """Condition under which a write succeeds and becomes visible to readers."""

    NONE = 0
    """The active node has the document in memory."""
    MAJORITY = 1
    """The majority of the document's copies are in the memory of their nodes."""
    MAJORITY_AND_PERSIST_TO_ACTIVE = 2
    """As ``MAJORITY``, and the active node has written the document to disk."""
    PERSIST_TO_MAJORITY = 3
    """The majority of the document's copies are on disk."""


def check_durability(value: object) -> DurabilityLevel:
    """Return a durability level.

    Raises:
        InvalidArgumentException: ``value`` is anything else, including the number of a level.
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
        level: any level except NONE, which sends no frame info.
        time_left: seconds until the operation's deadline; ``math.inf`` for no limit.
    """
    # Clamp first, because infinity has no integer. Use whole milliseconds, because 0.9 is not a binary fraction.
    milliseconds = round(min(max(time_left, 0.0), TIMEOUT_MS_MAX) * 1000)
    timeout = min(max(milliseconds * _PERCENT_FOR_SERVER // 100, 1), TIMEOUT_MS_MAX)
    return _REQUIREMENT.pack(level.value, timeout)
