"""Key to vbucket: the hash that all Couchbase clients share."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triclinium_core.kv.topology.vbuckets import vbucket_of


def crc32(data: bytes) -> int:
    """Return the IEEE checksum, computed bit by bit."""
    register = 0xFFFF_FFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0xEDB8_8320 if register & 1 else 0)
    return register ^ 0xFFFF_FFFF


@pytest.mark.parametrize(
    ("key", "count", "expected"),
    [
        # The check value of the checksum's own definition: CBF43926 for these nine digits.
        (b"123456789", 1024, 0xCBF4 & 0x7FFF & 1023),
        (b"123456789", 128, 0xCBF4 & 0x7FFF & 127),
        (b"123456789", 0x10000, 0x4BF4),
        (b"", 1024, 0),
        (b"a", 1, 0),
    ],
)
def test_known_answers(key: bytes, count: int, expected: int) -> None:
    """Fifteen bits from the upper half of the checksum, then the remainder."""
    assert expected == vbucket_of(key, count)


@given(st.binary(max_size=60), st.sampled_from([1, 2, 3, 64, 128, 1000, 1024, 0x8000, 0x10000]))
def test_against_the_definition(key: bytes, count: int) -> None:
    """Any key and any count of vbuckets, also one that is no power of two."""
    assert (crc32(key) >> 16 & 0x7FFF) % count == vbucket_of(key, count)
