"""Output of commands, and their exit on lost output or Control-C."""

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
"""Exit status if the output cannot be written, as in sysexits.h; no command uses it for anything else."""

PIPE_CLOSED = 141
"""Exit status if the reader of the output closed the pipe. A shell reports this status if SIGPIPE killed a program."""


class OutputLost(click.ClickException):
    """Standard output cannot be written, for example because the device is full."""

    exit_code = NOT_WRITTEN

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"cannot write to standard output: {cause.strerror or cause}")


class ReaderLeft(OutputLost):
    """The reader of standard output closed the pipe, so the command prints no error."""

    exit_code = PIPE_CLOSED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print nothing."""


class _Descriptor(io.FileIO):
    """File descriptor for writing. After its first failure it discards all data, so that buffers can be flushed."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "wb", closefd=False)
        self._is_lost = False

    def write(self, data: Any) -> int:
        """Write as much as possible.

        Raises:
            OutputLost: this is the first write that fails.
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
    """Make a failed write to standard output raise ``OutputLost`` in the block.

    A character that the encoding lacks is written as an escape. Captured or closed output is not changed.
    """
    plain = sys.stdout
    buffer = getattr(plain, "buffer", None)
    # Without buffering (PYTHONUNBUFFERED), the raw file is directly below the text layer.
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
    """Return text of unknown origin for a console: printable, and never parsed as markup."""
    return Text(printable(text), style)


T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def run_trio(work: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
    """Return the result of ``work(*args)``.

    KeyboardInterrupt and ``OutputLost`` may leave a nursery inside of a group, where click would not recognise them.
    The function raises them without the group, KeyboardInterrupt as ``click.Abort``.

    Raises:
        click.Abort: Control-C.
        OutputLost: the command's output cannot be written.
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
