"""Command ``python -m triclinium_core.testing.simulation``, which runs many histories, or shows all steps of one.

This module uses neither a clock nor, except for messages of ``argparse``, a terminal; the caller passes them in.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.simulation.chance import Chance
from triclinium_core.testing.simulation.figures import Figures
from triclinium_core.testing.simulation.history import MakeNodes, SeedResult, play
from triclinium_core.testing.tapes import Tapes

REGRESSIONS: Mapping[int, str] = {
    5_007: "a seed address that was no longer a node, and an operation that failed fast",
    29_922_058: "a client without a map, of a cluster in which the document has no node",
    154_160_002: "a breaker that stayed open after an invalid response to its canary",
    182_691_722: "a service that refused connections beside a busy one, and got further ones without a pause",
}
"""Seeds of histories that once broke a law, each with the condition that no earlier history had met."""


PROGRAM = "python -m triclinium_core.testing.simulation"
SEEDS_DEFAULT = 200
DRAWN_SEED_MOST = 999_999_999
"""Largest drawn seed, short enough to read out and type."""
LAST_STEPS = 40
"""Number of lines of the history that a failure shows; a replay shows all lines."""
PROGRESS_LINES = 10

Spread = Callable[[Callable[[int], SeedResult], Iterable[int]], Iterable[SeedResult]]
"""Function that runs a function for each seed and yields the results in order, like ``map``; may use processes."""

KeepTapes = Callable[[Sequence[bytes]], Sequence[str]]
"""Function that writes event tapes to new files, and returns their paths."""


def main(
    arguments: Sequence[str],
    *,
    clock: Callable[[], float],
    write: Callable[[str], object],
    spread: Callable[[int], Spread] = lambda jobs: map,
    make_nodes: MakeNodes = FakeNodes,
    keep_tapes: Callable[[str | None], KeepTapes] = lambda folder: lambda tapes: (),
) -> int:
    """Replay one history, or run histories until one breaks a law. Return the exit status: 0, or 1 after a breach.

    Args:
        arguments: command line arguments; an invalid argument ends the program with a message and status 2.
        clock: returns monotonic seconds.
        write: prints a line.
        spread: returns a ``Spread`` for a number of processes.
        make_nodes: creates the cluster; a test passes a function whose cluster has a defect.
        keep_tapes: returns a ``KeepTapes`` for a folder; None for a temporary one. Default: keep no tapes.
    """
    options = _parser().parse_args(arguments)
    if options.seed is not None and options.seeds is None:
        return _replay(options.seed, make_nodes, write, keep_tapes(options.tapes))
    seeds, title = _chosen(options)
    began = clock()
    total = Figures()
    for played, outcome in enumerate(spread(options.jobs)(partial(_play_on, make_nodes), seeds), 1):
        total.add(outcome.figures)
        if outcome.law is not None:
            write(f"seeds played: {played:,}, in {clock() - began:.1f} s")
            _show_failure(outcome, outcome.timeline[-LAST_STEPS:], write)
            _record(outcome, make_nodes, write, keep_tapes(options.tapes))
            return 1
        if played * PROGRESS_LINES // len(seeds) > (played - 1) * PROGRESS_LINES // len(seeds) and played < len(seeds):
            write(f"{played:,} of {len(seeds):,} seeds, {total.operations:,} operations, {clock() - began:.1f} s")
    _show_success(f"{title}: every law holds, after {clock() - began:.1f} s", total, write)
    return 0


def _chosen(options: argparse.Namespace) -> tuple[Sequence[int], str]:
    """Return the seeds to run, and their title."""
    count = SEEDS_DEFAULT if options.seeds is None else options.seeds
    if options.draw is None:
        first = options.seed or 0
        return range(first, first + count), _seeds(first, count)
    chance = Chance(options.draw)
    drawn = [chance.between(0, DRAWN_SEED_MOST) for _ in range(count)]
    return [*REGRESSIONS, *drawn], f"{len(REGRESSIONS):,} known seeds and {count:,} drawn from {options.draw}"


def _play_on(make_nodes: MakeNodes, seed: int) -> SeedResult:
    outcome = play(seed, make_nodes)
    # Drop the timeline of a successful history: it is not shown, and another process may have to send it.
    return outcome if outcome.law is not None else replace(outcome, timeline=())


def _replay(seed: int, make_nodes: MakeNodes, write: Callable[[str], object], keep_tapes: KeepTapes) -> int:
    outcome = play(seed, make_nodes)
    if outcome.law is not None:
        _show_failure(outcome, outcome.timeline, write)
        _record(outcome, make_nodes, write, keep_tapes)
        return 1
    for line in outcome.timeline:
        write(line)
    _show_success(f"{_seeds(seed, 1)}: every law holds", outcome.figures, write)
    return 0


def _seeds(first: int, count: int) -> str:
    return f"seed {first}" if count == 1 else f"{count:,} seeds, {first} to {first + count - 1}"


def _show_success(title: str, figures: Figures, write: Callable[[str], object]) -> None:
    write(f"\n{title}\n")
    for line in figures.lines():
        write(line)


def _show_failure(outcome: SeedResult, steps: Sequence[str], write: Callable[[str], object]) -> None:
    left_out = len(outcome.timeline) - len(steps)
    write(f"\nseed {outcome.seed} breaks a law:\n  {outcome.law}\n")
    write(f"after {left_out:,} earlier steps:" if left_out else "steps:")
    for line in steps:
        write(line)
    write(f"\nto replay it:\n  {PROGRAM} --seed {outcome.seed}")


def _record(outcome: SeedResult, make_nodes: MakeNodes, write: Callable[[str], object], keep_tapes: KeepTapes) -> None:
    """Run a history again with recorded clients, and keep a tape of each."""
    tapes = Tapes()
    again = play(outcome.seed, make_nodes, tapes.make_machine)
    paths = keep_tapes(tapes.contents())
    if paths:
        write("\nto replay each client alone:")
    for path in paths:
        write(f"  triclinium replay {path}")
    if again.law != outcome.law:
        write(f"with recorded clients, it ends differently: {again.law or 'every law holds'}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Simulate clients and a fake cluster under disruptions, in virtual time, and check every law.",
        epilog="The same seed gives the same history on every machine.",
        allow_abbrev=False,
    )
    parser.add_argument("--seeds", type=_positive, metavar="N", help=f"number of histories (default: {SEEDS_DEFAULT})")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--seed",
        type=_natural,
        metavar="S",
        help="first seed (default: 0); without --seeds, show the steps of this one",
    )
    where.add_argument(
        "--draw", type=_natural, metavar="D", help="draw the seeds from D, after the known seeds that once broke a law"
    )
    parser.add_argument("--jobs", type=_positive, metavar="J", default=1, help="number of processes (default: 1)")
    parser.add_argument(
        "--tapes",
        metavar="DIR",
        help="folder for the event tapes of a history that breaks a law (default: a new temporary folder)",
    )
    return parser


def _natural(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)
