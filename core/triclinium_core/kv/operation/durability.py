"""Durability levels, and the time that the server may take to reach a level.

The server must time out before the client does. Otherwise the client might time out before it receives the result of
the write. In each attempt, the client gives the server nine tenths of the time until the operation's deadline, at most
65.534 s (decision C29).

Source: SDK-RFC 0053 "DurabilityLevel"; kv_engine ``docs/BinaryProtocol.md`` "ID:1 - Durability Requirement".
"""

from __future__ import annotations

import struct
from enum import Enum, unique

from triclinium_core import errors
from triclinium_core.shown import shown

DURABLE_TIMEOUT_MIN = 1.5
"""Minimum timeout of a durable operation in seconds. The timers of servers are too coarse for a shorter timeout: most
writes would fail as ambiguous. Other Couchbase clients have the same minimum."""

TIMEOUT_MS_MAX = 0xFFFE
"""Maximum of the timeout field in milliseconds, because servers refuse 0xffff. They also refuse 0."""

_PERCENT_FOR_SERVER = 90
_REQUIREMENT = struct.Struct(">BH")


@unique
class DurabilityLevel(Enum):
    """Condition under which a write succeeds and becomes visible to readers."""

    NONE = 0
    """The active node has the document in memory."""
    MAJORITY = 1
    """A majority of the nodes with a copy of the document have it in memory."""
    MAJORITY_AND_PERSIST_TO_ACTIVE = 2
    """As ``MAJORITY``; in addition, the active node has the document on disk."""
    PERSIST_TO_MAJORITY = 3
    """A majority of the nodes with a copy of the document have it on disk."""


def check_durability(value: object) -> DurabilityLevel:
    """Return ``value`` if it is a durability level.

    Raises:
        InvalidArgumentException: ``value`` is not a ``DurabilityLevel``. The number of a level is refused too.
    """
    if not isinstance(value, DurabilityLevel):
        names = ", ".join(level.name for level in DurabilityLevel)
        raise errors.InvalidArgumentException(
            f"durability={shown(value)} must be a DurabilityLevel: {names}", parameter="durability"
        )
    return value


def encode_requirement(level: DurabilityLevel, time_left: float) -> bytes:
    """Return the content of the frame info DURABILITY.

    Layout: level, one byte; milliseconds that the server may take, two bytes.

    Args:
        level: any level except NONE, which sends no frame info.
        time_left: seconds until the operation's deadline; ``math.inf`` for no limit.
    """
    # Clamp first, because infinity cannot become an integer. Calculate with whole milliseconds and percent, because
    # a float cannot represent 0.9 exactly.
    milliseconds = round(min(max(time_left, 0.0), TIMEOUT_MS_MAX) * 1000)
    timeout = min(max(milliseconds * _PERCENT_FOR_SERVER // 100, 1), TIMEOUT_MS_MAX)
    return _REQUIREMENT.pack(level.value, timeout)
