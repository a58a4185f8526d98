"""Frame buffer: pieces of any size yield the same frames, and announced lengths alone cannot make it grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, strategies as st

from tests.core.kv.wire.frame_cases import FRAME_CASES, MALFORMED_CASES, FrameCase, MalformedCase
from tests.rows import rows
from triclinium_core._speedups import Scanner, bind_scanner
from triclinium_core.kv.wire import frame_buffer
from triclinium_core.kv.wire.constants import FRAME_SIZE_MAX, Magic
from triclinium_core.kv.wire.frame import (
    Frame,
    encode_request,
    encode_response,
    encode_server_request,
    encode_server_response,
)
from triclinium_core.kv.wire.header import BODY_SIZE_MAX

pytestmark = pytest.mark.usefixtures("each_implementation")

each_frame = rows("case", FRAME_CASES)
each_malformation = rows("case", MALFORMED_CASES)

ALL_MAGICS = frozenset(Magic)
NOOP = encode_response(0x0A, opaque=1)
NOOP_FRAME = Frame(0x81, 0x0A, 0, 0, 1, 0, b"", b"", b"", b"")


def receive_all(buffer: frame_buffer.FrameBuffer, pieces: Iterable[bytes]) -> list[Frame]:
    """Return the frames that the buffer finds in all pieces, in order."""
    return [frame for piece in pieces for frame in buffer.receive(piece)]


def cut(data: bytes, size: int) -> list[bytes]:
    """Return ``data`` in pieces of ``size`` bytes."""
    return [data[start : start + size] for start in range(0, len(data), size)]


def malformed_at(buffer: frame_buffer.FrameBuffer) -> tuple[str, int] | None:
    """Return the reason and the offset of the malformed frame that the buffer found, or None."""
    return None if buffer.malformed is None else (buffer.malformed.reason, buffer.malformed.offset)


@each_frame
def test_receives_a_frame_byte_by_byte(case: FrameCase) -> None:
    """If a frame arrives in single bytes, the buffer returns it with the last byte and not before."""
    buffer = frame_buffer.FrameBuffer(ALL_MAGICS)
    received = [buffer.receive(piece) for piece in cut(case.wire, 1)]

    assert [[]] * (len(case.wire) - 1) + [[case.frame]] == received


@each_frame
def test_keeps_trailing_bytes_for_the_next_frame(case: FrameCase) -> None:
    """Bytes that follow a complete frame become the start of the next frame."""
    for trailing in range(len(case.wire) + 1):
        buffer = frame_buffer.FrameBuffer(ALL_MAGICS)
        first = buffer.receive(case.wire + case.wire[:trailing])
        second = buffer.receive(case.wire[trailing:])

        assert [case.frame] * 2 == first + second
        assert (2 if trailing == len(case.wire) else 1) == len(first)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_frames_do_not_refer_to_the_input(kind: type[bytes | bytearray | memoryview]) -> None:
    """The caller may overwrite the buffer that it passed, because a frame has copies of its parts as bytes."""
    case = FRAME_CASES[0]
    memory = bytearray(case.wire)
    (frame,) = frame_buffer.FrameBuffer(ALL_MAGICS).receive(kind(memory))
    memory[:] = bytes(len(memory))

    assert case.frame == frame
    assert {bytes} == {type(part) for part in (frame.framing_extras, frame.extras, frame.key, frame.value)}


@each_malformation
def test_gives_up_at_an_impossible_frame(case: MalformedCase) -> None:
    """After a malformed frame, ``malformed`` has the reason, and the buffer is released and ignores later bytes."""
    for frames, pieces in ((0, [case.wire + NOOP]), (2, [NOOP[:9], NOOP[9:] + NOOP + case.wire + NOOP])):
        buffer = frame_buffer.FrameBuffer(ALL_MAGICS)

        assert [NOOP_FRAME] * frames == receive_all(buffer, pieces)
        assert 0 == buffer.capacity
        assert [] == buffer.receive(NOOP)
        assert (case.reason, frames * len(NOOP)) == malformed_at(buffer)


@each_malformation
def test_gives_up_at_the_first_invalid_byte(case: MalformedCase) -> None:
    """If a malformed frame arrives in single bytes, its first invalid byte sets ``malformed`` with its offset, and the
    buffer never grows.
    """
    buffer = frame_buffer.FrameBuffer(ALL_MAGICS)
    frames = receive_all(buffer, [NOOP, NOOP, *cut(case.wire[:-1], 1)])

    assert [NOOP_FRAME] * 2 == frames
    assert (None, frame_buffer.CAPACITY_MIN) == (buffer.malformed, buffer.capacity)
    assert [] == buffer.receive(case.wire[-1:])
    assert (case.reason, 2 * len(NOOP)) == malformed_at(buffer)


FROM_CLIENT = (encode_request(0, opaque=1), encode_request(0, opaque=1, framing_extras=b"\x50"))
FROM_SERVER = (encode_response(0, opaque=1), encode_response(0, opaque=1, framing_extras=b"\x50"))
OTHER_DIRECTION = {
    frame_buffer.CLIENT_ACCEPTS: (*FROM_CLIENT, encode_server_response(0, opaque=1)),
    frame_buffer.SERVER_ACCEPTS: (*FROM_SERVER, encode_server_request(0, opaque=1)),
}


@rows(
    ("accepts", "accepted", "listed"),
    [
        (frame_buffer.CLIENT_ACCEPTS, FROM_SERVER[0], "(0x18, 0x81, 0x82)"),
        (frame_buffer.SERVER_ACCEPTS, FROM_CLIENT[0], "(0x08, 0x80, 0x83)"),
    ],
)
def test_refuses_the_magics_of_the_other_direction(accepts: frozenset[Magic], accepted: bytes, listed: str) -> None:
    """The first byte of a frame of the other direction sets ``malformed``; the frames before it are returned."""
    for refused in OTHER_DIRECTION[accepts]:
        reason = f"magic 0x{refused[0]:02x} is not one of those that this side receives {listed}"
        for pieces in ([accepted + refused + accepted], [accepted + refused[:1]], [accepted, refused[:1]]):
            buffer = frame_buffer.FrameBuffer(accepts)

            assert 1 == len(receive_all(buffer, pieces))
            assert (reason, len(accepted)) == malformed_at(buffer)


def test_the_wrong_direction_precedes_other_faults() -> None:
    """If a request has invalid lengths too, ``malformed`` names its magic, in one piece and byte by byte."""
    wire = bytes.fromhex("80 00 0000 01 00 0000 00000000 00000000 0000000000000000")
    for size in (len(wire), 1):
        buffer = frame_buffer.FrameBuffer(frame_buffer.CLIENT_ACCEPTS)

        assert [] == receive_all(buffer, cut(wire, size))
        assert ("magic 0x80 is not one of those that this side receives (0x18, 0x81, 0x82)", 0) == malformed_at(buffer)


def test_the_two_directions_share_no_magic() -> None:
    """Each magic belongs to exactly one direction."""
    assert ALL_MAGICS == frame_buffer.CLIENT_ACCEPTS | frame_buffer.SERVER_ACCEPTS
    assert frozenset() == frame_buffer.CLIENT_ACCEPTS & frame_buffer.SERVER_ACCEPTS


def test_an_announced_length_allocates_nothing() -> None:
    """The buffer does not grow when a header announces the largest frame."""
    buffer = frame_buffer.FrameBuffer(frame_buffer.CLIENT_ACCEPTS)
    header = encode_response(0x00, opaque=1)[:8] + BODY_SIZE_MAX.to_bytes(4, "big") + bytes(12)

    assert [] == buffer.receive(header + bytes(1000))
    assert frame_buffer.CAPACITY_MIN == buffer.capacity
    assert buffer.malformed is None


def test_the_buffer_doubles_for_large_values() -> None:
    """The buffer doubles while a large value arrives; above its minimum, it never exceeds twice the received size."""
    buffer = frame_buffer.FrameBuffer(frame_buffer.CLIENT_ACCEPTS)
    value = bytes(range(256)) * 15 * 1024
    capacities = [frame_buffer.CAPACITY_MIN]
    frames: list[Frame] = []
    for count, piece in enumerate(cut(encode_response(0x00, opaque=1, value=value), 1000), start=1):
        frames += buffer.receive(piece)
        if buffer.capacity != capacities[-1]:
            capacities.append(buffer.capacity)
        assert buffer.capacity <= max(frame_buffer.CAPACITY_MIN, 2 * 1000 * count)

    assert [value] == [frame.value for frame in frames]
    assert [
        *(frame_buffer.CAPACITY_MIN << doublings for doublings in range(7)),
        frame_buffer.CAPACITY_MIN,
    ] == capacities


def test_the_largest_frame() -> None:
    """The buffer returns a frame of the largest size and the frame after it, and then shrinks."""
    buffer = frame_buffer.FrameBuffer(frame_buffer.CLIENT_ACCEPTS)
    largest = encode_response(0x00, opaque=1, value=b"v" * BODY_SIZE_MAX)
    capacities = []
    frames: list[Frame] = []
    for piece in [*cut(largest[:-1], 1 << 22), largest[-1:] + NOOP + NOOP[:3]]:
        frames += buffer.receive(piece)
        capacities.append(buffer.capacity)

    assert FRAME_SIZE_MAX == len(largest)
    assert [BODY_SIZE_MAX, 0] == [len(frame.value) for frame in frames]
    assert frame_buffer.CAPACITY_MAX >= max(capacities) >= FRAME_SIZE_MAX
    assert frame_buffer.CAPACITY_MIN == buffer.capacity
    assert [NOOP_FRAME] == buffer.receive(NOOP[3:])


def test_many_frames_at_once_need_no_large_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small frames in one piece of several megabytes do not need a large buffer."""
    capacities: list[int] = []

    def recording_bind_scanner(buffer: bytearray) -> Scanner:
        capacities.append(len(buffer))
        return bind_scanner(buffer)

    monkeypatch.setattr(frame_buffer, "bind_scanner", recording_bind_scanner)
    buffer = frame_buffer.FrameBuffer(frame_buffer.CLIENT_ACCEPTS)
    response = encode_response(0x00, opaque=1, value=b"v" * 999)
    frames = buffer.receive(response * 3000 + NOOP[:9])

    assert [b"v" * 999] * 3000 == [frame.value for frame in frames]
    assert max(capacities) <= 2 * frame_buffer.PIECE_SIZE < frame_buffer.CAPACITY_KEPT
    assert [NOOP_FRAME] == buffer.receive(NOOP[9:])


