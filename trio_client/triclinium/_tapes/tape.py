"""Base classes of tapes and recordings. A client that records nothing loads no other module of tapes."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import trio

from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.errors import CouchbaseException, InvalidArgumentException
from triclinium_core.options import ClientOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.shown import shown


class Recording(ABC):
    """Recording of one client.

    Args:
        machine: machine of the client, which records.
    """

    def __init__(self, machine: ClientMachine) -> None:
        self.machine: ClientMachine = machine

    def start(self, nursery: trio.Nursery) -> None:  # noqa: B027  # a recording without tasks needs none
        """Start the background tasks. The driver calls this before the first event."""

    def failed(self, error: CouchbaseException) -> None:  # noqa: B027  # not every recording reacts to errors
        """React to an error that leaves a call."""

    @abstractmethod
    def close(self) -> None:
        """End the recording. The driver calls this after its last event."""

    async def save(self, path: Path) -> None:
        """Save the ring of a decision tape. A checkpoint.

        Raises:
            InvalidArgumentException: the tape is not a ring.
            OSError: the file cannot be written.
        """
        await trio.lowlevel.checkpoint()
        raise InvalidArgumentException(
            "the tape writes its own file, so it cannot be saved; open the cluster with tape=DecisionTape.ring()",
            parameter="tape",
        )

    def pseudonym(self, key: str) -> str:
        """Return the pseudonym of a document's key on the tape.

        Raises:
            InvalidArgumentException: the tape has no pseudonyms.
        """
        raise InvalidArgumentException(
            "the tape has no pseudonyms; open the cluster with a DecisionTape that has pseudonyms=True",
            parameter="tape",
        )


class Tape(ABC):
    """Tape for the argument ``tape`` of ``open_cluster``: a ``DecisionTape`` or an ``EventTape``."""

    make_default: ClassVar[Callable[[ClientOptions], Tape | None] | None] = None
    """Maker of tapes for clients that are opened without one; None for no tapes. Only the pytest plugin sets it."""

    @abstractmethod
    def record(self, options: ClientOptions, *, rng: Random, warn: Callable[[str], None]) -> Recording:
        """Begin to record a new client.

        Args:
            warn: writes a message to the log at WARNING. Any thread may call it.

        Raises:
            InvalidArgumentException: the tape cannot record this client, its file cannot be created, or the machine
                refuses an option.
        """


def path_of(path: object, parameter: str) -> Path:
    """Return the path of a file or folder that a user gave.

    Raises:
        InvalidArgumentException: it is not a path, is empty, or has a character that no path can have.
    """
    given = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    try:
        if isinstance(given, str) and given and b"\0" not in os.fsencode(given):
            return Path(given)
    except UnicodeEncodeError:
        pass
    raise InvalidArgumentException(
        f"{parameter}={shown(path)} must be the path of a file or a folder", parameter=parameter
    )
