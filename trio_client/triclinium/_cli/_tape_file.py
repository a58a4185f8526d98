"""Tape in a file: its kind, its bytes, and the facts on a tape of either kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import BinaryIO

import click
import msgspec

from triclinium._cli._input import WrongInput
from triclinium_core import __version__
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.decision_tape.encoding import TapeEncoder, end_line
from triclinium_core.decision_tape.reading import TapeError, TapeReader
from triclinium_core.decision_tape.recorder import FACTS_MAX, DecisionRecorder
from triclinium_core.event_tape.replay import replay as replay_events
from triclinium_core.options import ClientOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.shown import printable

PIECE_SIZE = 256 * 1024
"""Size in bytes of the pieces that are read, and maximum size of a header."""

TAPE = click.argument("tape", type=click.File("rb"))
"""Argument of a command: the file of a tape, or - for standard input."""


class _Kind(msgspec.Struct, frozen=True):
    tape: str = ""


@contextmanager
def pieces_of(file: BinaryIO) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Give the block the kind of a tape from its first line, empty if it has none, and the bytes in pieces.

    Raises:
        WrongInput: the file cannot be read, or the block raised a TapeError.
    """
    name = printable(getattr(file, "name", "<stdin>"))
    try:
        first = file.readline(PIECE_SIZE)
        try:
            kind = msgspec.json.decode(first, type=_Kind).tape
        except (msgspec.MsgspecError, ValueError, RecursionError):
            kind = ""
        yield kind, _continued(first, iter(partial(file.read, PIECE_SIZE), b""))
    except OSError as error:
        raise WrongInput(f"the tape {name} cannot be read: {error.strerror or error}") from error
    except TapeError as error:
        raise WrongInput(printable(f"the tape {name} cannot be read: {error}")) from error


def _continued(first: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def warn_of_version(core: str) -> None:
    """Print a warning on standard error if another version of the core recorded the tape."""
    if core != __version__:
        other = printable(core, 100)
        click.echo(f"triclinium-core {other} recorded this tape, and {__version__} replays it: it may differ", err=True)


def facts_of(kind: str, pieces: Iterable[bytes]) -> TapeReader:
    """Return a reader of the facts on a tape. An event tape is replayed, and the replayed client records the facts.

    Raises:
        TapeError: the tape cannot be read. The message names the line.
    """
    if kind != "events":
        return TapeReader(pieces)
    recorder, machines = DecisionRecorder(FACTS_MAX), list[ClientMachine]()

    def make(options: ClientOptions, *, rng: Random) -> ClientMachine:
        machines.append(ClientMachine(options, rng=rng, recorder=recorder))
        return machines[-1]

    result = replay_events(pieces, make=make)
    if result.difference is not None:
        click.echo(f"the timeline ends at a difference: {printable(str(result.difference))}", err=True)
    encoder = TapeEncoder(recorder)
    facts = [*recorder.facts(), *machines[0].open_calls()]
    return TapeReader([encoder.header(), encoder.facts(facts), end_line("closed", at=recorder.now, lost=recorder.lost)])
