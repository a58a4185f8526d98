"""Scanner of 24-byte headers in Python: it finds the frames in a buffer, and the reason why a header is invalid.

``triclinium_c`` has a scanner in C with the same interface; ``triclinium_core._speedups`` chooses between the two.

Source: kv_engine docs/BinaryProtocol.md, "Packet Structure"; include/mcbp/protocol/magic.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, unique
from struct import Struct
from types import MappingProxyType

from triclinium_core.kv.wire.constants import FRAME_SIZE_MAX, HEADER_SIZE, Magic

FIELDS_PER_FRAME = 10
"""Number of integers that ``scan_headers`` returns for each frame."""

BODY_SIZE_MAX = FRAME_SIZE_MAX - HEADER_SIZE

FLEXIBLE_MAGICS = frozenset((int(Magic.FLEXIBLE_CLIENT_REQUEST), int(Magic.FLEXIBLE_CLIENT_RESPONSE)))
"""Magics whose headers split the key length: one byte for the length of the framing extras, one for that of the key."""

PLAIN_MAGICS = frozenset(map(int, Magic)) - FLEXIBLE_MAGICS

PLAIN_HEADER = Struct(">BBHBBHIIQ")
"""Header layout: magic, opcode, key length, extras length, datatype, vbucket or status, body length, opaque, CAS."""

STORE_HEADER = Struct(PLAIN_HEADER.format + "II")
"""``PLAIN_HEADER`` followed by the extras of a complete document: flags, expiry."""

FLEXIBLE_HEADER = Struct(">BBBBBBHIIQ")
"""``PLAIN_HEADER`` with the key length split into framing extras length and key length."""


@unique
class Malformation(IntEnum):
    """Reason why a header is invalid. ``triclinium_c`` returns the numbers."""

    MAGIC = -1
    SIZE = -2
    LENGTHS = -3


_REASONS: Mapping[Malformation, str] = MappingProxyType(
    {
        Malformation.MAGIC: (
            "{magic:#04x} is not a magic byte; the other side does not speak the memcached binary protocol"
        ),
        Malformation.SIZE: "a frame of {frame_size} bytes is announced; the maximum is {frame_size_max}",
        Malformation.LENGTHS: (
            "framing extras of {framing_size}, extras of {extras_size} and a key of {key_size} bytes "
            "do not fit into a body of {body_size}"
        ),
    }
)


class MalformedFrame(ValueError):
    """A frame is invalid. The start of the next frame is unknown, so close the connection.

    Args:
        reason: one line, which names the invalid part.
        offset: start of the frame, in bytes from the start of the scanned buffer; in ``FrameBuffer``, of the stream.
    """

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.reason} (frame at byte {self.offset})"


def scan_headers(buffer: bytes | bytearray | memoryview, start: int, end: int) -> list[int]:
    """Return ten unsigned integers for every complete frame in ``buffer[start:end]``, in the order of the frames.

    Layout, in a flat list:
    ``[magic, opcode, status, datatype, opaque, cas, extras_start, key_start, value_start, frame_end] * n``.
    The status of a request is its vbucket. Offsets count from the start of the buffer. The framing extras are
    ``[frame_start + 24, extras_start)``. Each frame starts at the end of the previous frame. The result does not
    include a trailing partial frame, but the magic of that frame is checked, and its lengths once the header is
    complete.

    Args:
        buffer: received bytes.
        start: offset of the first frame in bytes.
        end: offset in bytes after the last received byte, ``0 <= start <= end <= len(buffer)``.

    Raises:
        MalformedFrame: the first frame is invalid. If a later frame is invalid, the result ends before that frame.
        ValueError: ``start`` or ``end`` is outside the buffer, or ``start`` is greater than ``end``.

    Source: kv_engine docs/BinaryProtocol.md, "Packet Structure".
    """
    if not 0 <= start <= end <= len(buffer):
        raise ValueError(f"start={start!r}, end={end!r} must satisfy 0 <= start <= end <= {len(buffer)}")
    fields: list[int] = []
    malformation: Malformation | None = None
    frame_start = start
    while True:
        if end - frame_start < HEADER_SIZE:
            if frame_start < end and not _is_magic(buffer[frame_start]):
                malformation = Malformation.MAGIC
            break
        magic, opcode, key_size, extras_size, datatype, status, body_size, opaque, cas = PLAIN_HEADER.unpack_from(
            buffer, frame_start
        )
        extras_start = frame_start + HEADER_SIZE
        frame_end = extras_start + body_size
        if magic in FLEXIBLE_MAGICS:
            extras_start += key_size >> 8
            key_size &= 0xFF
        elif magic not in PLAIN_MAGICS:
            malformation = Malformation.MAGIC
            break
        key_start = extras_start + extras_size
        value_start = key_start + key_size
        if body_size > BODY_SIZE_MAX:
            malformation = Malformation.SIZE
            break
        if value_start > frame_end:
            malformation = Malformation.LENGTHS
            break
        if frame_end > end:
            break
        fields += (magic, opcode, status, datatype, opaque, cas, extras_start, key_start, value_start, frame_end)
        frame_start = frame_end
    if malformation is not None and not fields:
        raise malformed_frame(malformation, buffer, frame_start)
    return fields


def malformed_frame(code: int, buffer: bytes | bytearray | memoryview, offset: int) -> MalformedFrame:
    """Return the error for the invalid frame at ``offset``, with the invalid values.

    Args:
        code: a ``Malformation``; for all but ``MAGIC``, the buffer must contain the whole header.
        buffer: received bytes.
        offset: start of the frame, in bytes.

    Raises:
        ValueError: ``code`` is not a ``Malformation``.
    """
    malformation = Malformation(code)
    values = {"magic": buffer[offset], "frame_size_max": FRAME_SIZE_MAX}
    if malformation is not Malformation.MAGIC:
        magic, _, key_size, extras_size, _, _, body_size, _, _ = PLAIN_HEADER.unpack_from(buffer, offset)
        framing_size, key_size = divmod(key_size, 256) if magic in FLEXIBLE_MAGICS else (0, key_size)
        values |= {
            "framing_size": framing_size,
            "extras_size": extras_size,
            "key_size": key_size,
            "body_size": body_size,
            "frame_size": HEADER_SIZE + body_size,
        }
    return MalformedFrame(_REASONS[malformation].format_map(values), offset)


def _is_magic(byte: int) -> bool:
    return byte in PLAIN_MAGICS or byte in FLEXIBLE_MAGICS
