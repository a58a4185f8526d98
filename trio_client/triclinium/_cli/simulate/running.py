"""Simulation of a scenario with several strategies, in several processes by default if there are several processors."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, MutableSequence, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context

import click

from triclinium_core.tools.fleet import FleetFigures, Scenario, simulate

OnProgress = Callable[[float], None]
"""Callback with the number of simulated virtual seconds of all strategies together."""

PROGRESS_SECONDS = 0.1
"""Interval in seconds of the progress reports on several processes."""


def simulate_all(
    scenario: Scenario,
    strategies: Sequence[str],
    *,
    seed: int,
    jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> Sequence[FleetFigures]:
    """Return the figures of each strategy in the given order. The number of processes does not change the figures.

    Raises:
        click.ClickException: a process died, for example because of a lack of memory.
    """
    report = on_progress if on_progress is not None else lambda seconds: None
    processes = min(jobs if jobs is not None else os.cpu_count() or 1, len(strategies))
    if processes > 1:
        return _simulate_in_processes(scenario, strategies, seed, processes, report)
    return [
        simulate(
            scenario,
            strategy,
            rng=random.Random(seed),
            on_progress=lambda now, index=index: report(index * scenario.duration + now),  # type: ignore[misc]
        )
        for index, strategy in enumerate(strategies)
    ]


def _simulate_in_processes(
    scenario: Scenario, strategies: Sequence[str], seed: int, processes: int, report: OnProgress
) -> Sequence[FleetFigures]:
    context = get_context("spawn")
    reached = context.RawArray("d", len(strategies))
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_prepare_process, initargs=(reached,)) as pool:
        try:
            runs = [
                pool.submit(_simulate_one, scenario, seed, strategy, index) for index, strategy in enumerate(strategies)
            ]
            while wait(runs, PROGRESS_SECONDS).not_done:
                report(sum(reached))
            report(sum(reached))
            return [run.result() for run in runs]
        except BrokenProcessPool as error:
            raise click.ClickException(
                "a process of the simulation died; try fewer clients, or --jobs 1 for a single process"
            ) from error


_shared: list[MutableSequence[float]] = []
"""Progress of each strategy, in memory that a process of the pool shares with its parent."""


def _simulate_one(scenario: Scenario, seed: int, strategy: str, index: int) -> FleetFigures:
    return simulate(scenario, strategy, rng=random.Random(seed), on_progress=partial(_shared[-1].__setitem__, index))


def share(reached: MutableSequence[float]) -> None:
    """Store the shared memory to which this process writes its progress."""
    _shared.append(reached)


def _prepare_process(reached: MutableSequence[float]) -> None:
    share(reached)
    heed_interrupts()


def heed_interrupts() -> None:
    """Let Control-C end this process silently. It reaches all processes, and only the main process reports it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
