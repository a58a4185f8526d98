"""Values in snappy's block format, honest and hostile."""

from __future__ import annotations

import subprocess
import sys

import cramjam
import pytest
from hypothesis import given, strategies as st

from triclinium_core.kv.wire.compression import INFLATED_SIZE_MAX, MalformedCompression, deflate, inflate
from triclinium_core.kv.wire.leb128 import encode_unsigned

ELEMENTS = bytes.fromhex("04") + b"ab" + bytes.fromhex("12 02 00") + bytes.fromhex("08") + b"xyz"
"""Ten bytes as elements written by hand: the literal "ab", five copied from two bytes back, the literal "xyz"."""


@pytest.fixture
def no_inflation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the function that allocates: a call of it fails."""
    monkeypatch.delattr(cramjam.snappy, "decompress_raw")


def test_inflates_literals_and_copies() -> None:
    """A block made by hand comes back as the value it describes."""
    assert b"abababaxyz" == inflate(b"\x0a" + ELEMENTS)


@pytest.mark.parametrize("value", [b"", b"a", b"{}", bytes(range(256)) * 3, b"x" * INFLATED_SIZE_MAX])
def test_inflates_what_the_library_deflates(value: bytes) -> None:
    """Values from the empty one to the largest come back whole, those as dense as the format allows as well."""
    assert value == inflate(bytes(cramjam.snappy.compress_raw(value)))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x80", id="size cut short"),
        pytest.param(b"\xff" * 6, id="size without end"),
        pytest.param(b"\x05\x10ab", id="content cut short"),
        pytest.param(b"\x02\x04abc", id="content left over"),
        pytest.param(b"\x04\x0e\x01\x00", id="copy from before the start"),
        pytest.param(b"\x09" + ELEMENTS, id="more than announced"),
        pytest.param(b"\x0b" + ELEMENTS, id="less than announced"),
    ],
)
def test_refuses_what_is_no_block(data: bytes) -> None:
    """What the format does not allow is refused with the library's own reason."""
    with pytest.raises(MalformedCompression, match="not a snappy block"):
        inflate(data)


@pytest.mark.usefixtures("no_inflation")
@pytest.mark.parametrize("size", [INFLATED_SIZE_MAX + 1, 0x7FFF_FFFF, 0xFFFF_FFFF])
def test_refuses_a_size_beyond_any_value(size: int) -> None:
    """A size that no value can have is refused before anything is allocated, however long the block is."""
    with pytest.raises(MalformedCompression, match=f"a value of {size} bytes is announced, the largest has 22020096"):
        inflate(encode_unsigned(size) + bytes(INFLATED_SIZE_MAX // 21))


@pytest.mark.usefixtures("no_inflation")
def test_refuses_a_size_that_the_block_cannot_hold() -> None:
    """A few bytes that announce a large value are refused before anything is allocated."""
    with pytest.raises(MalformedCompression, match="1000000 bytes is announced, 10 bytes cannot make so many"):
        inflate(encode_unsigned(1_000_000) + b"\x00a\xfe\x01\x00\xfe\x01")


@given(data=st.binary(max_size=80))
def test_arbitrary_bytes(data: bytes) -> None:
    """Arbitrary bytes are a block, or are refused; no other error comes out."""
    try:
        value = inflate(data)
    except MalformedCompression:
        return

    assert len(value) == cramjam.snappy.decompress_raw_len(data)


@given(value=st.binary(max_size=300) | st.text("ab", max_size=300).map(str.encode))
def test_round_trip(value: bytes) -> None:
    """A value that is sent deflated is short enough to be worth it, and comes back."""
    deflated = deflate(value)
    if deflated is None:
        return

    assert len(value) >= 32
    assert len(deflated) <= 0.83 * len(value)
    assert value == inflate(deflated)


@pytest.mark.parametrize(("size", "deflates"), [(0, False), (31, False), (32, True), (1000, True)])
def test_short_values_are_not_deflated(size: int, deflates: bool) -> None:
    """From 32 bytes on a value is worth the attempt."""
    assert deflates == (deflate(b"a" * size) is not None)


@pytest.mark.parametrize(("deflated_size", "deflates"), [(83, True), (84, False)])
def test_values_that_hardly_shrink_are_not_deflated(
    monkeypatch: pytest.MonkeyPatch, deflated_size: int, deflates: bool
) -> None:
    """83 of 100 bytes are worth it, 84 are not."""
    monkeypatch.setattr(cramjam.snappy, "compress_raw", lambda _: bytes(deflated_size))

    assert deflates == (deflate(bytes(100)) is not None)


@pytest.mark.native
def test_loads_the_codec_with_the_first_value() -> None:
    """A client that compresses nothing never loads it."""
    program = """if True:
        import sys
        from triclinium_core.client import client_machine
        from triclinium_core.kv.wire.compression import deflate

        print("cramjam" in sys.modules)
        deflate(bytes(100))
        print("cramjam" in sys.modules)
    """
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ["False", "True"] == run.stdout.split()
