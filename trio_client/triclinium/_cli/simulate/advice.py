"""Recommendation of a strategy in a sentence or two, by a rule over the figures.

A strategy that does not recover is out, where any recovers. Of the others those count that fail for little more
operations than the best; of these, one that retries goes before one that sends once, since a single failure wants a
retry; then the one with the lowest peak of load is taken (decision F10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triclinium._cli.simulate.scenario import capacity_of
from triclinium_core.tools.fleet import FleetFigures, Scenario

FAILURES_RATIO = 1.25
"""A strategy with a quarter more failures than the best one counts as good, if it loads the service less."""
FAILURES_LEAST = 0.001
"""One in a thousand is not told from none."""
SEND_ONCE = frozenset({"none", "fail_fast"})


@dataclass(frozen=True, slots=True)
class Advice:
    """What to take, and the reason."""

    strategy: str
    reason: str
    """Whole sentences."""

    def __str__(self) -> str:
        return f"Take {self.strategy}: {self.reason}"


def advise(scenario: Scenario, figures: Sequence[FleetFigures]) -> Advice | None:
    """Return which strategy to take; None where there is nothing to choose from."""
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
            f"{rival.strategy} gets {_percent(rival)}, for a peak of {rival.peak_sent:,.0f}/s"
            f"{_beyond(scenario, rival)}."
        )
    lost = [found.strategy for found in begun if not has_recovered(scenario, found)]
    if lost and recovering:
        sentences.append(f"{_listed(lost)} {'does' if len(lost) == 1 else 'do'} not recover.")
    return Advice(chosen.strategy, " ".join(sentences))


def has_recovered(scenario: Scenario, found: FleetFigures) -> bool:
    """Tell whether the service came back; without an outage it was never away."""
    return scenario.outage is None or found.recovered_after is not None


def _praise(scenario: Scenario, chosen: FleetFigures, *, is_last_resort: bool) -> str:
    served = f"{_percent(chosen)} of the operations succeed"
    peak = f"at no more than {chosen.peak_sent:,.0f} requests/s"
    if is_last_resort:
        return f"no strategy recovers, and with this one {served}."
    if chosen.strategy in SEND_ONCE:
        return f"retries do not pay here. {served}, {peak}."
    if scenario.outage is None:
        return f"{served}, {peak}."
    after = found if (found := chosen.recovered_after) else 0.0
    return f"it recovers {f'{after:g} s after the outage' if after else 'at once'}, and {served}, {peak}."


def _beyond(scenario: Scenario, found: FleetFigures) -> str:
    """Return how far a load is beyond what the service can serve, where it is."""
    capacity = capacity_of(scenario)
    if capacity is None or found.peak_sent < 1.05 * capacity:
        return ""
    return f", {found.peak_sent / capacity:.1f} times what the service can serve"


def _failures(found: FleetFigures) -> float:
    return (found.totals.begun - found.totals.succeeded) / found.totals.begun


def _percent(found: FleetFigures) -> str:
    return f"{found.totals.succeeded / found.totals.begun:.1%}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
