"""Common flags (SDK-RFC 0020)."""

from __future__ import annotations

from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.transcoding.flags import BINARY_FLAGS, JSON_FLAGS, STRING_FLAGS, CommonFormat, common_format


@rows(
    ("flags", "expected"),
    [
        (0x0000_0000, 0),
        (0x0000_FFFF, 0),
        (0x0100_0001, CommonFormat.PRIVATE),
        (0x0200_0000, CommonFormat.JSON),
        (0x02FF_FFFF, CommonFormat.JSON),
        (0x0300_0002, CommonFormat.BINARY),
        (0x0400_0004, CommonFormat.STRING),
        (0x2200_0000, CommonFormat.JSON),
        (0xE400_0000, CommonFormat.STRING),
        (0x0500_0000, 5),
        (0xFFFF_FFFF, 15),
    ],
)
def test_common_format(flags: int, expected: int) -> None:
    """The format is the low half of the top byte, and no other bit affects it."""
    assert expected == common_format(flags)


@given(st.integers(0, 7), st.integers(0, 15), st.integers(0, 0xFF_FFFF))
def test_layout(compression: int, kind: int, own: int) -> None:
    """The flags have three bits of compression, a reserved bit, four bits of format and 24 bits for each SDK."""
    assert kind == common_format(compression << 29 | kind << 24 | own)


def test_flags_match_the_official_python_sdk() -> None:
    """The flags equal the official Python SDK's flags, so its legacy transcoder can read the documents."""
    assert (0x02000000, 0x03000002, 0x04000004) == (JSON_FLAGS, BINARY_FLAGS, STRING_FLAGS)
    assert [1, 2, 3, 4] == [int(kind) for kind in CommonFormat]
