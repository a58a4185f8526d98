"""Common flags (SDK-RFC 0020)."""

from __future__ import annotations

from hypothesis import given, strategies as st

from triclinium_core.transcoding.flags import BINARY_FLAGS, JSON_FLAGS, STRING_FLAGS, CommonFormat, common_format


@given(st.integers(0, 15), st.integers(0, 15), st.integers(0, 0xFF_FFFF))
def test_layout(compression: int, kind: int, own: int) -> None:
    """The format is the low half of the top byte, whatever the bits of compression and of an SDK are."""
    assert kind == common_format(compression << 28 | kind << 24 | own)


def test_flags_match_the_official_python_sdk() -> None:
    """The flags equal the official Python SDK's flags, so its legacy transcoder can read the documents."""
    assert (0x02000000, 0x03000002, 0x04000004) == (JSON_FLAGS, BINARY_FLAGS, STRING_FLAGS)
    assert [1, 2, 3, 4] == [int(kind) for kind in CommonFormat]
