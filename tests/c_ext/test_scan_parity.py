"""Equality of the C module and the Python decoder, which must accept and refuse the same bytes."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, strategies as st

import triclinium_c
from tests.core.kv.wire import frame_cases
from tests.rows import rows
from triclinium_core._speedups import CScanner
from triclinium_core.kv.wire.frame import encode_response
from triclinium_core.kv.wire.header import FIELDS_PER_FRAME, MalformedFrame, scan_headers

pytestmark = pytest.mark.native

NOOP = encode_response(0x0A, opaque=1)

ScanEnd = list[int] | tuple[str, int]


def in_c(wire: bytes, start: int, end: int) -> ScanEnd:
    """Return the fields that the C module finds, or its reason and offset of a refusal."""
    try:
        return CScanner(bytearray(wire)).scan(start, end)
    except MalformedFrame as error:
        return error.reason, error.offset


def in_python(wire: bytes, start: int, end: int) -> ScanEnd:
    """Return the fields that the Python decoder finds, or its reason and offset of a refusal."""
    try:
        return scan_headers(wire, start, end)
    except MalformedFrame as error:
        return error.reason, error.offset


@pytest.mark.parametrize("case", frame_cases.FRAME_CASES, ids=frame_cases.case_name)
def test_every_cut_gives_the_complete_frames(case: frame_cases.FrameCase) -> None:
    """If two frames are cut anywhere, the scanner finds the complete ones, also behind other bytes in the buffer."""
    size = len(case.wire)
    wire = case.wire * 2

    assert [[]] * size == [in_c(wire, 0, end) for end in range(size)]
    assert [case.fields] * size == [in_c(wire, 0, end) for end in range(size, 2 * size)]
    assert in_python(b"xy" + wire, 2, 2 * size + 2) == in_c(b"xy" + wire, 2, 2 * size + 2)


@pytest.mark.parametrize("case", frame_cases.MALFORMED_CASES, ids=frame_cases.case_name)
def test_an_impossible_frame_is_refused(case: frame_cases.MalformedCase) -> None:
    """An impossible header is refused at its last byte, for the same reason as in the Python decoder."""
    size = len(case.wire)

    assert [[]] * size == [in_c(case.wire, 0, end) for end in range(size)]
    assert (case.reason, 0) == in_c(case.wire, 0, size) == in_c(case.wire + bytes(99), 0, size + 99)
    assert in_python(NOOP, 0, 24) == in_c(NOOP + case.wire, 0, 24 + size)
    assert (case.reason, 24) == in_c(NOOP + case.wire, 24, 24 + size)


@pytest.mark.parametrize("header", frame_cases.FITTING_HEADERS, ids=bytes.hex)
def test_lengths_at_their_limit_are_accepted(header: bytes) -> None:
    """Key and extras may fill the body, and a frame may have exactly the maximum size."""
    assert [] == in_c(header, 0, len(header))


@rows("first", range(256))
def test_all_first_bytes_agree(first: int) -> None:
    """Both decoders accept or refuse a header with each possible first byte alike."""
    wire = bytes((first,)) + NOOP[1:]

    assert in_python(wire, 0, 1) == in_c(wire, 0, 1)
    assert in_python(wire, 0, 24) == in_c(wire, 0, 24)


@rows("count", [1, 255, 256, 257, 511, 512, 513])
@rows("tail", [b"", NOOP[:5], b"HTTP"])
def test_more_frames_than_one_call(count: int, tail: bytes) -> None:
    """The scanner returns all frames, even more than one C call decodes, also before a partial or invalid frame."""
    wire = b"".join(encode_response(0x00, opaque=opaque, value=b"value") for opaque in range(count)) + tail
    fields = in_c(wire, 0, len(wire))

    assert in_python(wire, 0, len(wire)) == fields
    assert count * triclinium_c.FIELDS_PER_FRAME == len(fields)


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, int, int]:
    """Draw almost valid headers between arbitrary bytes, and a range."""
    pieces = []
    for _ in range(draw(st.integers(0, 6))):
        header = bytes(
            (
                draw(st.sampled_from((0x80, 0x81, 0x82, 0x83, 0x08, 0x18)) | st.integers(0, 255)),
                draw(st.integers(0, 255)),
                draw(st.integers(0, 3)),
                draw(st.integers(0, 9)),
                draw(st.integers(0, 9)),
            )
        )
        body_size = draw(st.integers(0, 30) | st.integers(0, 0xFFFF_FFFF))
        body = draw(st.binary(min_size=min(body_size, 30), max_size=min(body_size, 30)))
        rest = draw(st.binary(min_size=12, max_size=12))
        pieces.append(header + rest[:3] + body_size.to_bytes(4, "big") + rest + body)
        pieces.append(draw(st.just(b"") | st.binary(max_size=3)))
    wire = b"".join(pieces)
    start = draw(st.just(0) | st.integers(0, len(wire)))
    return wire, start, draw(st.just(len(wire)) | st.integers(start, len(wire)))


@given(stream=streams() | st.binary(max_size=120).map(lambda wire: (wire, 0, len(wire))))
def test_decoders_agree_on_arbitrary_bytes(stream: tuple[bytes, int, int]) -> None:
    """Both decoders return the same fields for arbitrary bytes, or refuse them for the same reason."""
    assert in_python(*stream) == in_c(*stream)


@given(stream=streams())
def test_decoders_agree_at_every_cut(stream: tuple[bytes, int, int]) -> None:
    """If a stream is cut at any position, both decoders give the same result."""
    wire, start, end = stream

    for stop in range(start, end):
        assert in_python(wire, start, stop) == in_c(wire, start, stop)


def test_both_modules_have_the_same_fields() -> None:
    """The C module and the core use the same number of fields per frame."""
    assert FIELDS_PER_FRAME == triclinium_c.FIELDS_PER_FRAME


@pytest.mark.parametrize(("start", "end"), [(-1, 4), (3, 2), (0, 25), (25, 25)])
def test_offsets_outside_the_buffer_are_refused(start: int, end: int) -> None:
    """Offsets outside the buffer raise ValueError before C is called, because C does not check them."""
    scanner = triclinium_c.HeaderScanner(bytearray(24))

    with pytest.raises(ValueError, match=rf"start={start}, end={end} must satisfy 0 <= start <= end <= 24"):
        scanner.scan(start, end)


def test_later_writes_are_scanned() -> None:
    """The scanner is bound to the memory, so it sees bytes that are written later."""
    buffer = bytearray(24)
    scanner = triclinium_c.HeaderScanner(buffer)
    buffer[:] = NOOP

    assert scan_headers(NOOP, 0, 24) == scanner.scan(0, 24)


def test_a_bound_buffer_cannot_be_resized() -> None:
    """A bound buffer cannot be resized; after ``release`` it can, and the scanner refuses to scan."""
    buffer = bytearray(24)
    scanner = triclinium_c.HeaderScanner(buffer)

    with pytest.raises(BufferError):
        buffer.extend(b"more")
    scanner.release()
    scanner.release()
    buffer.extend(b"more")
    with pytest.raises(ValueError, match="the scanner was released: bind a new one"):
        scanner.scan(0, 0)


def test_malformed_header_carries_code_and_offset() -> None:
    """MalformedHeader has code and offset, and survives pickling."""
    with pytest.raises(triclinium_c.MalformedHeader) as caught:
        triclinium_c.HeaderScanner(bytearray(b"xHTTP")).scan(1, 5)
    error = pickle.loads(pickle.dumps(caught.value))  # noqa: S301

    assert (-1, 1) == (error.code, error.offset)
    assert "impossible header at byte 1 (code -1)" == str(error)
