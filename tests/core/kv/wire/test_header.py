"""Header decoder in Python; the C module passes the same cases in tests/c_ext."""

from __future__ import annotations

import pickle

import pytest

from tests.core.kv.wire.frame_cases import FITTING_HEADERS, FRAME_CASES, MALFORMED_CASES, FrameCase, MalformedCase
from tests.rows import rows
from triclinium_core.kv.wire.constants import Magic
from triclinium_core.kv.wire.header import MalformedFrame, malformed_frame, scan_headers


@rows("case", FRAME_CASES)
def test_decodes_a_whole_frame(case: FrameCase) -> None:
    """The decoder returns all fields of a complete frame; their offsets count from the start of the buffer."""
    assert case.fields == scan_headers(case.wire, 0, len(case.wire))
    assert [*case.fields[:6], *(offset + 6 for offset in case.fields[6:])] == scan_headers(
        b"before" + case.wire + b"behind", 6, 6 + len(case.wire)
    )


@rows("case", [*FRAME_CASES, *MALFORMED_CASES])
def test_leaves_a_partial_frame_alone(case: FrameCase | MalformedCase) -> None:
    """Before the last byte of a frame, or the first invalid one, has arrived, the decoder finds nothing."""
    assert [[]] * len(case.wire) == [scan_headers(case.wire, 0, end) for end in range(len(case.wire))]


@rows("before", [b"", FRAME_CASES[0].wire])
@rows("case", MALFORMED_CASES)
def test_refuses_an_impossible_frame(case: MalformedCase, before: bytes) -> None:
    """An invalid header raises an error with its values and offset, but a call returns the frames before it first."""
    for wire in (before + case.wire, before + case.wire + bytes(100)):
        assert not before or scan_headers(wire, 0, len(wire)) == FRAME_CASES[0].fields
        with pytest.raises(MalformedFrame) as caught:
            scan_headers(wire, len(before), len(wire))

        assert (case.reason, len(before)) == (caught.value.reason, caught.value.offset)


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
    """If a code that no decoder returns is converted to an error, ``ValueError`` is raised."""
    with pytest.raises(ValueError, match="-9 is not a valid Malformation"):
        malformed_frame(-9, bytes(24), 0)


def test_malformed_frame_has_the_offset() -> None:
    """The error is one line with the offset, even after it was pickled."""
    error = pickle.loads(pickle.dumps(MalformedFrame("it is broken", 12)))  # noqa: S301

    assert "it is broken (frame at byte 12)" == str(error)
    assert ("it is broken", 12) == (error.reason, error.offset)
