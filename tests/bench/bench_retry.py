"""What retrying costs beside tenacity and stamina: the figures of docs/internals/performance.md.

``uv run pytest tests/bench/bench_retry.py -s`` prints them.

All take turns, in many short rounds on trio, so that whatever else the machine does strikes each of them. Costs are medians
over the rounds, of what is left when the same awaited by hand is taken off. What counts is the ratio, taken within each
round: its median, and the quartiles.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import pytest
import stamina
import tenacity
import trio

import triclinium
from triclinium import StandardRetryStrategy

pytestmark = [pytest.mark.bench, pytest.mark.native]

ROUNDS = 101
CALLS_PER_ROUND = 50
"""So that a round takes a few milliseconds."""
FAILURES = 2
"""Of each call that is retried; the next attempt succeeds."""

Work = Callable[[], Awaitable[object]]

STRATEGY = StandardRetryStrategy(quota_capacity=10**9)
"""With a quota that the failures here do not use up."""
TENACITY = tenacity.AsyncRetrying(
    retry=tenacity.retry_if_exception_type(ConnectionError),
    stop=tenacity.stop_after_attempt(3),
    wait=tenacity.wait_none(),
    reraise=True,
)
STAMINA = stamina.AsyncRetryingCaller(attempts=3, wait_initial=0, wait_max=0, wait_jitter=0).on(ConnectionError)


class Figures(NamedTuple):
    """What one of the others costs in nanoseconds, and how many times as much as ours."""

    ours: float
    theirs: float
    ratio_low: float
    ratio: float
    ratio_high: float


def called(fn: Work) -> Mapping[str, Work]:
    """Return each library's way of calling ``fn``."""

    async def ours() -> None:
        await triclinium.retry(fn, strategy=STRATEGY, on=ConnectionError)

    async def of_tenacity() -> None:
        await TENACITY(fn)

    async def of_stamina() -> None:
        await STAMINA(fn)

    return {"triclinium": ours, "tenacity": of_tenacity, "stamina": of_stamina}


def decorated(fn: Work) -> Mapping[str, Work]:
    """Return ``fn``, decorated by each library."""

    async def plain() -> None:
        await fn()

    return {
        "triclinium": triclinium.retried(strategy=STRATEGY, on=ConnectionError)(plain),
        "tenacity": TENACITY.wraps(plain),
        "stamina": stamina.retry(on=ConnectionError, attempts=3, wait_initial=0, wait_max=0, wait_jitter=0)(plain),
    }


def looped(fn: Work) -> Mapping[str, Work]:
    """Return a loop around ``fn`` of each library."""

    async def ours() -> None:
        async for attempt in triclinium.attempts(STRATEGY, on=ConnectionError):
            with attempt:
                await fn()

    async def of_tenacity() -> None:
        async for attempt in TENACITY:
            with attempt:
                await fn()

    async def of_stamina() -> None:
        async for attempt in stamina.retry_context(
            on=ConnectionError, attempts=3, wait_initial=0, wait_max=0, wait_jitter=0
        ):
            with attempt:
                await fn()

    return {"triclinium": ours, "tenacity": of_tenacity, "stamina": of_stamina}


FORMS = {"call": called, "decorator": decorated, "loop": looped}


async def nothing(seconds: float = 0) -> None:
    """Do nothing, not even a checkpoint."""


async def checkpoint() -> None:
    """Do what any async function of trio does at least."""
    await trio.lowlevel.checkpoint()


def failing() -> Work:
    """Return a function that fails twice, succeeds, and begins again."""
    calls = 0

    async def fail() -> None:
        nonlocal calls
        calls += 1
        if calls % (FAILURES + 1):
            raise ConnectionError

    return fail


def awaited(fn: Work) -> Work:
    """Return a function that does no more than await ``fn``, as each of the others does beside its retries."""

    async def work() -> None:
        await fn()

    return work


def by_hand(fn: Work) -> Work:
    """Return the loop that somebody in a hurry would write; it retries and does nothing else."""

    async def work() -> None:
        for _ in range(FAILURES):
            try:
                await fn()
            except ConnectionError:
                await trio.sleep(0)  # noqa: ASYNC115 - as the others do, where it is patched
        await fn()

    return work


async def seconds_of(work: Work) -> float:
    """Return how long a round keeps the processor busy; what others do on it in the meantime does not count."""
    began = time.thread_time()
    for _ in range(CALLS_PER_ROUND):
        await work()
    return time.thread_time() - began


async def measure(works: Mapping[str, Work], bare: Work, share: float = 1.0) -> Mapping[str, Figures]:
    """Return the figures of the others, for ``share`` of what a call costs beyond ``bare``."""
    rounds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        # Taken off before and after, for what it costs varies more than what is left.
        off = await seconds_of(bare)
        seconds = {name: await seconds_of(work) for name, work in works.items()}
        off = (off + await seconds_of(bare)) / 2
        for name, found in seconds.items():
            rounds[name].append((found - off) * share * 1e9 / CALLS_PER_ROUND)
    ours = rounds.pop("triclinium")
    return {
        name: Figures(
            statistics.median(ours),
            statistics.median(theirs),
            *statistics.quantiles([other / own for own, other in zip(ours, theirs, strict=True)], n=4),
        )
        for name, theirs in rounds.items()
    }


def show(title: str, found: Mapping[str, Mapping[str, Figures]]) -> None:
    """Print a table."""
    lines = [f"\n{title}: ns, medians of {ROUNDS} rounds; ratio: median (quartiles)"]
    lines += ["| form | triclinium | tenacity | ratio | stamina | ratio |", "| --- | --- | --- | --- | --- | --- |"]
    for form, figures in found.items():
        cells = [f"{figures['tenacity'].ours:.0f}"]
        for ours, theirs, low, ratio, high in figures.values():
            assert ours > 0
            cells += [f"{theirs:.0f}", f"{ratio:.1f} ({low:.1f} to {high:.1f})"]
        lines.append(f"| {form} | {' | '.join(cells)} |")
    sys.stdout.write("\n".join(lines) + "\n")


@pytest.mark.parametrize("bare", [nothing, checkpoint])
async def test_a_success_is_cheaper(bare: Work) -> None:
    """Beyond what is awaited, a call that succeeds at once costs a fifth at most in half of the rounds."""
    found = {form: await measure(works(bare), awaited(bare)) for form, works in FORMS.items()}
    show(f"a success, beyond {bare.__name__}", found)

    assert all(figures.ratio > 5 for form in found.values() for figures in form.values())


async def test_a_retry_is_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond raising, catching and sleeping, which all do, a retry costs half at most in three rounds of four and more."""
    monkeypatch.setattr(trio, "sleep", nothing)
    found = {
        form: await measure(works(failing()), by_hand(failing()), share=1 / FAILURES) for form, works in FORMS.items()
    }
    show("a retry, with its share of a success, sleeping patched out", found)

    assert all(figures.ratio_low > 2 for form in found.values() for figures in form.values())
