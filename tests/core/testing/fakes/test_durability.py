"""What the fake node takes for a durability requirement."""

from __future__ import annotations

import pytest

from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.testing.fakes.answers import Refused
from triclinium_core.testing.fakes.durability import SECONDS_DEFAULT, Requirement, read_requirement


@pytest.mark.parametrize(
    ("content", "level", "timeout"),
    [
        ("01", DurabilityLevel.MAJORITY, SECONDS_DEFAULT),
        ("02 0001", DurabilityLevel.MAJORITY_AND_PERSIST_TO_ACTIVE, 0.001),
        ("03 2328", DurabilityLevel.PERSIST_TO_MAJORITY, 9.0),
        ("01 fffe", DurabilityLevel.MAJORITY, 65.534),
    ],
)
def test_reads(content: str, level: DurabilityLevel, timeout: float) -> None:
    """A level, and milliseconds where the client says how long it may take."""
    assert Requirement(level, timeout) == read_requirement(bytes.fromhex(content))


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ("00", Status.DURABILITY_INVALID_LEVEL),
        ("04", Status.DURABILITY_INVALID_LEVEL),
        ("ff 2328", Status.DURABILITY_INVALID_LEVEL),
        ("01 0000", Status.INVALID_ARGUMENTS),
        ("01 ffff", Status.INVALID_ARGUMENTS),
        ("", Status.INVALID_ARGUMENTS),
        ("01 23", Status.INVALID_ARGUMENTS),
        ("01 232800", Status.INVALID_ARGUMENTS),
    ],
)
def test_refuses(content: str, status: Status) -> None:
    """Levels that there are not, the two timeouts that mean nothing, and other sizes than 1 and 3."""
    with pytest.raises(Refused) as caught:
        read_requirement(bytes.fromhex(content))

    assert status == caught.value.status
