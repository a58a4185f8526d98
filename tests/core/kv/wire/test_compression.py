"""Values in snappy's block format, both valid and hostile."""

from __future__ import annotations

import subprocess
import sys

import cramjam
import pytest
from hypothesis import given, strategies as st

from triclinium_core.kv.wire.compression import INFLATED_SIZE_MAX, MalformedCompression, deflate, inflate
from triclinium_core.kv.wire.leb128 import encode_unsigned

ELEMENTS = bytes.fromhex("04") + b"ab" + bytes.fromhex("12 02 00") + bytes.fromhex("08") + b"xyz"
"""Snappy elements for ten bytes: the literal "ab", five bytes copied from two bytes back, the literal "xyz"."""


@pytest.fixture
def no_inflation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the function that allocates memory, so that calling it raises."""
    monkeypatch.delattr(cramjam.snappy, "decompress_raw")


def test_inflates_literals_and_copies() -> None:
    """A block that was written by hand is inflated to its value."""
    assert b"abababaxyz" == inflate(b"\x0a" + ELEMENTS)


@pytest.mark.parametrize("value", [b"", b"a", b"{}", bytes(range(256)) * 3, b"x" * INFLATED_SIZE_MAX])
def test_inflates_the_librarys_blocks(value: bytes) -> None:
    """A value of any size and density is inflated completely from the block that the library wrote."""
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
def test_refuses_invalid_blocks(data: bytes) -> None:
    """An invalid block raises MalformedCompression with the reason that the library gives."""
    with pytest.raises(MalformedCompression, match="not a snappy block"):
        inflate(data)


@pytest.mark.usefixtures("no_inflation")
@pytest.mark.parametrize("size", [INFLATED_SIZE_MAX + 1, 0x7FFF_FFFF, 0xFFFF_FFFF])
def test_refuses_a_size_beyond_any_value(size: int) -> None:
    """If a block announces a size above the maximum, it is refused before memory is allocated, whatever its length."""
    with pytest.raises(MalformedCompression, match=f"a value of {size} bytes is announced; .*22020096"):
        inflate(encode_unsigned(size) + bytes(INFLATED_SIZE_MAX // 21))


@pytest.mark.usefixtures("no_inflation")
def test_refuses_a_size_that_the_block_cannot_hold() -> None:
    """If a block is too short for the size that it announces, it is refused before memory is allocated."""
    with pytest.raises(MalformedCompression, match="1000000 bytes is announced; .*10 "):
        inflate(encode_unsigned(1_000_000) + b"\x00a\xfe\x01\x00\xfe\x01")


@given(data=st.binary(max_size=80))
def test_arbitrary_bytes(data: bytes) -> None:
    """Arbitrary bytes are inflated or raise MalformedCompression."""
    try:
        value = inflate(data)
    except MalformedCompression:
        return

    assert len(value) == cramjam.snappy.decompress_raw_len(data)


@given(value=st.binary(max_size=300) | st.text("ab", max_size=300).map(str.encode))
def test_round_trip(value: bytes) -> None:
    """A value is compressed only if the result is short enough, and is inflated to the same value."""
    deflated = deflate(value)
    if deflated is None:
        return

    assert len(value) >= 32
    assert len(deflated) <= 0.83 * len(value)
    assert value == inflate(deflated)


@pytest.mark.parametrize(("size", "deflates"), [(0, False), (31, False), (32, True), (1000, True)])
def test_short_values_are_not_deflated(size: int, deflates: bool) -> None:
    """A value is compressed only if it has at least 32 bytes."""
    assert deflates == (deflate(b"a" * size) is not None)


@pytest.mark.parametrize(("deflated_size", "deflates"), [(83, True), (84, False)])
def test_values_that_hardly_shrink_are_not_deflated(
    monkeypatch: pytest.MonkeyPatch, deflated_size: int, deflates: bool
) -> None:
    """A value is sent compressed if it shrinks to 83 % of its size, but not if it shrinks to 84 %."""
    monkeypatch.setattr(cramjam.snappy, "compress_raw", lambda _: bytes(deflated_size))

    assert deflates == (deflate(bytes(100)) is not None)


@pytest.mark.native
def test_loads_the_codec_with_the_first_value() -> None:
    """Importing the client does not load the codec; compressing the first value does."""
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
