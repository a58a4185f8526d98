"""Reader of a decision tape: bytes in, checked lines out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from triclinium_core.decision_tape import lines
from triclinium_core.json_depth import shallow
from triclinium_core.shown import one_line

T = TypeVar("T")


class TapeError(ValueError):
    """A tape cannot be read. The message names the line, counted from 1, and the problem."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line: int = line


def numbered_lines(chunks: Iterable[bytes], size_max: int) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each line, with its line break. The last line may lack the line break.

    Raises:
        TapeError: a line has more than ``size_max`` bytes.
    """
    number, rest, size = 1, list[bytes](), 0
    for chunk in chunks:
        for place, piece in enumerate(chunk.split(b"\n")):
            if place:
                yield number, b"".join([*rest, b"\n"])
                number, rest, size = number + 1, [], 0
            rest.append(piece)
            size += len(piece)
            if size > size_max:
                raise TapeError(
                    number,
                    f"it has more than {size_max} bytes, the maximum for a line of a tape;"
                    " the file is damaged or is not a tape",
                )
    if size:
        yield number, b"".join(rest)


class TapeReader:
    """Reader of one tape. Iterate over it once for the facts, each with the number of its line.

    Args:
        chunks: contents of the file, in pieces of any size. The reader keeps one line at a time.

    Raises:
        TapeError: the first line is not the header of a decision tape, or has a newer format. While iterating: a line
            is invalid, has a time before that of an earlier line, or follows the end line.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._lines = numbered_lines(chunks, lines.LINE_SIZE_MAX)
        number, line = next(self._lines, (1, b""))
        self.header: lines.Header = decoded(_HEADER, number, line, "the header of a decision tape")
        if self.header.version > lines.FORMAT:
            raise TapeError(
                number,
                f"the tape has format {self.header.version}, but this version reads only formats up to "
                f"{lines.FORMAT}; use the version that wrote it, {self.header.core}, or a newer one",
            )
        self.end: lines.End | None = None
        """Last line; None before it was read, and at the end of a tape that was cut off."""

    def __iter__(self) -> Iterator[tuple[int, lines.Fact]]:
        newest = -math.inf
        for number, line in self._lines:
            if self.end is not None:
                if line.strip():
                    raise TapeError(number, "it follows the end line, which must be the last line")
                continue
            if not line.strip():
                # The tape was cut off before its end was written to this reserved line.
                continue
            try:
                fact = decoded(_FACT, number, line, "an operation, a connection, a breaker, a map or the end")
            except TapeError:
                if line.endswith(b"\n"):
                    raise
                # The tape was cut off while this line was written.
                return
            at = fact.ended_at if isinstance(fact, lines.Operation) else fact.at
            if at is not None:
                if at < newest:
                    raise TapeError(number, f"its time {at!r} is before that of an earlier line, {newest!r}")
                newest = at
            if isinstance(fact, lines.End):
                self.end = fact
            yield number, fact


_HEADER = msgspec.json.Decoder(lines.Header)
_FACT = msgspec.json.Decoder(lines.Fact)


def decoded(decoder: msgspec.json.Decoder[T], number: int, line: bytes, wanted: str) -> T:
    """Return a line as an object.

    Raises:
        TapeError: the line is not ``wanted``.
    """
    try:
        return decoder.decode(shallow(line))
    except (ValueError, RecursionError, OverflowError) as error:
        raise TapeError(number, f"it must be {wanted}: {one_line(str(error))[:200]}") from None
