"""``triclinium simulate --validate``: the published simulations and formulas, repeated and compared.

``triclinium_core.tools.fleet.references`` contains the simulations, the expected figures and the tolerances.
This module distributes the runs over processes, and shows the results.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from itertools import groupby
from multiprocessing import get_context

import click
from rich.console import Console
from rich.text import Text

from triclinium._cli.simulate.running import heed_interrupts
from triclinium_core.tools.fleet.references import REFERENCES, Experiment, Row

OnRun = Callable[[int], None]
"""Callback with the number of finished runs."""

SUBJECT_WIDTH, FIGURE_WIDTH = 28, 8
"""Widths of columns: a line has at most 60 characters."""
DECIMALS_MAX = 6


def count_runs(experiments: Sequence[Experiment] = REFERENCES) -> int:
    """Return the total number of runs."""
    return sum(experiment.runs for experiment in experiments)


def validate(*, seed: int, jobs: int | None = None, on_run: OnRun = lambda runs: None) -> Sequence[Row]:
    """Return all comparisons in the order of the references. The number of processes does not change them.

    Args:
        seed: seed of all runs. The random numbers of each run are derived from it.
        jobs: number of processes; None starts one for each processor.
        on_run: receives the number of finished runs.

    Raises:
        click.ClickException: a process died.
    """
    runs = [(index, run) for index, experiment in enumerate(REFERENCES) for run in range(experiment.runs)]
    processes = min(jobs if jobs is not None else os.cpu_count() or 1, len(runs))
    figures: dict[tuple[int, int], Sequence[float]] = {}
    played = _play_here(runs, seed) if processes == 1 else _play_in_processes(runs, seed, processes)
    for key, found in played:
        figures[key] = found
        on_run(len(figures))
    return [
        row
        for index, experiment in enumerate(REFERENCES)
        for row in experiment.judge([figures[index, run] for run in range(experiment.runs)])
    ]


_Played = tuple[tuple[int, int], Sequence[float]]


def _play(index: int, run: int, seed: int) -> Sequence[float]:
    experiment = REFERENCES[index]
    return experiment.play(random.Random(f"{seed}/{experiment.name}/{run}"))


def _play_here(runs: Sequence[tuple[int, int]], seed: int) -> Iterable[_Played]:
    return (((index, run), _play(index, run, seed)) for index, run in runs)


def _play_in_processes(runs: Sequence[tuple[int, int]], seed: int, processes: int) -> Iterable[_Played]:
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=heed_interrupts) as pool:
        pending = {pool.submit(_play, index, run, seed): (index, run) for index, run in runs}
        try:
            for done in as_completed(pending):
                yield pending[done], done.result()
        except BrokenProcessPool as error:
            raise click.ClickException("a process of the validation died; try --jobs 1 for a single process") from error


def show_rows(rows: Sequence[Row]) -> None:
    """Print a line for each comparison, under the name of its reference, and the verdict at the end."""
    console = Console(highlight=False)
    title = f"{'quantity':{SUBJECT_WIDTH}} {'expected':>8} {'± within':>8} {'got':>8}"
    for reference, found in groupby(sorted(rows, key=_place_of(rows)), key=lambda row: row.reference):
        console.print(Text(reference, style="bold"))
        console.print(Text(title, style="dim"))
        for row in found:
            console.print(Text(_line(row), style="" if row.ok else "red"), soft_wrap=True)
        console.print()
    console.print(Text(verdict(rows)))


def verdict(rows: Sequence[Row]) -> str:
    """Return the number of figures that agree, or that differ, as a sentence."""
    agree = sum(row.ok for row in rows)
    if agree == len(rows):
        return f"All {agree} figures agree."
    wrong = ", ".join(dict.fromkeys(row.reference for row in rows if not row.ok))
    return f"{len(rows) - agree} of {len(rows)} figures differ: {wrong}."


def rows_as_json(rows: Sequence[Row]) -> Sequence[str]:
    """Return each comparison as one line of JSON."""
    return [json.dumps(row.to_json(), ensure_ascii=False) for row in rows]


def _place_of(rows: Sequence[Row]) -> Callable[[Row], int]:
    """Return a function that returns a row's sort key: the position at which the reference of the row occurs first."""
    places = {reference: place for place, reference in enumerate(dict.fromkeys(row.reference for row in rows))}
    return lambda row: places[row.reference]


def _line(row: Row) -> str:
    # Choose the decimals of the row so that its tolerance has at least two significant digits, up to ``DECIMALS_MAX``.
    decimals = 0 if row.tolerance == 0 else min(max(1 - math.floor(math.log10(row.tolerance)), 0), DECIMALS_MAX)
    figures = " ".join(
        f"{_number(value, decimals):>{FIGURE_WIDTH}}" for value in (row.expected, row.tolerance, row.got)
    )
    return f"{row.quantity:{SUBJECT_WIDTH}} {figures} {'ok' if row.ok else 'NO'}"


def _number(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}"