def test_scanners_of_old_buffers_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """A buffer that grows, shrinks or finds a malformed frame immediately releases the scanner of its old memory."""
    held: list[Scanner] = []

    class HeldScanner:
        def __init__(self, buffer: bytearray) -> None:
            self.inner = bind_scanner(buffer)
            held.append(self)

        def scan(self, start: int, end: int, /) -> list[int]:
            return self.inner.scan(start, end)

        def release(self) -> None:
            held.remove(self)
            self.inner.release()

    monkeypatch.setattr(frame_buffer, "bind_scanner", HeldScanner)
    buffer = frame_buffer.FrameBuffer(frame_buffer.CLIENT_ACCEPTS)
    response = encode_response(0x00, opaque=1, value=bytes(2 * frame_buffer.CAPACITY_KEPT))

    for piece in (response[:-1], response[-1:] + NOOP, b"HTTP"):
        buffer.receive(piece)
        assert 1 == len(held)


def test_an_impossible_frame_in_a_large_piece() -> None:
    """If a large piece contains a malformed frame, its offset counts all bytes before it."""
    buffer = frame_buffer.FrameBuffer(frame_buffer.CLIENT_ACCEPTS)
    response = encode_response(0x00, opaque=1, value=b"v" * 999)
    frames = buffer.receive(response * 1000 + b"HTTP" + response * 1000)

    assert 1000 == len(frames)
    assert buffer.malformed is not None
    assert 1000 * len(response) == buffer.malformed.offset


