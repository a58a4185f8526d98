"""Recording of the golden tapes: each scenario of the demo, with a separate node and client."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import trio

from triclinium._cli.demo.checks import check
from triclinium._cli.demo.scenarios import SCENARIOS, DemoScenario
from triclinium._cli.demo.stage import OPTIONS, Stage
from triclinium.tapes import EventTape, Tape
from triclinium_core.options import ClientOptions
from triclinium_core.testing.fault_catalogue import SHORT_ERROR_MAP

NODE_OPTIONS = replace(OPTIONS, error_map=SHORT_ERROR_MAP)
"""Options for small tapes, of which the complete error map would be the larger part."""


def recorded() -> Iterator[tuple[str, bytes]]:
    """Play all scenarios. Yield the name of each, and the tape of its client.

    Raises:
        AssertionError: a scenario does not meet its requirements.
    """
    for scenario in SCENARIOS:
        with tempfile.TemporaryDirectory() as folder, _tapes_in(Path(folder)) as paths:
            trio.run(_play, scenario)
            # Use the newest tape, because the scenario with the wrong password opens a second client.
            yield re.sub(r"[^a-z0-9]+", "_", scenario.name.replace("'", "")), paths[-1].read_bytes()


@contextmanager
def _tapes_in(folder: Path) -> Iterator[list[Path]]:
    """Record each client on a tape in a folder, and yield a list that gets the path of each tape."""
    paths: list[Path] = []

    def make_tape(options: ClientOptions) -> EventTape:
        paths.append(folder / f"{len(paths)}.jsonl")
        return EventTape(paths[-1])

    Tape.make_default = make_tape
    try:
        yield paths
    finally:
        Tape.make_default = None


async def _play(scenario: DemoScenario) -> None:
    async with trio.open_nursery() as nursery:
        stage = Stage(nursery, NODE_OPTIONS)
        async with stage.open():
            play = await stage.play(scenario)
        nursery.cancel_scope.cancel()
    failed = [each for each in check(play) if not each.holds]
    assert [] == failed, scenario.name
