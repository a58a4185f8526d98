"""Framing extras: small numbered pieces of information between header and extras of a flexible frame.

Layout: the first byte of a piece has the identifier in the high nibble and the size in the low nibble. A nibble of 15
is an escape: the number is 15 plus the value of one more byte. The escape byte of the identifier precedes the escape
byte of the size. The content follows.

Source: kv_engine docs/BinaryProtocol.md, 'Request header with "flexible framing extras"';
    include/mcbp/protocol/framebuilder.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, unique
from functools import lru_cache

_ESCAPE = 15
_NUMBER_MAX = _ESCAPE + 0xFF
"""Largest identifier and largest size that an escape can express."""

_DURATION_EXPONENT = 1.74
_DURATION_CODE_MAX = 0xFFFF
_DURATION_SIZE = 2

REMEMBERED_MAX = 512
"""Maximum number of framing extras whose decoded duration is cached, because the durations of responses repeat. Without
the cache, a get takes about 8 % more instructions (callgrind, ``tests.bench --only core``)."""


@unique
class RequestFrameInfo(IntEnum):
    """Frame infos that a client may attach to a request."""

    BARRIER = 0
    DURABILITY = 1
    DCP_STREAM_ID = 2
    IMPERSONATE_USER = 4
    PRESERVE_TTL = 5
    IMPERSONATE_EXTRA_PRIVILEGE = 6
    TOKEN_AUTH_DATA_ID = 7


@unique
class ResponseFrameInfo(IntEnum):
    """Frame infos that a server may attach to a response."""

    SERVER_DURATION = 0
    READ_UNITS = 1
    WRITE_UNITS = 2
    THROTTLE_DURATION = 3


class MalformedFramingExtras(ValueError):
    """The last piece extends beyond the framing extras.

    Args:
        reason: one line, which names the missing part.
        offset: start of the piece, in bytes from the start of the framing extras.
    """

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.reason} (framing extras at byte {self.offset})"


def parse_framing_extras(data: bytes) -> Mapping[int, bytes]:
    """Return the content of every piece by identifier, including unknown identifiers.

    If several pieces have the same identifier, return the last one.

    Raises:
        MalformedFramingExtras: a piece is truncated.
    """
    pieces: dict[int, bytes] = {}
    end = len(data)
    position = 0
    while position < end:
        start = position
        identifier, size = divmod(data[position], 16)
        position += 1
        if position + (identifier == _ESCAPE) + (size == _ESCAPE) > end:
            raise MalformedFramingExtras("an escape byte is missing", start)
        if identifier == _ESCAPE:
            identifier += data[position]
            position += 1
        if size == _ESCAPE:
            size += data[position]
            position += 1
        if position + size > end:
            raise MalformedFramingExtras(
                f"piece {identifier} announces the size {size}; the remaining size is {end - position}", start
            )
        pieces[identifier] = data[position : position + size]
        position += size
    return pieces


def encode_framing_extras(pieces: Mapping[int, bytes]) -> bytes:
    """Return the framing extras with these pieces, in order, for ``encode_request`` and ``encode_response``.

    Raises:
        ValueError: an identifier or a size exceeds what a nibble and an escape byte can express.
    """
    encoded = bytearray()
    for identifier, content in pieces.items():
        id_nibble, id_escape = _split("identifier", identifier)
        size_nibble, size_escape = _split(f"len(pieces[{identifier}])", len(content))
        encoded.append(id_nibble << 4 | size_nibble)
        encoded += id_escape + size_escape + content
    return bytes(encoded)


def decode_server_duration_us(encoded: int) -> float:
    """Return the duration in microseconds from the 16-bit code that servers use for durations.

    Raises:
        ValueError: ``encoded`` has more than 16 bits.

    Source: kv_engine docs/BinaryProtocol.md, "ID:0 - Server Recv->Send duration".
    """
    if not 0 <= encoded <= _DURATION_CODE_MAX:
        raise ValueError(f"encoded={encoded!r} must be an integer from 0 to {_DURATION_CODE_MAX}")
    return float(encoded**_DURATION_EXPONENT / 2)


@lru_cache(REMEMBERED_MAX)
def server_duration(framing_extras: bytes) -> float | None:
    """Return the duration in seconds that the server reported for a request; None if it reported none.

    Return None for a malformed duration or malformed extras too, because they do not make the response invalid.
    """
    try:
        encoded = parse_framing_extras(framing_extras).get(ResponseFrameInfo.SERVER_DURATION, b"")
    except MalformedFramingExtras:
        return None
    if len(encoded) != _DURATION_SIZE:
        return None
    return decode_server_duration_us(int.from_bytes(encoded, "big")) / 1_000_000


def encode_server_duration_us(duration_us: float) -> int:
    """Return the 16-bit code for a duration in microseconds. The longest duration that it can express is two minutes.

    Raises:
        ValueError: ``duration_us`` is negative or not a number.

    Source: kv_engine docs/BinaryProtocol.md, "ID:0 - Server Recv->Send duration".
    """
    if not duration_us >= 0:
        raise ValueError(f"duration_us={duration_us!r} must be a number of at least 0")
    code: float = (duration_us * 2) ** (1 / _DURATION_EXPONENT)
    return round(min(code, _DURATION_CODE_MAX))


def _split(name: str, number: int) -> tuple[int, bytes]:
    """Return the nibble for ``number``, and its escape byte if it needs one."""
    if not 0 <= number <= _NUMBER_MAX:
        raise ValueError(f"{name}={number!r} must be an integer from 0 to {_NUMBER_MAX}")
    if number < _ESCAPE:
        return number, b""
    return _ESCAPE, bytes((number - _ESCAPE,))
