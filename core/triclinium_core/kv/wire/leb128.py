"""Unsigned LEB128, the encoding of the collection id before a key.

Source: kv_engine docs/Collections.md, "Valid LEB128 encodings", "Non-canonical encodings".
"""

from __future__ import annotations

VALUE_MAX = 0xFFFF_FFFF
"""Largest number: collection ids have 32 bits."""

SIZE_MAX = 5
"""Maximum size in bytes: with seven bits per byte, 32 bits need at most five bytes."""


class MalformedLeb128(ValueError):
    """The bytes do not begin with the shortest form of a 32-bit number."""


def encode_unsigned(value: int) -> bytes:
    """Return the shortest form of ``value``: seven bits per byte, lowest first, the top bit set on all but the last.

    Raises:
        ValueError: ``value`` is not an unsigned 32-bit number.
    """
    if not 0 <= value <= VALUE_MAX:
        raise ValueError(f"value={value!r} must be an integer from 0 to {VALUE_MAX}")
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_unsigned(data: bytes) -> tuple[int, int]:
    """Return the number at the start of ``data`` and its encoded size in bytes. Ignore the bytes after the number.

    Raises:
        MalformedLeb128: the number is truncated, is not in its shortest form or has more than 32 bits.
    """
    value = 0
    for position, byte in enumerate(data[:SIZE_MAX]):
        value |= (byte & 0x7F) << 7 * position
        if byte > 0x7F:
            continue
        if byte == 0 and position > 0:
            raise MalformedLeb128(f"{data[: position + 1].hex()} is not the shortest form of {value}")
        if value > VALUE_MAX:
            raise MalformedLeb128(f"{value} has more than 32 bits")
        return value, position + 1
    if len(data) < SIZE_MAX:
        raise MalformedLeb128(f"the number is cut short at offset {len(data)}")
    raise MalformedLeb128(f"the number has more than {SIZE_MAX} bytes, the maximum for 32 bits")
