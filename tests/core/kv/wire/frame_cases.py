"""Frames on the wire with their fields, written byte by byte and without the encoder, for the tests of both decoders."""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core.kv.wire.frame import Frame


@dataclass(frozen=True, slots=True)
class FrameCase:
    """Complete frame: its bytes, the ten fields that a decoder finds at offset 0, and the parsed frame."""

    name: str
    wire: bytes
    fields: list[int]
    frame: Frame


@dataclass(frozen=True, slots=True)
class MalformedCase:
    """Start of an invalid frame, which becomes invalid with the last byte of ``wire``."""

    name: str
    wire: bytes
    reason: str


# fmt: off
FRAME_CASES = [
    FrameCase(
        "client request: SET with extras, key, value",
        bytes.fromhex("80 01 0003 08 01 0102 00000010 deadbeef 0000000000000000" "02000000 00000e10") + b"ada" + b"{}xyz",
        [0x80, 0x01, 0x0102, 0x01, 0xDEADBEEF, 0, 24, 32, 35, 40],
        Frame(0x80, 0x01, 0x0102, 0x01, 0xDEADBEEF, 0, b"", bytes.fromhex("0200000000000e10"), b"ada", b"{}xyz"),
    ),
    FrameCase(
        "client response: GET of a locked document, CAS all ones",
        bytes.fromhex("81 00 0000 04 01 0000 00000006 00000007 ffffffffffffffff" "02000000") + b"{}",
        [0x81, 0x00, 0, 0x01, 7, 0xFFFF_FFFF_FFFF_FFFF, 24, 28, 28, 30],
        Frame(0x81, 0x00, 0, 0x01, 7, 0xFFFF_FFFF_FFFF_FFFF, b"", bytes.fromhex("02000000"), b"", b"{}"),
    ),
    FrameCase(
        "client response: header alone, every number at its largest",
        bytes.fromhex("81 ff 0000 00 ff ffff 00000000 ffffffff ffffffffffffffff"),
        [0x81, 0xFF, 0xFFFF, 0xFF, 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF, 24, 24, 24, 24],
        Frame(0x81, 0xFF, 0xFFFF, 0xFF, 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF, b"", b"", b"", b""),
    ),
    FrameCase(
        "client response: a key of 256 bytes needs both bytes of its length",
        bytes.fromhex("81 20 0100 00 00 0000 00000101 00000001 0000000000000000") + b"k" * 256 + b"v",
        [0x81, 0x20, 0, 0, 1, 0, 24, 24, 280, 281],
        Frame(0x81, 0x20, 0, 0, 1, 0, b"", b"", b"k" * 256, b"v"),
    ),
    FrameCase(
        "flexible client request: preserve TTL, then extras, key, value",
        bytes.fromhex("08 01 01 02 04 00 03ff 00000009 00000002 0000000000000005" "50" "0a0b0c0d") + b"kk" + b"vv",
        [0x08, 0x01, 0x03FF, 0, 2, 5, 25, 29, 31, 33],
        Frame(0x08, 0x01, 0x03FF, 0, 2, 5, b"\x50", bytes.fromhex("0a0b0c0d"), b"kk", b"vv"),
    ),
    FrameCase(
        "flexible client response: server duration before the extras",
        bytes.fromhex("18 00 03 00 04 02 0086 0000000a 00000003 1111111111111111" "020539" "02000000") + b"abc",
        [0x18, 0x00, 0x86, 0x02, 3, 0x1111_1111_1111_1111, 27, 31, 31, 34],
        Frame(
            0x18, 0x00, 0x86, 0x02, 3, 0x1111_1111_1111_1111, bytes.fromhex("020539"), bytes.fromhex("02000000"),
            b"", b"abc",
        ),
    ),
    FrameCase(
        "flexible client response: the longest framing extras and key that one byte each can tell",
        bytes.fromhex("18 00 ff ff 00 00 0000 000001fe 00000004 0000000000000000") + b"f" * 255 + b"k" * 255,
        [0x18, 0x00, 0, 0, 4, 0, 279, 279, 534, 534],
        Frame(0x18, 0x00, 0, 0, 4, 0, b"f" * 255, b"", b"k" * 255, b""),
    ),
    FrameCase(
        "server request: a pushed cluster configuration",
        bytes.fromhex("82 01 0006 10 01 0000 00000018 00000000 0000000000000000" "0000000000000001 000000000000002a")
        + b"travel" + b"{}",
        [0x82, 0x01, 0, 0x01, 0, 0, 24, 40, 46, 48],
        Frame(0x82, 0x01, 0, 0x01, 0, 0, b"", bytes.fromhex("0000000000000001000000000000002a"), b"travel", b"{}"),
    ),
    FrameCase(
        "server response: not supported",
        bytes.fromhex("83 02 0000 00 00 0083 00000000 00000009 0000000000000000"),
        [0x83, 0x02, 0x83, 0, 9, 0, 24, 24, 24, 24],
        Frame(0x83, 0x02, 0x83, 0, 9, 0, b"", b"", b"", b""),
    ),
]

MALFORMED_CASES = [
    MalformedCase(
        "magic: the answer of an HTTP server",
        b"H",
        "0x48 is not a magic byte; the other side does not speak the memcached binary protocol",
    ),
    MalformedCase(
        "size: one byte more than the largest frame",
        bytes.fromhex("81 00 0000 00 00 0000 01dfffe9 00000000 0000000000000000"),
        "a frame of 31457281 bytes is announced; the maximum is 31457280",
    ),
    MalformedCase(
        "size: everything at its largest, which lengths that fit do not excuse",
        bytes.fromhex("18 ff ffff ff ff ffff ffffffff ffffffff ffffffffffffffff"),
        "a frame of 4294967319 bytes is announced; the maximum is 31457280",
    ),
    MalformedCase(
        "lengths: extras and key are one byte longer than the body",
        bytes.fromhex("81 00 0003 04 00 0000 00000006 00000000 0000000000000000"),
        "framing extras of 0, extras of 4 and a key of 3 bytes do not fit into a body of 6",
    ),
    MalformedCase(
        "lengths: framing extras, extras and key of a flexible frame are one byte longer than the body",
        bytes.fromhex("18 00 02 03 04 00 0000 00000008 00000000 0000000000000000"),
        "framing extras of 2, extras of 4 and a key of 3 bytes do not fit into a body of 8",
    ),
    MalformedCase(
        "lengths: a plain header has 16 bits for the key",
        bytes.fromhex("80 00 0100 00 00 0000 000000ff 00000000 0000000000000000"),
        "framing extras of 0, extras of 0 and a key of 256 bytes do not fit into a body of 255",
    ),
]
# fmt: on

FITTING_HEADERS = [
    bytes.fromhex("81 00 0003 04 00 0000 00000007 00000000 0000000000000000"),
    bytes.fromhex("18 00 02 03 04 00 0000 00000009 00000000 0000000000000000"),
    bytes.fromhex("81 00 0000 00 00 0000 01dfffe8 00000000 0000000000000000"),
]
"""Headers with the largest valid lengths."""


def case_name(case: FrameCase | MalformedCase) -> str:
    """Return the name that pytest shows for a case."""
    return case.name
