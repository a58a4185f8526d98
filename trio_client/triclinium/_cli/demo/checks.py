"""Whether what came of a scenario is what the RFC demands.

Three witnesses are heard: what the client logs, what it counts and puts into its errors, and the node's own command log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from triclinium._cli.demo.recorder import Play
from triclinium._cli.demo.scenarios import SUCCESS
from triclinium_core.explain.explanation import milliseconds

RESOLUTION = 1e-6
"""Seconds by which two readings of one clock may differ when they come by different sums."""


@dataclass(frozen=True, slots=True)
class Check:
    """One demand, and how it was met."""

    name: str
    demanded: str
    observed: str
    holds: bool


def check(play: Play) -> list[Check]:
    """Return every demand of the scenario, held or not."""
    return [*_of_the_log(play), *_of_the_outcome(play), *_of_the_node(play), *_of_the_other_words(play)]


def _of_the_log(play: Play) -> Iterator[Check]:
    """Yield what the client must have logged."""
    demand, delays = play.scenario.demand, play.delays
    reasons = [decision.reason for decision in play.decisions]
    first, further = reasons[: len(demand.reasons)], reasons[len(demand.reasons) :]
    yield Check(
        "reasons",
        _in_runs(demand.reasons) + (f", then any number of {', '.join(sorted(demand.then))}" if demand.then else ""),
        _in_runs(reasons),
        first == list(demand.reasons) and demand.then.issuperset(further),
    )
    # The last decision about an operation that fails is the one that refuses a retry.
    retries = len(demand.reasons) - (demand.outcome != SUCCESS)
    yield Check(
        "retries",
        f"at least {retries}" if demand.then else str(retries),
        str(len(delays)),
        len(delays) >= retries if demand.then else len(delays) == retries,
    )
    schedule, told = [*demand.delays_ms[: len(delays)]], [milliseconds(delay) for delay in delays]
    yield Check("delays", _in_ms(schedule), _in_ms(told), schedule == told)


def _of_the_outcome(play: Play) -> Iterator[Check]:
    demand = play.scenario.demand
    yield Check("outcome", demand.outcome, play.outcome, demand.outcome == play.outcome)
    if demand.answer is not None:
        yield Check("answer", str(demand.answer), str(play.answer), demand.answer == play.answer)


def _of_the_node(play: Play) -> Iterator[Check]:
    """Yield what only the node's log can tell."""
    demand, frames, delays = play.scenario.demand, play.frames, play.delays
    yield Check("frames at the node", str(demand.frames), str(len(frames)), demand.frames == len(frames))
    yield Check("times applied", str(demand.applied), str(play.applied), demand.applied == play.applied)
    if delays and len(frames) == len(delays) + 1:
        # Every retry sent a frame, so the node can tell whether the client has waited as long as it says.
        waits = [after.now - before.now for before, after in pairwise(frames)]
        yield Check(
            "waits by the node's clock",
            f"at least {_in_ms([milliseconds(delay) for delay in delays])}",
            _in_ms([milliseconds(wait) for wait in waits]),
            all(wait >= delay - RESOLUTION for wait, delay in zip(waits, delays, strict=True)),
        )


def _of_the_other_words(play: Play) -> Iterator[Check]:
    """Yield whether the client says the same in its statistics and its error as in its log."""
    retried = Counter(decision.reason for decision in play.decisions if decision.delay is not None)
    counted = Counter(play.retries_by_reason)
    yield Check("statistics", _in_sum(retried), _in_sum(counted), retried == counted)
    if play.context is not None:
        context, decisions = play.context, play.decisions
        logged = len(play.delays), sorted(retried), decisions[-1].reason if decisions else None
        told = context.retry_attempts, sorted(context.retry_reasons), context.refused_reason
        yield Check("error context", _story(*logged), _story(*told), logged == told)


def _in_runs(reasons: Sequence[str]) -> str:
    runs = [(reason, len([*run])) for reason, run in groupby(reasons)]
    return ", ".join(str(reason) if number == 1 else f"{number} x {reason}" for reason, number in runs) or "none"


def _in_sum(retries: Mapping[str, int]) -> str:
    return ", ".join(f"{number} x {reason}" for reason, number in sorted(retries.items())) or "no retries"


def _in_ms(numbers: Sequence[float]) -> str:
    return f"{', '.join(f'{number:g}' for number in numbers)} ms" if numbers else "none"


def _story(attempts: int, reasons: Sequence[str], refused: str | None) -> str:
    return f"{attempts} retries for {', '.join(reasons) or 'nothing'}, refused for {refused or 'nothing'}"
