"""Recommendation of a strategy in a few sentences, by a rule over the figures.

If the service recovers with at least one strategy, the rule excludes the strategies with which it does not recover. It
keeps those whose share of failed operations is close to the lowest. Among these, it prefers strategies that retry to
those that send once, because a single failure needs a retry. It recommends the remaining strategy with the lowest peak
load (decision F10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triclinium._cli.simulate.scenario import capacity_of
from triclinium_core.tools.fleet import FleetFigures, Scenario

FAILURES_RATIO = 1.25
"""Maximum ratio of a strategy's share of failures to the lowest: a quarter more is acceptable for a lower load."""
FAILURES_LEAST = 0.001
"""Difference between two shares of failures that the rule ignores: one in a thousand."""
SEND_ONCE = frozenset({"none", "fail_fast"})


@dataclass(frozen=True, slots=True)
class Advice:
    """Recommended strategy, and the reason."""

    strategy: str
    reason: str
    """Reason in complete sentences."""

    def __str__(self) -> str:
        return f"Use {self.strategy}: {self.reason}"


def advise(scenario: Scenario, figures: Sequence[FleetFigures]) -> Advice | None:
    """Return the recommended strategy; None if fewer than two strategies began operations."""
    begun = [found for found in figures if found.totals.begun]
    if len(begun) < 2:
        return None
    recovering = [found for found in begun if has_recovered(scenario, found)]
    good = recovering or begun
    fewest = min(map(_failures, good))
    best = [found for found in good if _failures(found) <= max(fewest * FAILURES_RATIO, fewest + FAILURES_LEAST)]
    chosen = min(best, key=lambda found: (found.strategy in SEND_ONCE, found.peak_sent))
    rival = min(good, key=_failures)
    sentences = [_praise(scenario, chosen, is_last_resort=not recovering)]
    if _percent(rival) != _percent(chosen):
        sentences.append(
            f"{rival.strategy} reaches {_percent(rival)}, with a peak of {rival.peak_sent:,.0f}/s"
            f"{_beyond(scenario, rival)}."
        )
    lost = [found.strategy for found in begun if not has_recovered(scenario, found)]
    if lost and recovering:
        sentences.append(f"{_listed(lost)} {'does' if len(lost) == 1 else 'do'} not recover.")
    return Advice(chosen.strategy, " ".join(sentences))


def has_recovered(scenario: Scenario, found: FleetFigures) -> bool:
    """Return whether the service recovered. True without an outage."""
    return scenario.outage is None or found.recovered_after is not None


def _praise(scenario: Scenario, chosen: FleetFigures, *, is_last_resort: bool) -> str:
    served = f"{_percent(chosen)} of the operations succeed"
    peak = f"at no more than {chosen.peak_sent:,.0f} requests/s"
    if is_last_resort:
        return f"no strategy recovers; with this one, {served}."
    if chosen.strategy in SEND_ONCE:
        return f"retries do not pay off here. {served}, {peak}."
    if scenario.outage is None:
        return f"{served}, {peak}."
    after = found if (found := chosen.recovered_after) else 0.0
    return f"it recovers {f'{after:g} s after the outage' if after else 'immediately'}, and {served}, {peak}."


def _beyond(scenario: Scenario, found: FleetFigures) -> str:
    """Return the peak load as a multiple of the service's capacity, as text; empty below 1.05 or without a capacity."""
    capacity = capacity_of(scenario)
    if capacity is None or found.peak_sent < 1.05 * capacity:
        return ""
    return f", {found.peak_sent / capacity:.1f} times the capacity"


def _failures(found: FleetFigures) -> float:
    return (found.totals.begun - found.totals.succeeded) / found.totals.begun


def _percent(found: FleetFigures) -> str:
    return f"{found.totals.succeeded / found.totals.begun:.1%}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
