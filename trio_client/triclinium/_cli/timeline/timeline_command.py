"""``triclinium timeline``: the command, its options, and the choice of the output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import click

from triclinium._cli._input import WholeNumber, WrongInput
from triclinium._cli._tape_file import TAPE, facts_of, pieces_of
from triclinium._cli.timeline.show import Picture, Screen
from triclinium_core.decision_tape.lines import Fact
from triclinium_core.shown import json_text
from triclinium_core.timeline import Selection, Summary, Timeline, connection_timeline, timelines

DEFAULT_SELECTION = Selection(troubled=True, slowest=10)
SLOWEST_MAX = 1_000
DRAWN_MAX = 20
"""Maximum number of timelines in a picture."""

EPILOG = """\b
Examples:
  triclinium timeline client.tape
  triclinium timeline client.tape --slowest 3 --failed
  triclinium timeline client.tape --token 1204 --svg write.svg
  triclinium timeline client.tape --connection 5 --json

Several selections together show the operations that fulfil all of them. Without a selection, the command shows the
slowest ten of the operations that failed or had a failed attempt, and a summary of the tape.

JSON: one object per line. "operation" has the fields of the tape except the steps, or "connection" the stream, node and
attempts; "seconds" is the duration; "notes" are sentences; "rows" are the events, oldest first: "after" (seconds since
the first row), "source" (caller, client, network, node), "text", "decided" (the decision in words, or empty) and "fact"
(the step or event as on the tape). Without a selection, the last object has the "summary".

Exit status: 0 if a timeline or the summary is shown; 1 if nothing on the tape matches the selection; 2 if the tape
cannot be read, the picture cannot be written, or an option is invalid.
"""


class NothingMatches(click.ClickException):
    """Nothing on the tape matches the selection."""

    exit_code = 1


@click.command(epilog=EPILOG, short_help="Show what happened to operations on a tape.")
@TAPE
@click.option("--token", type=WholeNumber(min=0), metavar="N", help="Show the operation with this token.")
@click.option("--key", metavar="PSEUDONYM", help="Show the operations on the key with this pseudonym.")
@click.option("--failed", is_flag=True, help="Show the operations that failed or reached a time limit of the caller.")
@click.option("--slowest", type=WholeNumber(min=1, max=SLOWEST_MAX), metavar="N", help="Show only the N slowest.")
@click.option(
    "--connection", type=WholeNumber(min=0), metavar="STREAM", help="Show a connection instead, by its stream."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per operation.")
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help=f"Also draw a picture, of at most {DRAWN_MAX} timelines.",
)
def timeline(
    *,
    tape: BinaryIO,
    token: int | None,
    key: str | None,
    failed: bool,
    slowest: int | None,
    connection: int | None,
    as_json: bool,
    svg: Path | None,
) -> None:
    """Show what happened to operations and requests on TAPE.

    Each timeline has the attempts, the nodes, the events, the rules that decided, the delays and the result, and what
    happened to the connections in the meantime.
    """
    if key is not None and re.fullmatch("[0-9a-f]{32}", key) is None:
        raise WrongInput(f"--key {key!r} must be a pseudonym: 32 hexadecimal digits in lower case")
    given = Selection(token, key, failed, slowest=slowest)
    is_default = given == Selection() and connection is None
    if connection is not None and given != Selection():
        raise WrongInput("--connection shows a connection, not operations; omit the other selections")
    summary, screen, picture, shown = Summary(), Screen(), Picture(), 0
    with pieces_of(tape) as (kind, pieces):
        reader = facts_of(kind, pieces)
        facts = summary.counted(fact for _, fact in reader)
        for found in _chosen(facts, DEFAULT_SELECTION if is_default else given, connection):
            shown += 1
            if as_json:
                click.echo(json_text(found.to_json()))
            else:
                screen.timeline(found)
            if svg is not None and shown <= DRAWN_MAX:
                picture.timeline(found)
    if is_default and as_json:
        click.echo(json_text(summary.to_json()))
    sentences = [*(summary.sentences() if is_default else ()), *filter(None, [summary.missing])]
    if sentences and not as_json:
        screen.sentences(sentences)
    if not shown and not is_default:
        raise NothingMatches(f"nothing on the tape {tape.name!r} matches; omit the selection for a summary")
    if svg is not None:
        picture.sentences(sentences + [f"{shown - DRAWN_MAX} more timelines are not drawn."] * (shown > DRAWN_MAX))
        _write(svg, picture.svg(tape.name))


def _chosen(facts: Iterable[Fact], selection: Selection, connection: int | None) -> Iterator[Timeline]:
    if connection is None:
        yield from timelines(facts, selection)
    elif (found := connection_timeline(facts, connection)) is not None:
        yield found


def _write(path: Path, svg: str) -> None:
    try:
        path.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise WrongInput(f"--svg {str(path)!r} cannot be written: {error.strerror or error}") from error
