"""Simulation of several strategies in one process or in several."""

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
    """Thread pool in place of a process pool, with a record of its sizes."""

    sizes: list[int]

    def __init__(
        self,
        size: int,
        *,
        mp_context: BaseContext,
        initializer: Callable[..., None],
        initargs: tuple[MutableSequence[float]],
    ) -> None:
        # Do not use the given initializer, because it sets signal handlers, and only the main thread may set them.
        super().__init__(size, initializer=partial(running.share, *initargs))
        self.sizes.append(size)


class DyingPool(Pool):
    """Pool that fails as if one of its processes had died."""

    def submit(self, *work: object, **options: object) -> Future[Any]:
        raise BrokenProcessPool("a process of the pool is gone")


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> type[Pool]:
    """Return the pool that replaces the process pool."""
    Pool.sizes = []
    monkeypatch.setattr(running, "ProcessPoolExecutor", Pool)
    return Pool


@pytest.mark.parametrize(("jobs", "expected"), [(1, []), (2, [2]), (8, [3])])
def test_processes_are_limited_by_strategies(pool: type[Pool], jobs: int, expected: list[int]) -> None:
    """One job or one strategy needs no pool, a pool has one process per strategy at most, and results stay in order."""
    found = running.simulate_all(SCENARIO, NAMES, seed=1, jobs=jobs)
    running.simulate_all(SCENARIO, ["none"], seed=1, jobs=jobs)

    assert expected == pool.sizes
    assert list(NAMES) == [figures.strategy for figures in found]
    assert running.simulate_all(SCENARIO, NAMES, seed=1, jobs=1) == found


def test_a_process_that_dies_is_an_error(pool: type[Pool], monkeypatch: pytest.MonkeyPatch) -> None:
    """If a process dies, the simulation raises an error with suggestions and does not hang."""
    monkeypatch.setattr(running, "ProcessPoolExecutor", DyingPool)

    with pytest.raises(click.ClickException, match="a process of the simulation died; try fewer clients, or --jobs 1"):
        running.simulate_all(SCENARIO, NAMES, seed=1, jobs=2)


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_counts_all_strategies(pool: type[Pool], jobs: int) -> None:
    """Progress never decreases and ends at the total virtual seconds of all strategies."""
    received: list[float] = []
    running.simulate_all(SCENARIO, NAMES, seed=1, jobs=jobs, on_progress=received.append)

    assert received == sorted(received)
    assert len(NAMES) * SCENARIO.duration == received[-1]
