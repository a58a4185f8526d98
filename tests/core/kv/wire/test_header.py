"""Header decoder in Python; the C module passes the same cases in tests/c_ext."""

from __future__ import annotations

import pickle

import pytest

from tests.core.kv.wire.frame_cases import FITTING_HEADERS, FRAME_CASES, MALFORMED_CASES, FrameCase, MalformedCase
from tests.rows import rows
from triclinium_core.kv.wire.constants import Magic
from triclinium_core.kv.wire.header import MalformedFrame, malformed_frame, scan_headers

each_frame = rows("case", FRAME_CASES)
each_malformation = rows("case", MALFORMED_CASES)


def shifted(fields: list[int], offset: int) -> list[int]:
    """Return the fields of a frame that starts ``offset`` bytes later."""
    return [*fields[:6], *(position + offset for position in fields[6:])]


@each_frame
def test_decodes_a_whole_frame(case: FrameCase) -> None:
    """The decoder returns all fields of a complete frame."""
    assert case.fields == scan_headers(case.wire, 0, len(case.wire))


@each_frame
def test_leaves_a_partial_frame_alone(case: FrameCase) -> None:
    """The decoder finds no frame before the last byte of the frame has arrived."""
    found = [scan_headers(case.wire, 0, end) for end in range(len(case.wire))]

    assert [[]] * len(case.wire) == found


@each_frame
def test_offsets_count_from_the_start_of_the_buffer(case: FrameCase) -> None:
    """If a frame starts in the middle of a buffer, its fields are the same except for the later offsets."""
    wire = b"before" + case.wire + b"behind"

    assert shifted(case.fields, 6) == scan_headers(wire, 6, 6 + len(case.wire))


@each_malformation
def test_refuses_an_impossible_frame(case: MalformedCase) -> None:
    """An invalid header raises an error with its values, whether or not more bytes follow."""
    for wire in (case.wire, case.wire + bytes(100)):
        with pytest.raises(MalformedFrame) as caught:
            scan_headers(wire, 0, len(wire))

        assert (case.reason, 0) == (caught.value.reason, caught.value.offset)


@each_malformation
def test_refuses_at_the_first_invalid_byte(case: MalformedCase) -> None:
    """Before its first invalid byte arrives, a header counts as incomplete."""
    found = [scan_headers(case.wire, 0, end) for end in range(len(case.wire))]

    assert [[]] * len(case.wire) == found


@each_malformation
def test_returns_the_frames_before_an_impossible_one(case: MalformedCase) -> None:
    """The decoder returns valid frames first; a call that starts at the invalid frame raises with its offset."""
    good = FRAME_CASES[0]
    wire = good.wire + case.wire

    assert good.fields == scan_headers(wire, 0, len(wire))
    with pytest.raises(MalformedFrame) as caught:
        scan_headers(wire, len(good.wire), len(wire))
    assert (case.reason, len(good.wire)) == (caught.value.reason, caught.value.offset)


@pytest.mark.parametrize("header", FITTING_HEADERS, ids=bytes.hex)
def test_lengths_at_their_limit_are_possible(header: bytes) -> None:
    """The decoder accepts a key and extras that fill the body, and a frame of the largest size."""
    assert [] == scan_headers(header, 0, len(header))


def test_knows_six_magics() -> None:
    """A frame can start only with one of the six magics of the protocol."""
    possible = set()
    for byte in range(256):
        try:
            scan_headers(bytes((byte,)), 0, 1)
        except MalformedFrame:
            continue
        possible.add(byte)

    assert set(Magic) == possible


@pytest.mark.parametrize(("start", "end"), [(-1, 4), (3, 2), (0, 25), (25, 25)])
def test_refuses_offsets_outside_the_buffer(start: int, end: int) -> None:
    """If an offset is outside the buffer, or the start is after the end, the decoder raises ``ValueError``."""
    with pytest.raises(ValueError, match=rf"start={start}, end={end} must satisfy 0 <= start <= end <= 24"):
        scan_headers(bytes(24), start, end)


def test_malformed_frame_refuses_an_unknown_code() -> None:
    """Converting a code that no decoder returns to an error raises ``ValueError``."""
    with pytest.raises(ValueError, match="-9 is not a valid Malformation"):
        malformed_frame(-9, bytes(24), 0)


def test_malformed_frame_has_the_offset() -> None:
    """The error is one line with the offset, even after it was pickled."""
    error = pickle.loads(pickle.dumps(MalformedFrame("it is broken", 12)))  # noqa: S301

    assert "it is broken (frame at byte 12)" == str(error)
    assert ("it is broken", 12) == (error.reason, error.offset)
