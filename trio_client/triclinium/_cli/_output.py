"""Output of commands, and their exit when it is lost or on Control-C."""

from __future__ import annotations

import io
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, TypeVar, TypeVarTuple

import click
import trio
from rich.text import Text

from triclinium_core.shown import printable

NOT_WRITTEN = 74
"""Exit status where the output could not be written, as in sysexits.h; no command says anything else with it."""

NOBODY_READS = 141
"""Exit status where the reader of the output has left: that of a program which SIGPIPE ends, as a shell tells it."""


class OutputLost(click.ClickException):
    """Standard output takes nothing any more: the device is full, say."""

    exit_code = NOT_WRITTEN

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"standard output cannot be written: {cause.strerror or cause}")


class ReaderLeft(OutputLost):
    """The reader of standard output has left and has seen enough, so nothing is printed."""

    exit_code = NOBODY_READS

    def show(self, file: IO[Any] | None = None) -> None:
        """Print nothing."""


class _Descriptor(io.FileIO):
    """A file descriptor that is written to; after its first failure everything vanishes, so that buffers can be flushed."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "wb", closefd=False)
        self._is_lost = False

    def write(self, data: Any) -> int:
        """Write what fits.

        Raises:
            OutputLost: nothing does, for the first time.
        """
        if not self._is_lost:
            try:
                return super().write(data)
            except OSError as error:
                self._is_lost = True
                raise (ReaderLeft if isinstance(error, BrokenPipeError) else OutputLost)(error) from error
        return memoryview(data).nbytes


@contextmanager
def checked_output() -> Iterator[None]:
    """Have writing to standard output raise ``OutputLost`` in the block, and nothing else.

    What its encoding has no character for is written as an escape. Output that is captured, or closed, stays as it is.
    """
    plain = sys.stdout
    buffer = getattr(plain, "buffer", None)
    # Without buffering (PYTHONUNBUFFERED) the descriptor stands right below the text.
    if not isinstance(plain, io.TextIOWrapper) or type(getattr(buffer, "raw", buffer)) is not io.FileIO:
        yield
        return
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Descriptor(plain.fileno())),
        encoding=plain.encoding,
        errors="backslashreplace",
        line_buffering=plain.line_buffering,
    )
    try:
        yield
    finally:
        sys.stdout = plain


def plain(text: str, style: str = "") -> Text:
    """Return foreign text for a console: printable, and never parsed as markup."""
    return Text(printable(text), style)


T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def run_trio(work: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
    """Return what ``work(*args)`` returns.

    Two exceptions may leave a nursery in a group, where nobody would recognise them, and are taken out of it.

    Raises:
        click.Abort: Control-C.
        OutputLost: what the command prints cannot be written.
    """
    ending: Exception
    try:
        return trio.run(work, *args)
    except* KeyboardInterrupt:
        ending = click.Abort()
    except* OutputLost as group:
        ending = group
        while isinstance(ending, ExceptionGroup):
            ending = ending.exceptions[0]
    raise ending
