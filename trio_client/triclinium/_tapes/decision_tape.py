"""Options of a decision tape."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from triclinium._tapes.decision_recording import DecisionRecording, Triggers
from triclinium._tapes.tape import Recording, Tape, path_of
from triclinium._tapes.tape_file import TapeFile
from triclinium_core.checks import check_flag, check_integer
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.decision_tape.recorder import FACTS_MAX, DecisionRecorder
from triclinium_core.errors import CouchbaseException, InvalidArgumentException
from triclinium_core.options import ClientOptions
from triclinium_core.retry.backoff import Random

SIZE_MAX = 64 * 1024 * 1024
SIZE_LEAST = 64 * 1024
_REFUSED_SIGNALS = {"SIGINT", "SIGKILL", "SIGSTOP", "SIGSEGV", "SIGFPE", "SIGILL", "SIGBUS"}
"""Signals that a program cannot receive, that report a fault of the program, or that Trio handles."""


class DecisionTape(Tape):
    """Tape of a cluster's operations, connections and maps, with every retry decision, for ``open_cluster(tape=…)``.

    The tape has only facts on an allow-list. It never has a key, a value, a statement, a parameter, a path, a user
    name, a credential or a message of a server. ``triclinium replay`` and ``triclinium timeline`` read it.

    The client writes these facts to ``path``, in a thread, until the file is full. Only its owner can read the file. A
    slow disk loses facts, and a full disk ends the tape; neither affects a call. The last line states how many facts
    were lost. A tape without that line was cut off, for example by a crash. A file is for one client at a time.

    Args:
        path: file, which is emptied if it exists.
        size_max: maximum size of the file in bytes, at least 65,536. Default: 64 MiB.
        names: write the names of buckets, scopes, collections and indexes. With False, numbers replace them. Default:
            True.
        pseudonyms: write a pseudonym of each document's key: an HMAC under a random key that is in no file.
            ``Cluster.tape_pseudonym`` returns the pseudonym of a document's key, and errors have it in
            ``context.key_pseudonym``. Default: False.

    Raises:
        InvalidArgumentException: an argument is invalid.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, size_max: int = SIZE_MAX, names: bool = True, pseudonyms: bool = False
    ) -> None:
        self.path: Path | None = path_of(path, "path")
        """File that the client writes; None for a ring."""
        self.size_max: int = check_integer(size_max, "size_max", SIZE_LEAST)
        self.names: bool = check_flag(names, "names")
        self.pseudonyms: bool = check_flag(pseudonyms, "pseudonyms")
        self.capacity: int = 100_000
        """Maximum number of facts in memory."""
        self.triggers: Triggers | None = None
        """Events at which a ring is saved; None without any."""

    @classmethod
    def ring(
        cls,
        events: int = 10_000,
        *,
        folder: str | os.PathLike[str] | None = None,
        on_signal: signal.Signals | None = None,
        on_errors: Sequence[type[CouchbaseException]] = (),
        files_max: int = 10,
        names: bool = True,
        pseudonyms: bool = False,
    ) -> DecisionTape:
        """Return a tape that keeps the newest facts in memory; ``Cluster.save_tape`` saves them.

        With a ``folder``, the client also saves the ring at a signal, or when a call fails with one of ``on_errors``.
        The files are ``triclinium-PID-1.tape``, ``-2`` and so on; existing files are skipped. A failure to save is
        logged as a WARNING.

        Args:
            events: maximum number of facts, 1 to 1,000,000. An operation with all its attempts is one fact. Default:
                10,000.
            folder: existing folder of the automatic files. None, the default, for none.
            on_signal: signal at which to save, such as ``signal.SIGUSR1``. Each cluster with this signal saves its own
                ring. Only the program's main thread can open such a cluster. Default: None.
            on_errors: exception classes at which to save, such as ``TimeoutException``. Default: none.
            files_max: maximum number of automatic files; after that many, the client saves no more. Default: 10.
            names, pseudonyms: as for a file.

        Raises:
            InvalidArgumentException: an argument is invalid.
        """
        tape = cls(os.devnull, names=names, pseudonyms=pseudonyms)
        tape.path, tape.capacity = None, check_integer(events, "events", 1, FACTS_MAX)
        check_integer(files_max, "files_max", 1)
        errors = _errors(on_errors)
        if folder is None:
            if on_signal is not None or errors:
                raise InvalidArgumentException(
                    "folder=None must be a folder if on_signal or on_errors saves the ring", parameter="folder"
                )
            return tape
        place = path_of(folder, "folder")
        if not place.is_dir():
            raise InvalidArgumentException(
                f"folder={os.fspath(folder)!r} is not an existing folder; create it first", parameter="folder"
            )
        tape.triggers = Triggers(place, _signal(on_signal), errors, files_max)
        return tape

    def record(self, options: ClientOptions, *, rng: Random, warn: Callable[[str], None]) -> Recording:
        """Create the file, if the tape has one, and begin to record a new client.

        Raises:
            InvalidArgumentException: the file cannot be created, the machine refuses an option, or the tape has a
                signal and the caller is not the main thread.
        """
        if self.triggers is not None and self.triggers.signal is not None:
            _check_thread(self.triggers.signal)
        key = secrets.token_bytes(32) if self.pseudonyms else None
        recorder = DecisionRecorder(self.capacity, names=self.names, pseudonym_key=key)
        machine = ClientMachine(options, rng=rng, recorder=recorder)
        try:
            file = None if self.path is None else TapeFile(self.path, size_max=self.size_max)
        except OSError as error:
            raise InvalidArgumentException(
                f"tape={self!r} cannot be created: {error.strerror}; name a regular file in an existing, "
                "writable folder",
                parameter="tape",
            ) from error
        return DecisionRecording(machine, recorder, file=file, triggers=self.triggers, warn=warn)

    def __repr__(self) -> str:
        return f"DecisionTape({str(self.path)!r})" if self.path is not None else f"DecisionTape.ring({self.capacity})"


def _errors(given: Sequence[type[CouchbaseException]]) -> tuple[type[CouchbaseException], ...]:
    for kind in given:
        if not (isinstance(kind, type) and issubclass(kind, CouchbaseException)):
            raise InvalidArgumentException(
                f"on_errors contains {kind!r:.200}, which is not CouchbaseException or a subclass of it",
                parameter="on_errors",
            )
    return tuple(given)


def _signal(given: signal.Signals | None) -> signal.Signals | None:
    if given is None:
        return None
    if given not in signal.valid_signals() or signal.Signals(given).name in _REFUSED_SIGNALS:
        raise InvalidArgumentException(
            f"on_signal={given!r:.200} must be a signal that the program is free to handle, such as signal.SIGUSR1",
            parameter="on_signal",
        )
    return signal.Signals(given)


def _check_thread(on_signal: signal.Signals) -> None:
    if threading.current_thread() is not threading.main_thread():
        raise InvalidArgumentException(
            f"tape has on_signal={on_signal!r}, which only the main thread receives; omit it, and call save_tape",
            parameter="tape",
        )
