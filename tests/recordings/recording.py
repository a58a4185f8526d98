"""Recording of all events and actions of the client machines in a simulated history."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from tests.recordings.description import described
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract.couchbase import Action, Event
from triclinium_core.testing.simulation.history import SeedResult, play

Spread = Callable[[Callable[[int], Sequence[str]], Iterable[int]], Iterable[Sequence[str]]]
"""Function that calls another for each seed and yields the results in order: ``map``, or one with processes."""


def recorded(seed: int, play: Callable[[int], SeedResult] = play) -> list[str]:
    """Return the lines of one history: ``seed N``, one line for each event and each of its actions, and the end.

    The line of an event begins with the instant and the number of the client. The line of an action begins with a tab.
    """
    lines = [f"seed {seed}"]
    with _recording(lines):
        result = play(seed)
    lines.append(f"end: {result.law if result.law is not None else 'every law holds'}")
    return lines


def write(path: Path, seeds: Iterable[int], spread: Spread = map) -> None:
    """Write the lines of several histories to a compressed file."""
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as file:
        for lines in spread(recorded, seeds):
            file.writelines(f"{line}\n" for line in lines)


@contextmanager
def _recording(lines: list[str]) -> Iterator[None]:
    handle = ClientMachine.handle
    numbers = dict[ClientMachine, int]()

    def handle_and_record(machine: ClientMachine, event: Event, now: float) -> Sequence[Action]:
        number = numbers.setdefault(machine, len(numbers))
        lines.append(f"{now!r} client {number} {described(event)}")
        actions = handle(machine, event, now)
        lines.extend(f"\t{described(action)}" for action in actions)
        return actions

    with patch.object(ClientMachine, "handle", handle_and_record):
        yield
