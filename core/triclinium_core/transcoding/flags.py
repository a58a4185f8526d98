"""The common flags: what a document is, in its top byte.

The low 24 bits are each SDK's own. We write those of the official Python SDK, so that its legacy readers agree, and
never look at them.

Source: SDK-RFC 0020 "Common Flags".
"""

from __future__ import annotations

from enum import IntEnum, unique

JSON_FLAGS = 0x0200_0000
BINARY_FLAGS = 0x0300_0002
STRING_FLAGS = 0x0400_0004


@unique
class CommonFormat(IntEnum):
    """The format bits of the top byte."""

    PRIVATE = 1
    JSON = 2
    BINARY = 3
    STRING = 4


def common_format(flags: int) -> int:
    """Return the format bits of ``flags``; 0 where a writer set none. Three compression bits stand above them."""
    return (flags >> 24) & 0x0F
