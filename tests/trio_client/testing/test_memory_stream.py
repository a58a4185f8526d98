"""Streams in memory, which must behave like trio's streams."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from triclinium.testing._memory_stream import MemoryStream, memory_stream_pair


@pytest.mark.parametrize("piece_sizes", [(), (3, 5000)], ids=str)
async def test_memory_streams_satisfy_trios_checks(piece_sizes: tuple[int, ...]) -> None:
    """A pair of memory streams passes trio's checks of half-closeable streams, with and without pieces."""

    async def make() -> tuple[MemoryStream, MemoryStream]:
        await trio.lowlevel.checkpoint()
        return memory_stream_pair(piece_sizes)

    await trio.testing.check_half_closeable_stream(make, None)


async def test_pieces_have_the_given_sizes() -> None:
    """Received pieces have the given sizes in turn, but at most the requested size."""
    ours, theirs = memory_stream_pair((2, 3))
    await ours.send_all(b"abcdefgh")

    assert [b"ab", b"cde", b"f", b"gh"] == [
        await theirs.receive_some(),
        await theirs.receive_some(),
        await theirs.receive_some(1),
        await theirs.receive_some(),
    ]


async def test_bytes_before_the_end_are_received() -> None:
    """Bytes that were sent before the stream was closed are received."""
    ours, theirs = memory_stream_pair()
    await ours.send_all(b"last words")
    await ours.aclose()

    assert [b"last words", b""] == [await theirs.receive_some(), await theirs.receive_some()]
