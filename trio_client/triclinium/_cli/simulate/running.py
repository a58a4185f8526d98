"""Plays a scenario with several strategies, each in a process of its own where there are processors for it."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context

import click

from triclinium_core.testing.fleet import FleetFigures, Scenario, simulate


def simulate_all(
    scenario: Scenario, strategies: Sequence[str], *, seed: int, jobs: int | None = None
) -> Sequence[FleetFigures]:
    """Return the figures of each strategy, in their order; they do not depend on the number of processes.

    Raises:
        click.ClickException: a process died, which it does where memory ends.
    """
    work = partial(_simulate_one, scenario, seed)
    processes = min(jobs if jobs is not None else os.cpu_count() or 1, len(strategies))
    if processes == 1:
        return [work(strategy) for strategy in strategies]
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_prepare_process) as pool:
        try:
            return list(pool.map(work, strategies))
        except BrokenProcessPool as error:
            raise click.ClickException(
                "a process of the simulation died; try fewer clients, or --jobs 1 to have all in one"
            ) from error


def _simulate_one(scenario: Scenario, seed: int, strategy: str) -> FleetFigures:
    return simulate(scenario, strategy, rng=random.Random(seed))


def _prepare_process() -> None:
    # Control-C reaches all processes; only the first has something to say about it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
