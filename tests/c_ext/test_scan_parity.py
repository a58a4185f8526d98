"""The C module finds and refuses exactly what the Python decoder does, on every case and on arbitrary bytes."""

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
    """Return the fields that the C module finds, or why and where it refuses."""
    try:
        return CScanner(bytearray(wire)).scan(start, end)
    except MalformedFrame as error:
        return error.reason, error.offset


def in_python(wire: bytes, start: int, end: int) -> ScanEnd:
    """Return the fields that the Python decoder finds, or why and where it refuses."""
    try:
        return scan_headers(wire, start, end)
    except MalformedFrame as error:
        return error.reason, error.offset


@pytest.mark.parametrize("case", frame_cases.FRAME_CASES, ids=frame_cases.case_name)
def test_decodes_whole_byte_by_byte_and_with_trailing_bytes(case: frame_cases.FrameCase) -> None:
    """Every cut of a frame and its successor gives the frames that are whole in it, wherever it lies in the buffer."""
    size = len(case.wire)
    wire = case.wire * 2

    assert [[]] * size == [in_c(wire, 0, end) for end in range(size)]
    assert [case.fields] * size == [in_c(wire, 0, end) for end in range(size, 2 * size)]
    assert in_python(b"xy" + wire, 2, 2 * size + 2) == in_c(b"xy" + wire, 2, 2 * size + 2)


@pytest.mark.parametrize("case", frame_cases.MALFORMED_CASES, ids=frame_cases.case_name)
def test_refuses_an_impossible_frame(case: frame_cases.MalformedCase) -> None:
    """An impossible header is refused by the byte that gives it away, in the words of the Python decoder."""
    size = len(case.wire)

    assert [[]] * size == [in_c(case.wire, 0, end) for end in range(size)]
    assert (case.reason, 0) == in_c(case.wire, 0, size) == in_c(case.wire + bytes(99), 0, size + 99)
    assert in_python(NOOP, 0, 24) == in_c(NOOP + case.wire, 0, 24 + size)
    assert (case.reason, 24) == in_c(NOOP + case.wire, 24, 24 + size)


@pytest.mark.parametrize("header", frame_cases.FITTING_HEADERS, ids=bytes.hex)
def test_lengths_at_their_limit_are_possible(header: bytes) -> None:
    """Key and extras may fill the body, and a frame may have exactly the largest size."""
    assert [] == in_c(header, 0, len(header))


@rows("first", range(256))
def test_knows_the_same_magics(first: int) -> None:
    """Each first byte gets the same verdict."""
    wire = bytes((first,)) + NOOP[1:]

    assert in_python(wire, 0, 1) == in_c(wire, 0, 1)
    assert in_python(wire, 0, 24) == in_c(wire, 0, 24)


@rows("count", [1, 255, 256, 257, 511, 512, 513])
@rows("tail", [b"", NOOP[:5], b"HTTP"])
def test_frames_beyond_one_call(count: int, tail: bytes) -> None:
    """More frames than one call into C decodes come out all the same, whatever follows them."""
    wire = b"".join(encode_response(0x00, opaque=opaque, value=b"value") for opaque in range(count)) + tail
    fields = in_c(wire, 0, len(wire))

    assert in_python(wire, 0, len(wire)) == fields
    assert count * triclinium_c.FIELDS_PER_FRAME == len(fields)


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, int, int]:
    """Draw headers that are almost possible between arbitrary bytes, and a range."""
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
def test_same_verdict_on_arbitrary_bytes(stream: tuple[bytes, int, int]) -> None:
    """Whatever lies in the buffer, both decoders return the same fields or refuse in the same words."""
    assert in_python(*stream) == in_c(*stream)


@given(stream=streams())
def test_same_verdict_wherever_it_is_cut(stream: tuple[bytes, int, int]) -> None:
    """At each byte at which the stream may have stopped, both decoders agree."""
    wire, start, end = stream

    for stop in range(start, end):
        assert in_python(wire, start, stop) == in_c(wire, start, stop)


def test_a_frame_has_as_many_fields_on_both_sides() -> None:
    """The C module and the core agree about the layout."""
    assert FIELDS_PER_FRAME == triclinium_c.FIELDS_PER_FRAME


@pytest.mark.parametrize(("start", "end"), [(-1, 4), (3, 2), (0, 25), (25, 25)])
def test_refuses_offsets_outside_the_buffer(start: int, end: int) -> None:
    """C trusts its caller, so offsets that do not lie in the buffer never reach it."""
    scanner = triclinium_c.HeaderScanner(bytearray(24))

    with pytest.raises(ValueError, match=rf"start={start}, end={end} must satisfy 0 <= start <= end <= 24"):
        scanner.scan(start, end)


def test_an_empty_buffer() -> None:
    """Nothing is in a buffer without room."""
    assert [] == triclinium_c.HeaderScanner(bytearray()).scan(0, 0)


def test_sees_what_is_written_later() -> None:
    """The scanner is bound to the memory, not to what lay in it."""
    buffer = bytearray(24)
    scanner = triclinium_c.HeaderScanner(buffer)
    buffer[:] = NOOP

    assert scan_headers(NOOP, 0, 24) == scanner.scan(0, 24)


def test_a_bound_buffer_keeps_its_size_until_the_release() -> None:
    """The memory cannot move away under the scanner; after the release the buffer is free and the scanner refuses."""
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
    """The module's own error says what and where, and survives pickling."""
    with pytest.raises(triclinium_c.MalformedHeader) as caught:
        triclinium_c.HeaderScanner(bytearray(b"xHTTP")).scan(1, 5)
    error = pickle.loads(pickle.dumps(caught.value))  # noqa: S301

    assert (-1, 1) == (error.code, error.offset)
    assert "impossible header at byte 1 (code -1)" == str(error)
