"""Event tapes of the clients in a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.event_tape.recording import RecordedMachine
from triclinium_core.options import ClientOptions
from triclinium_core.retry.backoff import Random


class MakeMachine(Protocol):
    """Function that makes the machine of a client: ``ClientMachine``, or ``Tapes.make_machine``."""

    def __call__(self, options: ClientOptions, *, rng: Random) -> ClientMachine:
        """Return a new machine."""
        ...


class Tapes:
    """Event tapes of several clients, in memory. ``triclinium replay`` and ``replayed`` repeat each of them."""

    def __init__(self) -> None:
        self._tapes: list[list[bytes]] = []

    def make_machine(self, options: ClientOptions, *, rng: Random) -> ClientMachine:
        """Return a new machine that records its events on a new tape."""
        lines: list[bytes] = []
        machine = RecordedMachine(options, rng=rng, write=lines.append)
        self._tapes.append(lines)
        return machine

    def contents(self) -> Sequence[bytes]:
        """Return the bytes of each tape with an event, in the order in which the machines were made."""
        return [b"".join(lines) for lines in self._tapes if len(lines) > 1]
