"""Collection ids as LEB128, the prefix of keys."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.kv.wire.leb128 import VALUE_MAX, MalformedLeb128, decode_unsigned, encode_unsigned

VECTORS = [
    (0x00, "00"),
    (0x01, "01"),
    (0x7F, "7f"),
    (0x80, "80 01"),
    (0x555, "d5 0a"),
    (0x3FFF, "ff 7f"),
    (0x4000, "80 80 01"),
    (0x1F_FFFF, "ff ff 7f"),
    (0x0FFF_FFFF, "ff ff ff 7f"),
    (0x1000_0000, "80 80 80 80 01"),
    (0xCAFE_F00D, "8d e0 fb d7 0c"),
    (0xFFFF_FFFF, "ff ff ff ff 0f"),
]


@rows(("value", "encoded"), VECTORS)
def test_each_number_has_one_form(value: int, encoded: str) -> None:
    """A number is encoded in its shortest form, which is decoded whatever follows it; a form cut short is refused."""
    wire = bytes.fromhex(encoded)

    assert wire == encode_unsigned(value)
    for trailing in (b"", b"\x00", b"\xff", b"key", b"\xff" * 9):
        assert (value, len(wire)) == decode_unsigned(wire + trailing)
    for end in range(len(wire)):
        with pytest.raises(MalformedLeb128, match=f"cut short at offset {end}"):
            decode_unsigned(wire[:end])


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        ("80 00", "8000 is not the shortest form of 0"),
        ("ff 80 00", "ff8000 is not the shortest form of 127"),
        ("80 80 80 80 00", "8080808000 is not the shortest form of 0"),
        ("ff ff ff ff 10", "4563402751 has more than 32 bits"),
        ("ff ff ff ff 7f", "34359738367 has more than 32 bits"),
        ("80 80 80 80 80", "more than 5 bytes"),
        ("ff ff ff ff ff 01", "more than 5 bytes"),
    ],
)
def test_refuses_other_forms(encoded: str, message: str) -> None:
    """A number in a longer form, or of more than 32 bits, raises an error with the reason."""
    with pytest.raises(MalformedLeb128, match=message):
        decode_unsigned(bytes.fromhex(encoded))


@pytest.mark.parametrize("value", [-1, VALUE_MAX + 1])
def test_refuses_to_encode_other_numbers(value: int) -> None:
    """A negative number, or a number of more than 32 bits, is rejected."""
    with pytest.raises(ValueError, match=f"value={value} must be an integer from 0 to 4294967295"):
        encode_unsigned(value)


@given(value=st.integers(0, VALUE_MAX), trailing=st.binary(max_size=3))
def test_round_trip(value: int, trailing: bytes) -> None:
    """The decoder returns the number that was encoded, with the size of the encoding."""
    encoded = encode_unsigned(value)

    assert (value, len(encoded)) == decode_unsigned(encoded + trailing)


@given(data=st.binary(max_size=7))
def test_arbitrary_bytes(data: bytes) -> None:
    """Arbitrary bytes that are decoded start with the shortest form of the number; all others raise MalformedLeb128."""
    try:
        value, size = decode_unsigned(data)
    except MalformedLeb128:
        return

    assert encode_unsigned(value) == data[:size]
