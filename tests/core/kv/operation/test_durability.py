"""Durability levels, and the timeout that the client sends with them."""

from __future__ import annotations

import math

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation import durability


def test_levels_are_those_of_the_rfc() -> None:
    """Each level has the number that RFC 0053 gives it."""
    numbers = {level.name: level.value for level in durability.DurabilityLevel}

    assert {
        "NONE": 0,
        "MAJORITY": 1,
        "MAJORITY_AND_PERSIST_TO_ACTIVE": 2,
        "PERSIST_TO_MAJORITY": 3,
    } == numbers


@pytest.mark.parametrize("wrong", [0, 1, "MAJORITY", None, True, durability.DurabilityLevel, 10**5000], ids=type)
def test_invalid_levels(wrong: object) -> None:
    """An invalid level raises an error that lists the valid levels."""
    with pytest.raises(errors.InvalidArgumentException, match="must be a DurabilityLevel: NONE, MAJORITY") as caught:
        durability.check_durability(wrong)

    assert "durability" == caught.value.parameter


@rows(
    ("time_left", "milliseconds"),
    [
        (10.0, 9000),
        (2.5, 2250),
        (1.5, 1350),
        (1.0, 900),
        (0.01, 9),
        (0.0012, 1),
        (0.001, 1),
        (0.0, 1),
        (-3.0, 1),
        (72.8, 65520),
        (72.815, 65533),
        (72.816, durability.TIMEOUT_MS_MAX),
        (72.817, durability.TIMEOUT_MS_MAX),
        (75.0, durability.TIMEOUT_MS_MAX),
        (1e9, durability.TIMEOUT_MS_MAX),
        (math.inf, durability.TIMEOUT_MS_MAX),
    ],
)
def test_the_server_gets_nine_tenths(time_left: float, milliseconds: int) -> None:
    """After its level, a requirement has nine tenths of the time, but 1 to 65534 ms: a server refuses 0 and 65535."""
    for level in durability.DurabilityLevel:
        if level is not durability.DurabilityLevel.NONE:
            assert bytes([level.value, *milliseconds.to_bytes(2, "big")]) == durability.encode_requirement(
                level, time_left
            )
