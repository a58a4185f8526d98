"""Event tape as a regression test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from triclinium_core.event_tape.replay import Replayed, replay

CHUNK_SIZE = 1024 * 1024
"""Number of bytes to read in one call."""


def replayed(path: str) -> Replayed:
    """Replay the event tape in a file, and return the result, in which all calls agree.

    A test that only calls this function fails as soon as a change of the client makes it act differently::

        def test_outage_of_last_night() -> None:
            replayed("tests/tapes/outage.jsonl")

    Args:
        path: path of a tape that ``EventTape`` has written.

    Raises:
        AssertionError: the client acts differently now. The message has the first difference.
        TapeError: the tape cannot be read. The message names the line.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as tape:
        result = replay(_chunks(tape))
    if result.difference is not None:
        raise AssertionError(f"{path}: {result.difference}")
    return result


def _chunks(tape: BinaryIO) -> Iterator[bytes]:
    yield from iter(lambda: tape.read(CHUNK_SIZE), b"")