def test_a_buffer_of_ordinary_size_is_kept() -> None:
    """After a value of moderate size, the buffer keeps its size for the next value."""
    buffer = frame_buffer.FrameBuffer(frame_buffer.CLIENT_ACCEPTS)
    frames = buffer.receive(encode_response(0x00, opaque=1, value=bytes(frame_buffer.CAPACITY_MIN)))

    assert 1 == len(frames)
    assert 2 * frame_buffer.CAPACITY_MIN == buffer.capacity


ENCODERS: list[tuple[Callable[..., bytes], int, int | None]] = [
    (encode_request, 0x80, 0x08),
    (encode_response, 0x81, 0x18),
    (encode_server_request, 0x82, None),
    (encode_server_response, 0x83, None),
]


@st.composite
def encoded_frames(draw: st.DrawFn) -> tuple[bytes, Frame]:
    """Draw a frame of any layout, and return it encoded and parsed."""
    encode, plain, flexible = draw(st.sampled_from(ENCODERS))
    opcode, datatype = draw(st.integers(0, 0xFF)), draw(st.integers(0, 0xFF))
    status, opaque = draw(st.integers(0, 0xFFFF)), draw(st.integers(0, 0xFFFF_FFFF))
    cas = draw(st.integers(0, 0xFFFF_FFFF_FFFF_FFFF))
    extras, key, value = (draw(st.binary(max_size=30)) for _ in range(3))
    magic, framing_extras, framing = plain, b"", {}
    if flexible is not None and (framing_extras := draw(st.binary(max_size=20))):
        magic, framing = flexible, {"framing_extras": framing_extras}
    wire = encode(
        opcode,
        opaque=opaque,
        cas=cas,
        datatype=datatype,
        extras=extras,
        key=key,
        value=value,
        status=status,
        **framing,
    )
    return wire, Frame(magic, opcode, status, datatype, opaque, cas, framing_extras, extras, key, value)


@given(data=st.data(), drawn=st.lists(encoded_frames(), max_size=8))
def test_round_trip(data: st.DataObject, drawn: list[tuple[bytes, Frame]]) -> None:
    """Frames that are encoded, cut at any positions and received equal the original frames."""
    wire = b"".join(encoded for encoded, _ in drawn)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=12), label="cuts"))
    buffer = frame_buffer.FrameBuffer(ALL_MAGICS)
    received = receive_all(buffer, (wire[start:end] for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True)))

    assert [frame for _, frame in drawn] == received
    assert buffer.malformed is None


@given(pieces=st.lists(st.binary(max_size=40) | encoded_frames().map(lambda drawn: drawn[0]), max_size=8))
def test_arbitrary_bytes_in_any_cut(pieces: list[bytes]) -> None:
    """Arbitrary bytes raise nothing, and yield the same frames and the same ``malformed`` for pieces of any size."""
    wire = b"".join(pieces)
    at_once, in_pieces, by_bytes = (frame_buffer.FrameBuffer(frame_buffer.CLIENT_ACCEPTS) for _ in range(3))
    frames = at_once.receive(wire)

    assert frames == receive_all(in_pieces, pieces) == receive_all(by_bytes, cut(wire, 1))
    assert malformed_at(at_once) == malformed_at(in_pieces) == malformed_at(by_bytes)
