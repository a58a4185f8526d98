"""The command ``python -m triclinium_core.testing.simulation``: many histories, or one with all that happens in it.

It touches neither clock nor terminal; whoever runs it passes them in.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from triclinium_core.testing.fakes.nodes import FakeNodes
from triclinium_core.testing.simulation.figures import Figures
from triclinium_core.testing.simulation.hour import MakeNodes, Outcome, play

PROGRAM = "python -m triclinium_core.testing.simulation"
SEEDS_DEFAULT = 200
LAST_STEPS = 40
"""Lines of the history that a failure shows; a replay shows all of them."""
PROGRESS_LINES = 10

Spread = Callable[[Callable[[int], Outcome], Iterable[int]], Iterable[Outcome]]
"""Calls a function for each seed, in order, and yields what it returns: ``map``, or one that uses several processes."""


def main(
    arguments: Sequence[str],
    *,
    clock: Callable[[], float],
    write: Callable[[str], object],
    spread: Callable[[int], Spread] = lambda jobs: map,
    make_nodes: MakeNodes = FakeNodes,
) -> int:
    """Play histories until one breaks a law, and return the exit status: 0, or 1 where one did.

    Args:
        arguments: those of the command line; a wrong one ends the program with a message and status 2.
        clock: monotonic seconds.
        write: takes what is printed, a line at a time.
        spread: by the number of processes that it may use.
        make_nodes: the cluster; a test gives one that lies.
    """
    options = _parser().parse_args(arguments)
    count = options.seeds if options.seeds is not None else 1 if options.seed is not None else SEEDS_DEFAULT
    first = options.seed or 0
    if options.seeds is None and options.seed is not None:
        return _replay(first, make_nodes, write)
    began = clock()
    total = Figures()
    for played, outcome in enumerate(spread(options.jobs)(partial(_play_on, make_nodes), _range(first, count)), 1):
        total.add(outcome.figures)
        if outcome.law is not None:
            write(f"seeds played: {played:,}, in {clock() - began:.1f} s")
            _show_failure(outcome, outcome.timeline[-LAST_STEPS:], write)
            return 1
        if played * PROGRESS_LINES // count > (played - 1) * PROGRESS_LINES // count and played < count:
            write(f"{played:,} of {count:,} seeds, {total.operations:,} operations, {clock() - began:.1f} s")
    _show_success(f"{_seeds(first, count)}: every law holds, after {clock() - began:.1f} s", total, write)
    return 0


def _play_on(make_nodes: MakeNodes, seed: int) -> Outcome:
    outcome = play(seed, make_nodes)
    # Nobody reads what went well, and it may have to travel from another process.
    return outcome if outcome.law is not None else replace(outcome, timeline=())


def _range(first: int, count: int) -> Iterable[int]:
    return range(first, first + count)


def _replay(seed: int, make_nodes: MakeNodes, write: Callable[[str], object]) -> int:
    outcome = play(seed, make_nodes)
    if outcome.law is not None:
        _show_failure(outcome, outcome.timeline, write)
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


def _show_failure(outcome: Outcome, steps: Sequence[str], write: Callable[[str], object]) -> None:
    left_out = len(outcome.timeline) - len(steps)
    write(f"\nseed {outcome.seed} breaks a law:\n  {outcome.law}\n")
    write(f"after {left_out:,} earlier steps:" if left_out else "what happened:")
    for line in steps:
        write(line)
    write(f"\nto see all of it again:\n  {PROGRAM} --seed {outcome.seed}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Plays eventful hours of clients and a fake cluster in virtual time, and holds them to their laws.",
        epilog="The same seed is the same history, everywhere.",
        allow_abbrev=False,
    )
    parser.add_argument("--seeds", type=_positive, metavar="N", help=f"how many histories (default: {SEEDS_DEFAULT})")
    parser.add_argument(
        "--seed", type=_natural, metavar="S", help="the first seed (default: 0); alone: this one, step by step"
    )
    parser.add_argument(
        "--jobs", type=_positive, metavar="J", default=1, help="how many processes share the work (default: 1)"
    )
    return parser


def _natural(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 0")
    return int(text)


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return int(text)
