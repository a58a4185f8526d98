"""What a client asks of a durable write, as a fake node reads it.

Source: kv_engine docs/BinaryProtocol.md, "Durability Requirement".
"""

from __future__ import annotations

import struct

import msgspec

from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.testing.fakes.answers import Refused

SECONDS_DEFAULT = 30.0
"""What a durable write may take where the client does not say."""

_LEVEL_AND_TIMEOUT = struct.Struct(">BH")


class Requirement(msgspec.Struct, frozen=True):
    """How durable a write has to be, and within how many seconds."""

    level: DurabilityLevel
    timeout: float


def read_requirement(content: bytes) -> Requirement:
    """Return what the frame info DURABILITY says.

    Raises:
        Refused: there is no such level, or the timeout is one of the two that mean nothing.
    """
    timeout = SECONDS_DEFAULT
    if len(content) == _LEVEL_AND_TIMEOUT.size:
        _, milliseconds = _LEVEL_AND_TIMEOUT.unpack(content)
        if milliseconds in (0, 0xFFFF):
            raise Refused(Status.INVALID_ARGUMENTS, f"a durability timeout of {milliseconds} ms is reserved")
        timeout = milliseconds / 1000
    elif len(content) != 1:
        raise Refused(Status.INVALID_ARGUMENTS, f"a durability requirement has 1 or 3 bytes, not {len(content)}")
    if content[0] not in _LEVELS:
        raise Refused(Status.DURABILITY_INVALID_LEVEL, f"there is no durability level {content[0]}")
    return Requirement(_LEVELS[content[0]], timeout)


_LEVELS = {level.value: level for level in DurabilityLevel if level is not DurabilityLevel.NONE}
