"""Checks of a scenario's result against the RFC.

The checks compare three sources: the client's log, its statistics and errors, and the node's logs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TypeVar

from triclinium._cli.demo.recorder import Play
from triclinium._cli.demo.scenarios import SUCCESS
from triclinium_core.explain.explanation import milliseconds

T = TypeVar("T")

RESOLUTION = 1e-6
"""Maximum difference in seconds between two readings of one clock that are computed in different ways."""


@dataclass(frozen=True, slots=True)
class Check:
    """Comparison of a demanded result with the observed one."""

    name: str
    demanded: str
    observed: str
    holds: bool


def check(play: Play) -> list[Check]:
    """Return a check of each requirement of the scenario, whether the requirement is met or not."""
    return [*_of_the_log(play), *_of_the_outcome(play), *_of_the_waits(play), *_of_the_other_words(play)]


def _of_the_log(play: Play) -> Iterator[Check]:
    """Yield checks of the reasons, the retries and the delays in the client's log."""
    scenario, delays = play.scenario, play.delays
    reasons = [decision.reason for decision in play.decisions]
    first, further = reasons[: len(scenario.reasons)], reasons[len(scenario.reasons) :]
    then = f", then any number of {', '.join(sorted(scenario.then))}" if scenario.then else ""
    yield Check(
        "reasons",
        _in_runs(scenario.reasons) + then,
        _in_runs(reasons),
        first == list(scenario.reasons) and scenario.then.issuperset(further),
    )
    # The last decision about a failed operation refuses a retry, so it does not count as one.
    retries = len(scenario.reasons) - (scenario.outcome != SUCCESS)
    yield Check(
        "retries",
        f"at least {retries}" if scenario.then else str(retries),
        str(len(delays)),
        len(delays) >= retries if scenario.then else len(delays) == retries,
    )
    schedule: list[float] = [*scenario.delays_ms[: len(delays)]]
    yield _equal("delays", schedule, [milliseconds(delay) for delay in delays], _in_ms)


def _of_the_outcome(play: Play) -> Iterator[Check]:
    """Yield checks of the caller's result and of the node's log."""
    scenario = play.scenario
    yield _equal("outcome", scenario.outcome, play.outcome)
    if scenario.answer is not None:
        yield _equal("answer", scenario.answer, play.answer)
    yield _equal("frames at the node", scenario.frames, len(play.frames))
    yield _equal("times applied", scenario.applied, play.applied)
    if scenario.prepared:
        yield _equal("times prepared", scenario.prepared, play.prepared)


def _of_the_waits(play: Play) -> Iterator[Check]:
    """Yield a check that the node's clock shows the client's delays, if there are retries and each sent a frame."""
    frames, delays = play.frames, play.delays
    if delays and len(frames) == len(delays) + 1:
        waits = [after.now - before.now for before, after in pairwise(frames)]
        yield Check(
            "waits by the node's clock",
            f"at least {_in_ms([milliseconds(delay) for delay in delays])}",
            _in_ms([milliseconds(wait) for wait in waits]),
            all(wait >= delay - RESOLUTION for wait, delay in zip(waits, delays, strict=True)),
        )


def _of_the_other_words(play: Play) -> Iterator[Check]:
    """Yield checks that the client's statistics and error agree with its log."""
    context, decisions = play.context, play.decisions
    retried = Counter(decision.reason for decision in decisions if decision.delay is not None and decision.dispatches)
    yield _equal("statistics", retried, Counter(play.retries_by_reason), _in_sum)
    if context is not None:
        reasons = sorted({decision.reason for decision in decisions})
        logged = retried.total(), reasons, decisions[-1].reason if decisions else None
        reported = context.retry_attempts, sorted(context.retry_reasons), context.refused_reason
        yield _equal("error context", logged, reported, lambda story: _story(*story))


def _equal(name: str, demanded: T, observed: T, shown: Callable[[T], str] = str) -> Check:
    return Check(name, shown(demanded), shown(observed), demanded == observed)


def _in_runs(reasons: Sequence[str]) -> str:
    runs = [(reason, len([*run])) for reason, run in groupby(reasons)]
    return ", ".join(str(reason) if number == 1 else f"{number} x {reason}" for reason, number in runs) or "none"


def _in_sum(retries: Mapping[str, int]) -> str:
    return ", ".join(f"{number} x {reason}" for reason, number in sorted(retries.items())) or "no retries"


def _in_ms(numbers: Sequence[float]) -> str:
    return f"{', '.join(f'{number:g}' for number in numbers)} ms" if numbers else "none"


def _story(attempts: int, reasons: Sequence[str], refused: str | None) -> str:
    return f"{attempts} retries for {', '.join(reasons) or 'nothing'}, refused for {refused or 'nothing'}"
