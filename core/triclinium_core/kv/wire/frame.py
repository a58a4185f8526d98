"""One frame as a value, and how the four kinds of frame are written.

Source: kv_engine docs/BinaryProtocol.md, "Packet Structure".
"""

from __future__ import annotations

import struct

import msgspec

from triclinium_core.kv.wire.constants import Magic
from triclinium_core.kv.wire.header import BODY_SIZE_MAX, FLEXIBLE_HEADER, PLAIN_HEADER


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One whole frame as the peer sent it; nothing is interpreted, a deflated value is still deflated.

    ``status`` is the vbucket where the frame is a request, ``framing_extras`` are empty unless the magic is a flexible
    one, ``cas`` is all ones for a locked document.
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


def encode_request(
    opcode: int,
    *,
    opaque: int,
    vbucket: int = 0,
    cas: int = 0,
    datatype: int = 0,
    framing_extras: bytes = b"",
    extras: bytes = b"",
    key: bytes = b"",
    value: bytes = b"",
) -> bytes:
    """Return a request from client to server: magic 0x08 where there are framing extras, else 0x80.

    Raises:
        ValueError: a number or a length does not fit its field, or the frame exceeds ``FRAME_SIZE_MAX``.
        TypeError: a part of the body is not bytes.
    """
    magic = Magic.FLEXIBLE_CLIENT_REQUEST if framing_extras else Magic.CLIENT_REQUEST
    return _encode(
        magic,
        opcode,
        status=vbucket,
        opaque=opaque,
        cas=cas,
        datatype=datatype,
        framing_extras=framing_extras,
        extras=extras,
        key=key,
        value=value,
    )


def encode_response(
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
    """Return a response from server to client: magic 0x18 where there are framing extras, else 0x81.

    Raises:
        ValueError: a number or a length does not fit its field, or the frame exceeds ``FRAME_SIZE_MAX``.
        TypeError: a part of the body is not bytes.
    """
    magic = Magic.FLEXIBLE_CLIENT_RESPONSE if framing_extras else Magic.CLIENT_RESPONSE
    return _encode(
        magic,
        opcode,
        status=status,
        opaque=opaque,
        cas=cas,
        datatype=datatype,
        framing_extras=framing_extras,
        extras=extras,
        key=key,
        value=value,
    )


def encode_server_request(
    opcode: int,
    *,
    opaque: int,
    vbucket: int = 0,
    cas: int = 0,
    datatype: int = 0,
    extras: bytes = b"",
    key: bytes = b"",
    value: bytes = b"",
) -> bytes:
    """Return a request from server to client, magic 0x82; it has no flexible layout.

    Raises:
        ValueError: a number or a length does not fit its field, or the frame exceeds ``FRAME_SIZE_MAX``.
        TypeError: a part of the body is not bytes.
    """
    return _encode(
        Magic.SERVER_REQUEST,
        opcode,
        status=vbucket,
        opaque=opaque,
        cas=cas,
        datatype=datatype,
        framing_extras=b"",
        extras=extras,
        key=key,
        value=value,
    )


def encode_server_response(
    opcode: int,
    *,
    opaque: int,
    status: int = 0,
    cas: int = 0,
    datatype: int = 0,
    extras: bytes = b"",
    key: bytes = b"",
    value: bytes = b"",
) -> bytes:
    """Return a client's response to a server request, magic 0x83; it has no flexible layout.

    Raises:
        ValueError: a number or a length does not fit its field, or the frame exceeds ``FRAME_SIZE_MAX``.
        TypeError: a part of the body is not bytes.
    """
    return _encode(
        Magic.SERVER_RESPONSE,
        opcode,
        status=status,
        opaque=opaque,
        cas=cas,
        datatype=datatype,
        framing_extras=b"",
        extras=extras,
        key=key,
        value=value,
    )


_REQUEST_MAGICS = frozenset((Magic.CLIENT_REQUEST, Magic.FLEXIBLE_CLIENT_REQUEST, Magic.SERVER_REQUEST))


def _encode(
    magic: Magic,
    opcode: int,
    *,
    status: int,
    opaque: int,
    cas: int,
    datatype: int,
    framing_extras: bytes,
    extras: bytes,
    key: bytes,
    value: bytes,
) -> bytes:
    body = framing_extras + extras + key
    key_size, extras_size, body_size = len(key), len(extras), len(body) + len(value)
    if body_size <= BODY_SIZE_MAX:
        try:
            if framing_extras:
                header = FLEXIBLE_HEADER.pack(
                    magic, opcode, len(framing_extras), key_size, extras_size, datatype, status, body_size, opaque, cas
                )
            else:
                header = PLAIN_HEADER.pack(
                    magic, opcode, key_size, extras_size, datatype, status, body_size, opaque, cas
                )
        except struct.error:
            pass
        else:
            return b"".join((header, body, value))
    status_name = "vbucket" if magic in _REQUEST_MAGICS else "status"
    raise _misfit(
        ("opcode", opcode, 0xFF),
        (status_name, status, 0xFFFF),
        ("opaque", opaque, 0xFFFF_FFFF),
        ("cas", cas, 0xFFFF_FFFF_FFFF_FFFF),
        ("datatype", datatype, 0xFF),
        ("len(framing_extras)", len(framing_extras), 0xFF),
        ("len(extras)", extras_size, 0xFF),
        ("len(key)", key_size, 0xFF if framing_extras else 0xFFFF),
        ("len(framing_extras) + len(extras) + len(key) + len(value)", body_size, BODY_SIZE_MAX),
    )


def _misfit(*rows: tuple[str, int, int]) -> ValueError:
    """Return the error for the first row ``(name, value, largest)`` whose value its field cannot hold."""
    name, value, largest = next(row for row in rows if not (isinstance(row[1], int) and 0 <= row[1] <= row[2]))
    return ValueError(f"{name}={value!r} must be an integer from 0 to {largest}")
