"""Consistency levels and write types, with the names that the protocol gives them.

Source: CQL binary protocol v5 §3 "consistency" and §8 "Write_timeout".
"""

from __future__ import annotations

from enum import IntEnum, StrEnum, unique


@unique
class ConsistencyLevel(IntEnum):
    """Consistency level. The value is the code on the wire."""

    ANY = 0
    ONE = 1
    TWO = 2
    THREE = 3
    QUORUM = 4
    ALL = 5
    LOCAL_QUORUM = 6
    EACH_QUORUM = 7
    SERIAL = 8
    LOCAL_SERIAL = 9
    LOCAL_ONE = 10

    @property
    def is_serial(self) -> bool:
        """Whether this is a level for the condition of a lightweight transaction."""
        return self in {ConsistencyLevel.SERIAL, ConsistencyLevel.LOCAL_SERIAL}

    @property
    def is_local(self) -> bool:
        """Whether only replicas in the coordinator's datacenter count."""
        return self in {ConsistencyLevel.LOCAL_ONE, ConsistencyLevel.LOCAL_QUORUM, ConsistencyLevel.LOCAL_SERIAL}


@unique
class WriteType(StrEnum):
    """Type of a write that timed out or failed. The value is the name on the wire."""

    SIMPLE = "SIMPLE"
    BATCH = "BATCH"
    UNLOGGED_BATCH = "UNLOGGED_BATCH"
    COUNTER = "COUNTER"
    BATCH_LOG = "BATCH_LOG"
    CAS = "CAS"
    VIEW = "VIEW"
    CDC = "CDC"
