"""``triclinium replay``: the command, and the output for each kind of tape."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import unified_diff
from typing import BinaryIO

import click

from triclinium._cli._tape_file import TAPE, pieces_of, warn_of_version
from triclinium_core.decision_tape import lines
from triclinium_core.decision_tape.reading import TapeReader
from triclinium_core.decision_tape.replay import Difference, replay as replay_operation
from triclinium_core.event_tape.replay import replay as replay_events
from triclinium_core.shown import printable
from triclinium_core.timeline import decision_words

DIFFERENCE = 1
"""Exit status after a difference."""


@click.command(short_help="Repeat the decisions on a tape, and show the first difference.")
@TAPE
def replay(*, tape: BinaryIO) -> None:
    """Feed the events on TAPE to this version of the client again, and compare its decisions.

    TAPE is a file that a client wrote, or - for standard input. A decision tape is compared decision by decision, an
    event tape action by action. User code, such as a retry strategy, is not called: the tape has its results. Nothing
    is sent. A tape of another version of the library is replayed with a warning.

    Exit status: 0 if everything agrees, 1 after the first difference, 2 if the tape cannot be read.
    """
    with pieces_of(tape) as (kind, pieces):
        _REPLAYS.get(kind, _replay_decisions)(pieces)


def _replay_decisions(pieces: Iterable[bytes]) -> None:
    reader = TapeReader(pieces)
    warn_of_version(reader.header.core)
    operations = decisions = 0
    for number, fact in reader:
        if not isinstance(fact, lines.Operation):
            continue
        difference = replay_operation(fact)
        if difference is not None:
            _show_difference(number, fact, difference)
            sys.exit(DIFFERENCE)
        operations += 1
        decisions += sum(not isinstance(step, lines.Sent) for step in fact.steps)
    if reader.end is None:
        click.echo("the tape was cut off: it has no last line", err=True)
    click.echo(f"agreement: {decisions} decisions about {operations} operations and requests")


def _show_difference(number: int, operation: lines.Operation, difference: Difference) -> None:
    click.echo(f"difference: line {number}, {operation.name} with token {operation.token}, event {difference.step + 1}")
    for title, step in (("the tape", difference.recorded), ("this version", difference.replayed)):
        if step is None:
            words, clause = "the event is impossible", None
        elif isinstance(step, lines.Sent):
            words, clause = "no decision", None
        else:
            words, clause = decision_words(step, operation.strategy.name), step.decision.clause
        click.echo(f"  {title}: {words}" + (f" ({clause})" if clause else ""))


def _replay_events(pieces: Iterable[bytes]) -> None:
    result = replay_events(pieces)
    warn_of_version(result.core)
    if result.ending is not None:
        click.echo(f"the recording ended early: {printable(result.ending)}", err=True)
    difference = result.difference
    if difference is None:
        click.echo(f"agreement: {result.calls} calls of the machine return the same actions")
        return
    click.echo(f"difference after {result.calls} calls: line {difference.line}, {printable(difference.call)}")
    recorded, replayed = difference.around()
    for line in unified_diff(recorded, replayed, "the tape", "this version", lineterm=""):
        if not line.startswith("@@"):
            click.echo(printable(line))
    sys.exit(DIFFERENCE)


_REPLAYS: Mapping[str, Callable[[Iterable[bytes]], None]] = {"events": _replay_events}
"""Function that replays a tape and prints the result, by the kind in its header. Other kinds are read as decisions."""
