"""Encoder of frames, and the arguments that it rejects."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from tests.core.kv.wire.frame_cases import FRAME_CASES
from tests.rows import rows
from triclinium_core.kv.wire.constants import FRAME_SIZE_MAX
from triclinium_core.kv.wire.frame import (
    Frame,
    encode_request,
    encode_response,
    encode_server_request,
    encode_server_response,
)
from triclinium_core.kv.wire.header import BODY_SIZE_MAX


def test_largest_numbers_and_lengths() -> None:
    """Each field of a frame accepts the largest number that it can hold."""
    encoded = encode_request(
        0xFF,
        opaque=0xFFFF_FFFF,
        status=0xFFFF,
        cas=0xFFFF_FFFF_FFFF_FFFF,
        datatype=0xFF,
        framing_extras=b"f" * 0xFF,
        extras=b"e" * 0xFF,
        key=b"k" * 0xFF,
    )
    plain = encode_request(0x00, opaque=0, key=b"k" * 0xFFFF)

    assert bytes.fromhex("08ffffffffffffff000002fdffffffffffffffffffffffff") == encoded[:24]
    assert b"f" * 0xFF + b"e" * 0xFF + b"k" * 0xFF == encoded[24:]
    assert bytes.fromhex("8000ffff000000000000ffff") == plain[:12]


@rows(
    ("encode", "message"),
    [
        (lambda: encode_request(0x100, opaque=0), r"opcode=256 must be an integer from 0 to 255"),
        (lambda: encode_request(0, opaque=1.0), r"opaque=1\.0 must be an integer from 0 to 4294967295"),  # type: ignore[arg-type]
        (lambda: encode_request(-1, opaque=0), r"opcode=-1 must be an integer from 0 to 255"),
        (lambda: encode_request(0, opaque=1 << 32), r"opaque=4294967296 must be an integer from 0 to 4294967295"),
        (lambda: encode_request(0, opaque=0, status=1 << 16), r"vbucket=65536 must be an integer from 0 to 65535"),
        (lambda: encode_server_request(0, opaque=0, status=-1), r"vbucket=-1 must be an integer from 0 to 65535"),
        (lambda: encode_response(0, opaque=0, status=1 << 16), r"status=65536 must be an integer from 0 to 65535"),
        (lambda: encode_server_response(0, opaque=0, status=-1), r"status=-1 must be an integer from 0 to 65535"),
        (lambda: encode_request(0, opaque=0, cas=1 << 64), r"cas=18446744073709551616 must be an integer from 0 to"),
        (lambda: encode_request(0, opaque=0, datatype=256), r"datatype=256 must be an integer from 0 to 255"),
        (lambda: encode_request(0, opaque=0, extras=bytes(256)), r"len\(extras\)=256 must be .* 0 to 255"),
        (lambda: encode_request(0, opaque=0, key=bytes(65536)), r"len\(key\)=65536 must be .* 0 to 65535"),
        (
            lambda: encode_request(0, opaque=0, key=bytes(256), framing_extras=b"\x50"),
            r"len\(key\)=256 must be an integer from 0 to 255",
        ),
        (lambda: encode_response(0, opaque=0, framing_extras=bytes(256)), r"len\(framing_extras\)=256 must be"),
    ],
)
def test_refuses_numbers_out_of_range(encode: Callable[[], bytes], message: str) -> None:
    """A float, or a number or length that exceeds its field, raises an error with the number and the limit."""
    with pytest.raises(ValueError, match=message):
        encode()


def test_refuses_a_frame_larger_than_any_server_takes() -> None:
    """A frame of the maximum size can be encoded; one more byte is rejected."""
    value = bytes(BODY_SIZE_MAX - 3)

    assert FRAME_SIZE_MAX == len(encode_request(0x01, opaque=0, key=b"ada", value=value))
    with pytest.raises(ValueError, match=r"\+ len\(value\)=31457257 must be an integer from 0 to 31457256"):
        encode_request(0x01, opaque=0, key=b"lord", value=value)


@pytest.mark.parametrize("part", ["extras", "key", "value"])
def test_refuses_text(part: str) -> None:
    """A string instead of bytes raises ``TypeError``."""
    with pytest.raises(TypeError):
        encode_request(0x00, opaque=1, **{part: "text"})  # type: ignore[arg-type]


def test_frames_are_immutable_values() -> None:
    """Frames compare by value, are immutable, and are not tracked by the garbage collector."""
    frame = FRAME_CASES[0].frame

    assert Frame(*(getattr(frame, name) for name in Frame.__struct_fields__)) == frame
    assert not gc.is_tracked(frame)
    with pytest.raises(AttributeError, match="immutable"):
        frame.value = b""  # type: ignore[misc]
