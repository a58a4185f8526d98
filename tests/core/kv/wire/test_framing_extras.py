"""Framing extras: their pieces, escapes, and the encoding of server durations."""

from __future__ import annotations

import math
import pickle

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.kv.wire import framing_extras
from triclinium_core.kv.wire.framing_extras import MalformedFramingExtras


@rows(
    ("encoded", "pieces"),
    [
        ("", {}),
        ("50", {framing_extras.RequestFrameInfo.PRESERVE_TTL: b""}),
        ("02 0539", {framing_extras.ResponseFrameInfo.SERVER_DURATION: bytes.fromhex("0539")}),
        ("13 01 03e8", {framing_extras.RequestFrameInfo.DURABILITY: bytes.fromhex("0103e8")}),
        ("31 aa 00 e2 bbcc", {3: b"\xaa", 0: b"", 14: b"\xbb\xcc"}),
        ("ee" + "61" * 14, {14: b"a" * 14}),  # largest numbers without escape
        ("f1 00 aa", {15: b"\xaa"}),  # first escaped identifier
        ("f1 ff aa", {270: b"\xaa"}),  # last escaped identifier
        ("4f 00" + "61" * 15, {4: b"a" * 15}),  # first escaped size
        ("4f ff" + "61" * 270, {4: b"a" * 270}),  # last escaped size
        ("ff 01 02" + "61" * 17, {16: b"a" * 17}),  # both escaped, the identifier's byte first
    ],
)
def test_pieces(encoded: str, pieces: dict[int, bytes]) -> None:
    """Pieces are encoded in their order and parsed by identifier, even unknown ones and before further pieces."""
    wire = bytes.fromhex(encoded)

    assert wire == framing_extras.encode_framing_extras(pieces)
    assert pieces == framing_extras.parse_framing_extras(wire)
    assert {**pieces, 9: b"\x01"} == framing_extras.parse_framing_extras(wire + b"\x91\x01")


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        ("02", "piece 0 announces the size 2; the remaining size is 0"),
        ("02 05", "piece 0 announces the size 2; the remaining size is 1"),
        ("f0", "an escape byte is missing"),
        ("0f", "an escape byte is missing"),
        ("ff 01", "an escape byte is missing"),
        ("ff 01 02", "piece 16 announces the size 17; the remaining size is 0"),
        ("4f ff 61", "piece 4 announces the size 270; the remaining size is 1"),
    ],
)
def test_refuses_a_piece_cut_short(encoded: str, reason: str) -> None:
    """If a piece exceeds the framing extras, the parser raises an error with the offset of the piece."""
    for before in ("", "50", "91 aa"):
        wire = bytes.fromhex(before + encoded)
        with pytest.raises(MalformedFramingExtras) as caught:
            framing_extras.parse_framing_extras(wire)

        assert (reason, len(bytes.fromhex(before))) == (caught.value.reason, caught.value.offset)


def test_the_last_of_equal_identifiers_holds() -> None:
    """If two pieces have the same identifier, the later one counts."""
    assert {0: b"\x02"} == framing_extras.parse_framing_extras(bytes.fromhex("01 01 01 02"))


def test_error_has_the_offset() -> None:
    """The error is one line with the offset, even after it was pickled."""
    error = pickle.loads(pickle.dumps(MalformedFramingExtras("an escape byte is missing", 3)))  # noqa: S301

    assert "an escape byte is missing (framing extras at byte 3)" == str(error)


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ({-1: b""}, "identifier=-1 must be an integer from 0 to 270"),
        ({271: b""}, "identifier=271 must be an integer from 0 to 270"),
        ({4: bytes(271)}, r"len\(pieces\[4\]\)=271 must be an integer from 0 to 270"),
    ],
)
def test_refuses_to_encode_large_pieces(pieces: dict[int, bytes], message: str) -> None:
    """An identifier or a size that does not fit into a nibble and an escape byte is rejected."""
    with pytest.raises(ValueError, match=message):
        framing_extras.encode_framing_extras(pieces)


@given(pieces=st.dictionaries(st.integers(0, 270), st.binary(max_size=40)))
def test_round_trip(pieces: dict[int, bytes]) -> None:
    """The parser returns the pieces that were encoded."""
    assert pieces == framing_extras.parse_framing_extras(framing_extras.encode_framing_extras(pieces))


@given(data=st.binary(max_size=60))
def test_arbitrary_bytes(data: bytes) -> None:
    """Arbitrary bytes yield pieces that can be encoded again, or raise an error with an offset inside the bytes."""
    try:
        pieces = framing_extras.parse_framing_extras(data)
    except MalformedFramingExtras as error:
        assert 0 <= error.offset < len(data)
    else:
        assert pieces == framing_extras.parse_framing_extras(framing_extras.encode_framing_extras(pieces))


@pytest.mark.parametrize(
    ("encoded", "duration_us"),
    [(0, 0.0), (1, 0.5), (2, 1.67), (100, 1509.98), (1337, 137543.05), (0xFFFF, 120125042.10)],
)
def test_decodes_server_durations(encoded: int, duration_us: float) -> None:
    """The decoder converts a code to a duration of up to two minutes by a power law."""
    assert math.isclose(duration_us, framing_extras.decode_server_duration_us(encoded), abs_tol=0.005)


@pytest.mark.parametrize("encoded", [-1, 0x1_0000])
def test_refuses_a_code_out_of_range(encoded: int) -> None:
    """A code that is not a number of 16 bits is rejected."""
    with pytest.raises(ValueError, match=f"encoded={encoded} must be an integer from 0 to 65535"):
        framing_extras.decode_server_duration_us(encoded)


@given(encoded=st.integers(0, 0xFFFF))
def test_durations_round_trip(encoded: int) -> None:
    """The duration of each code is encoded as the same code."""
    assert encoded == framing_extras.encode_server_duration_us(framing_extras.decode_server_duration_us(encoded))


@pytest.mark.parametrize("duration_us", [121e6, 1e30, math.inf])
def test_long_durations_are_cut(duration_us: float) -> None:
    """A duration above that of the largest code is encoded as the largest code."""
    assert 0xFFFF == framing_extras.encode_server_duration_us(duration_us)


@pytest.mark.parametrize("duration_us", [-0.5, math.nan])
def test_refuses_invalid_durations(duration_us: float) -> None:
    """Encoding a negative duration or NaN raises ``ValueError``."""
    with pytest.raises(ValueError, match=f"duration_us={duration_us} must be a number of at least 0"):
        framing_extras.encode_server_duration_us(duration_us)


@pytest.mark.parametrize("encoded", ["02 0064", "02 0064 12 0001", "12 0001 02 0064", "e1 ff 02 0064"])
def test_the_duration_of_a_response(encoded: str) -> None:
    """The server duration of a response is found among any pieces and returned in seconds."""
    duration = framing_extras.server_duration(bytes.fromhex(encoded))

    assert duration is not None
    assert math.isclose(0.00150998, duration, abs_tol=1e-8)


@pytest.mark.parametrize("encoded", ["", "12 0001", "01 64", "03 000064", "02 64", "02", "f2"])
def test_no_duration_of_a_response(encoded: str) -> None:
    """If the server duration is missing, of another size or cut, the function returns None and does not raise."""
    assert framing_extras.server_duration(bytes.fromhex(encoded)) is None


@given(data=st.binary(max_size=20))
def test_a_duration_in_arbitrary_bytes(data: bytes) -> None:
    """Arbitrary bytes yield None, or a duration in the range of the codes."""
    duration = framing_extras.server_duration(data)

    assert duration is None or 0.0 <= duration < 121.0
