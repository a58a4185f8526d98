"""File of a tape: private, bounded, and with a reserved last line. Appending blocks, so a thread does it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from os import pwrite
from pathlib import Path
from threading import get_ident

MODE = 0o600
END_SIZE_MAX = 200
"""Maximum size of the last line in bytes. The file always has this space after the last fact, so that a full disk
cannot prevent the last line."""
_RESERVE = b" " * (END_SIZE_MAX - 1) + b"\n"


def create(path: Path, *, replace: bool = True) -> int:
    """Create a file that only its owner can read, and return its descriptor.

    Args:
        replace: whether to empty an existing file.

    Raises:
        OSError: the file cannot be created, is a symbolic link or not a regular file, or exists although ``replace`` is
            False.
    """
    disposition = os.O_TRUNC if replace else os.O_EXCL
    # O_NONBLOCK: otherwise, opening a pipe would wait for a reader.
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | disposition
    descriptor = os.open(path, flags, MODE)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        os.fchmod(descriptor, MODE)  # An existing file may have another mode.
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class TapeFile:
    """Growing file of a tape.

    Args:
        size_max: maximum size of the file in bytes, including the last line.

    Raises:
        OSError: the file cannot be created or written.
    """

    def __init__(self, path: Path, *, size_max: int) -> None:
        self.path: Path = path
        self._file = os.fdopen(create(path), "wb", buffering=0)
        """File object, whose finalizer closes the file if the cluster is never opened."""
        self._size_max = size_max
        self._end = 0
        """Number of bytes before the reserved line."""
        self.is_finished: bool = False
        """Whether the file is closed."""
        try:
            self._append(b"")
        except OSError:
            self._file.close()
            raise

    def append(self, lines: bytes) -> int:
        """Append complete lines, or as many as the size of the file permits. Return the number of lines left out.

        Raises:
            OSError: the lines could not be written. The file still ends before them.
        """
        room = self._size_max - END_SIZE_MAX - self._end
        fitting = lines if len(lines) <= room else lines[: lines.rfind(b"\n", 0, room) + 1]
        self._append(fitting)
        return lines.count(b"\n", len(fitting))

    def _append(self, lines: bytes) -> None:
        data = memoryview(lines + _RESERVE)
        at = self._end
        while data:
            written = pwrite(self._file.fileno(), data, at)
            data, at = data[written:], at + written
        self._end += len(lines)

    def finish(self, end: bytes) -> None:
        """Write the last line over the reserved one, and close the file.

        Raises:
            OSError: the line cannot be written. The file is closed.
        """
        assert len(end) <= END_SIZE_MAX, "the last line fits into its reserve"
        self.is_finished = True
        try:
            pwrite(self._file.fileno(), end, self._end)
            os.ftruncate(self._file.fileno(), self._end + len(end))
        finally:
            self._file.close()


def save(path: Path, pieces: Iterable[bytes], *, replace: bool) -> None:
    """Write a complete file. A reader of an existing file sees the old contents or the new.

    Args:
        replace: whether to replace an existing file.

    Raises:
        OSError: the file cannot be written, or exists although ``replace`` is False. Nothing remains of a new file.
    """
    # Several clusters may save to this path at the same time, each in its own thread.
    partial = path.parent / f".{path.name}.{os.getpid()}-{get_ident()}.partial" if replace else path
    descriptor = create(partial, replace=replace)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(pieces)
        if replace:
            partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
