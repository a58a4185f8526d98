"""Several strategies, in one process or in several."""

from __future__ import annotations

from collections.abc import Callable, MutableSequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.context import BaseContext
from typing import Any

import click
import pytest

from triclinium._cli.simulate import running
from triclinium_core.tools.fleet import Fleet, Scenario, SimulatedService

SCENARIO = Scenario(fleet=Fleet(clients=9, period=1.0), service=SimulatedService(capacity=20.0), duration=3.0)
NAMES = ("standard", "none", "best_effort")


class Pool(ThreadPoolExecutor):
    """Stands in for a pool of processes, and remembers how large it was."""

    sizes: list[int]

    def __init__(
        self,
        size: int,
        *,
        mp_context: BaseContext,
        initializer: Callable[..., None],
        initargs: tuple[MutableSequence[float]],
    ) -> None:
        # Only a main thread may set what a signal does.
        super().__init__(size, initializer=partial(running.share, *initargs))
        self.sizes.append(size)


class DyingPool(Pool):
    """One whose processes die."""

    def submit(self, *work: object, **options: object) -> Future[Any]:
        raise BrokenProcessPool("one of them is gone")


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> type[Pool]:
    """Return the pool that is used instead."""
    Pool.sizes = []
    monkeypatch.setattr(running, "ProcessPoolExecutor", Pool)
    return Pool


@pytest.mark.parametrize(("jobs", "expected"), [(1, []), (2, [2]), (8, [3])])
def test_no_more_processes_than_there_is_work_for(pool: type[Pool], jobs: int, expected: list[int]) -> None:
    """And none at all for one job or one strategy; strategies keep their order."""
    found = running.simulate_all(SCENARIO, NAMES, seed=1, jobs=jobs)
    running.simulate_all(SCENARIO, ["none"], seed=1, jobs=jobs)

    assert expected == pool.sizes
    assert list(NAMES) == [figures.strategy for figures in found]
    assert running.simulate_all(SCENARIO, NAMES, seed=1, jobs=1) == found


def test_a_process_that_dies_is_told(pool: type[Pool], monkeypatch: pytest.MonkeyPatch) -> None:
    """With what may help: nobody waits for it."""
    monkeypatch.setattr(running, "ProcessPoolExecutor", DyingPool)

    with pytest.raises(click.ClickException, match="a process of the simulation died; try fewer clients, or --jobs 1"):
        running.simulate_all(SCENARIO, NAMES, seed=1, jobs=2)


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_counts_all_strategies(pool: type[Pool], jobs: int) -> None:
    """It never goes back, and ends where the virtual seconds of all of them are over."""
    heard: list[float] = []
    running.simulate_all(SCENARIO, NAMES, seed=1, jobs=jobs, on_progress=heard.append)

    assert heard == sorted(heard)
    assert len(NAMES) * SCENARIO.duration == heard[-1]
