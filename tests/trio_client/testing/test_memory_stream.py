"""Streams in memory keep the promises of Trio's streams."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from triclinium.testing._memory_stream import MemoryStream, memory_stream_pair


@pytest.mark.parametrize("piece_sizes", [(), (3, 5000)], ids=str)
async def test_a_stream_in_memory_is_a_stream(piece_sizes: tuple[int, ...]) -> None:
    """In both directions, towards an end that was closed, and between tasks that are in each other's way."""

    async def make() -> tuple[MemoryStream, MemoryStream]:
        await trio.lowlevel.checkpoint()
        return memory_stream_pair(piece_sizes)

    await trio.testing.check_half_closeable_stream(make, None)


async def test_pieces_come_in_turn() -> None:
    """Of the sizes that were asked for, and no larger than the receiver wants."""
    ours, theirs = memory_stream_pair((2, 3))
    await ours.send_all(b"abcdefgh")

    assert [b"ab", b"cde", b"f", b"gh"] == [
        await theirs.receive_some(),
        await theirs.receive_some(),
        await theirs.receive_some(1),
        await theirs.receive_some(),
    ]


async def test_what_was_sent_before_the_end_is_received() -> None:
    """A closed end takes nothing back."""
    ours, theirs = memory_stream_pair()
    await ours.send_all(b"last words")
    await ours.aclose()

    assert [b"last words", b""] == [await theirs.receive_some(), await theirs.receive_some()]
