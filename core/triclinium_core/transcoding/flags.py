"""Common flags: the format of a document, in the top byte of its flags.

The low 24 bits are specific to each SDK. This library writes the same low bits as the official Python SDK, for legacy
readers that rely on these bits. It never reads the low bits itself.

Source: SDK-RFC 0020 "General Design".
"""

from __future__ import annotations

from enum import IntEnum, unique

JSON_FLAGS = 0x0200_0000
BINARY_FLAGS = 0x0300_0002
STRING_FLAGS = 0x0400_0004


@unique
class CommonFormat(IntEnum):
    """Values of the format bits in the top byte."""

    PRIVATE = 1
    JSON = 2
    BINARY = 3
    STRING = 4


def common_format(flags: int) -> int:
    """Return the format bits of ``flags``, or 0 if the writer set none. Ignore the four bits above them."""
    return (flags >> 24) & 0x0F
