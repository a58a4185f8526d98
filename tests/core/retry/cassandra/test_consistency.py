"""Consistency levels and write types of the protocol."""

from __future__ import annotations

from tests.core.retry.cassandra.page import LEVELS, SERIAL, WRITE_TYPES
from triclinium_core.retry.cassandra import ConsistencyLevel, WriteType


def test_levels_have_their_codes() -> None:
    """The codes of the levels are 0 to 10 in the order of the protocol, as on the wire."""
    assert {name: code for code, name in enumerate(LEVELS)} == {level.name: level.value for level in ConsistencyLevel}


def test_kinds_of_levels() -> None:
    """Two levels are serial, and three are local to one datacenter."""
    assert SERIAL == {level.name for level in ConsistencyLevel if level.is_serial}
    assert {"LOCAL_ONE", "LOCAL_QUORUM", "LOCAL_SERIAL"} == {level.name for level in ConsistencyLevel if level.is_local}


def test_write_types_have_their_names() -> None:
    """Write types have the names that the protocol sends."""
    assert list(WRITE_TYPES) == [write_type.value for write_type in WriteType]
    assert list(WRITE_TYPES) == [write_type.name for write_type in WriteType]
