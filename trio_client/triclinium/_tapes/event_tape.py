"""Event tape in a file: every event of a client, for tests and debugging."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from ipaddress import ip_address
from pathlib import Path

from triclinium._tapes.tape import Recording, Tape
from triclinium._tapes.tape_file import create
from triclinium_core import errors
from triclinium_core.checks import check_flag, check_type
from triclinium_core.event_tape.recording import RecordedMachine
from triclinium_core.kv.topology.connection_string import parse_connection_string
from triclinium_core.options import ClientOptions
from triclinium_core.retry.backoff import Random


class EventTape(Tape):
    """Exact tape of a client in a new file. ``triclinium replay`` repeats the complete client from it.

    Treat the file as a core dump: it contains documents, keys, statements and credentials. Its mode is 0600. The call
    to ``open_cluster`` creates it, and never overwrites a file. Each event is written before the client acts on it. If
    that fails, the tape ends with the last complete event, the logger ``triclinium.tape`` logs one WARNING, and the
    client continues without a tape.

    Pass the tape to ``open_cluster`` as ``tape``. A tape is for one client.

    Args:
        path: path of the file. It must not exist.
        contains_secrets: whether the file may contain credentials and data of a cluster that is not on this machine.
            Default: False, which refuses every cluster whose connection string has a host other than ``localhost``,
            127.0.0.0/8 and ::1.

    Raises:
        InvalidArgumentException: ``path`` is not a path, or ``contains_secrets`` is not a bool.
    """

    def __init__(self, path: str | os.PathLike[str], *, contains_secrets: bool = False) -> None:
        check_type(path, "path", str, os.PathLike)
        self.path: Path = Path(path)
        self._contains_secrets = check_flag(contains_secrets, "contains_secrets")

    def __repr__(self) -> str:
        return f"EventTape({str(self.path)!r})"

    def record(self, options: ClientOptions, *, rng: Random, warn: Callable[[str], None]) -> Recording:
        """Create the file, and begin to record a new client.

        Raises:
            InvalidArgumentException: the cluster is not on this machine and ``contains_secrets`` is False, the file
                exists or cannot be created, or the machine refuses an option.
        """
        distant = distant_host(options)
        if distant is not None and not self._contains_secrets:
            raise errors.InvalidArgumentException(
                f"tape={self!r} would contain credentials and data of {distant}, which is not this machine; pass "
                "contains_secrets=True, and treat the file as a core dump",
                parameter="tape",
            )
        try:
            file = EventFile(self.path, warn)
        except (OSError, ValueError) as error:
            raise errors.InvalidArgumentException(
                f"tape={self!r} cannot be created: {error}; name a new file in an existing, writable folder",
                parameter="tape",
            ) from error
        try:
            machine = RecordedMachine(options, rng=rng, write=file.write)
        except BaseException:
            file.remove()
            raise
        return EventRecording(machine, file)


class EventRecording(Recording):
    """Machine that records its events, and their file."""

    def __init__(self, machine: RecordedMachine, file: EventFile) -> None:
        super().__init__(machine)
        self._file = file

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def distant_host(options: ClientOptions) -> str | None:
    """Return the first host of the connection string that is not this machine; None without such a host."""
    addresses = parse_connection_string(options.connection_string).addresses
    return next((address.host for address in addresses if not _is_loopback(address.host)), None)


def _is_loopback(host: str) -> bool:
    if host.lower().removesuffix(".") == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class EventFile:
    """New file that only its owner can read. A failed write ends it.

    Raises:
        OSError: the file exists or cannot be created.
    """

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        self._path = path
        self._warn = warn
        self._size = 0
        self._file = FileIO(create(path, replace=False), "w")

    def write(self, line: bytes) -> None:
        """Write a line; after a failed write, do nothing."""
        if self._file.closed:
            return
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            # A partial line would make the whole tape unreadable.
            with suppress(OSError):
                self._file.truncate(self._size)
            self.close()
            self._warn(f"the event tape {self._path} ends early: {error.strerror or error}")
        else:
            self._size += len(line)

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()

    def remove(self) -> None:
        """Close the file, and delete it."""
        self.close()
        with suppress(OSError):
            self._path.unlink()
