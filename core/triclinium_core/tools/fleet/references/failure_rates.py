"""Retries under a failure rate: clients with Poisson arrivals call a service that fails calls at random.

A hundred clients make ten calls per second each. Each leg takes ``Exp(10 ms)``. Retries are immediate. The measures are
the share of successful calls and the number of attempts per call. Each client has its own strategy: ``none``; ``three``
retries at most; ``adaptive``, a budget to which first attempts contribute; ``breaker``, three retries while few
attempts fail. A second table has a total demand of 100 calls/s, from ten, a hundred or a thousand clients.

In the program of the source, every client makes a call when the simulation begins, and then at random intervals. With a
thousand clients that is one call in eleven, which affects the figures. ``PoissonArrivals(at_once=True)`` does the same.

Source: Marc Brooker, "Fixing retries with token buckets and circuit breakers" (2022-02-28). The figures are means and
standard deviations of runs of its program. For ``none`` and ``three`` there are closed forms as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from triclinium_core.tools.fleet.demand import PoissonArrivals
from triclinium_core.tools.fleet.figures import FleetFigures
from triclinium_core.tools.fleet.references.experiment import Experiment, Quantity
from triclinium_core.tools.fleet.retries import BreakerRetries, BudgetRetries, CountedRetries, Retries
from triclinium_core.tools.fleet.scenario import Fleet, ParallelService, Scenario
from triclinium_core.tools.fleet.times import ExponentialTime

REFERENCE = "retries under failures"
CLOSED_FORM = "closed forms"

STRATEGIES: dict[str, Retries] = {
    "none": CountedRetries(name="none", max_attempts=1),
    "three": CountedRetries(name="three", max_attempts=4),
    "adaptive": BudgetRetries(name="adaptive", capacity=5.0, deposit=0.1),
    "breaker": BreakerRetries(name="breaker", max_attempts=4, failure_share=0.1),
}

Published = tuple[float, float]
"""Published figure and published standard deviation of its runs. Without a published deviation the second is 0."""

PUBLISHED: dict[tuple[float, str], tuple[Published, Published]] = {
    (0.05, "none"): ((0.950, 0.0), (1.000, 0.0)),
    (0.05, "three"): ((1.000, 0.0), (1.053, 0.0)),
    (0.05, "adaptive"): ((1.000, 0.0), (1.052, 0.0)),
    (0.05, "breaker"): ((0.995, 0.0), (1.047, 0.0)),
    (0.1, "none"): ((0.899, 0.002), (1.000, 0.0)),
    (0.1, "three"): ((1.000, 0.0), (1.111, 0.0)),
    (0.1, "adaptive"): ((0.987, 0.001), (1.096, 0.0)),
    (0.1, "breaker"): ((0.932, 0.003), (1.035, 0.003)),
    (0.3, "none"): ((0.701, 0.0), (1.000, 0.0)),
    (0.3, "three"): ((0.992, 0.0), (1.415, 0.005)),
    (0.3, "adaptive"): ((0.780, 0.004), (1.113, 0.0)),
    (0.3, "breaker"): ((0.699, 0.0), (1.000, 0.0)),
    (0.5, "none"): ((0.501, 0.0), (1.000, 0.0)),
    (0.5, "three"): ((0.937, 0.002), (1.874, 0.005)),
    (0.5, "adaptive"): ((0.556, 0.003), (1.114, 0.0)),
    (0.5, "breaker"): ((0.499, 0.0), (1.000, 0.0)),
}
"""Share of successful calls, and attempts per call, by failure rate and strategy."""

PUBLISHED_BY_CLIENTS: dict[tuple[int, str], tuple[Published, Published]] = {
    (10, "adaptive"): ((0.552, 0.006), (1.104, 0.0)),
    (100, "adaptive"): ((0.572, 0.007), (1.142, 0.001)),
    (1000, "adaptive"): ((0.732, 0.006), (1.459, 0.003)),
    (10, "breaker"): ((0.999, 0.001), (1.050, 0.004)),
    (100, "breaker"): ((0.987, 0.001), (1.039, 0.002)),
    (1000, "breaker"): ((0.956, 0.001), (1.006, 0.0)),
}
"""Share of successful calls, and attempts per call, for 100 calls/s in total over 100 s, by clients and strategy."""
FAILURE_RATES_BY_CLIENTS = {"adaptive": 0.5, "breaker": 0.05}

RUNS = 2
ROUNDING = 0.0005
RETRIES_MAX = 3


def _success(figures: FleetFigures) -> float:
    return figures.totals.succeeded / figures.totals.begun


def _attempts(figures: FleetFigures) -> float:
    return figures.totals.sent / figures.totals.begun


def _spread_of_success(share: float, calls: float) -> float:
    """Return the standard deviation of the share of successes in ``calls`` independent calls."""
    return math.sqrt(share * (1.0 - share) / calls)


def _spread_of_attempts(rate: float, retries: int, calls: float) -> float:
    """Return the standard deviation of the mean attempts of ``calls`` independent calls with ``retries`` retries."""
    # The probability of attempt n is rate ** (n - 1).
    first = sum(rate**n for n in range(retries + 1))
    second = sum((2 * n + 1) * rate**n for n in range(retries + 1))
    return math.sqrt(max(second - first * first, 0.0) / calls)


MEASURES: dict[str, Callable[[FleetFigures], float]] = {"success": _success, "attempts": _attempts}
"""Measures per call, by unit."""


def _quantity(subject: str, unit: str, published: Published, spread: float) -> Quantity:
    # The source does not state the number of runs, so a figure counts as the figure of one run. Without a published
    # deviation, use the deviation of independent calls.
    expected, deviation = published
    deviation = deviation or spread
    return Quantity(
        reference=REFERENCE,
        subject=subject,
        unit=unit,
        expected=expected,
        measure=MEASURES[unit],
        error=deviation,
        spread=deviation,
        rounding=ROUNDING,
    )


def _closed_forms(subject: str, rate: float, retries: int, calls: float) -> Sequence[Quantity]:
    """Return the quantities that have closed forms if only the number of retries is limited."""
    success = 1.0 - rate ** (retries + 1)
    return [
        Quantity(
            reference=CLOSED_FORM,
            subject=subject,
            unit="success",
            expected=success,
            measure=_success,
            spread=_spread_of_success(success, calls),
        ),
        Quantity(
            reference=CLOSED_FORM,
            subject=subject,
            unit="attempts",
            expected=success / (1.0 - rate),
            measure=_attempts,
            spread=_spread_of_attempts(rate, retries, calls),
        ),
    ]


def _experiment(
    subject: str, strategy: str, fleet: Fleet, scenario: tuple[float, float], published: tuple[Published, Published]
) -> Experiment:
    rate, duration = scenario
    success, attempts = published
    retries = 0 if strategy == "none" else RETRIES_MAX
    calls = fleet.demand * duration
    quantities = [
        _quantity(subject, "success", success, _spread_of_success(success[0], calls)),
        _quantity(subject, "attempts", attempts, _spread_of_attempts(rate, retries, calls)),
    ]
    if isinstance(STRATEGIES[strategy], CountedRetries):
        quantities += _closed_forms(subject, rate, retries, calls)
    return Experiment(
        name=f"{REFERENCE}: {subject}",
        scenario=Scenario(
            fleet=fleet,
            service=ParallelService(leg=ExponentialTime(mean=0.01)),
            failure_rate=rate,
            duration=duration,
            strategies=(STRATEGIES[strategy],),
        ),
        strategy=strategy,
        runs=RUNS,
        quantities=quantities,
    )


def _fleet(clients: int, rate: float) -> Fleet:
    """Return clients that make ``rate`` calls per second in total, each with its own strategy and without a timeout."""
    return Fleet(
        clients=clients,
        period=clients / rate,
        timeout=1e5,
        clients_per_process=1,
        arrivals=PoissonArrivals(at_once=True),
    )


def _experiments() -> Iterator[Experiment]:
    for (rate, strategy), published in PUBLISHED.items():
        yield _experiment(f"p={rate:g} {strategy}", strategy, _fleet(100, 1000.0), (rate, 30.0), published)
    for (clients, strategy), published in PUBLISHED_BY_CLIENTS.items():
        rate = FAILURE_RATES_BY_CLIENTS[strategy]
        yield _experiment(f"N={clients} {strategy}", strategy, _fleet(clients, 100.0), (rate, 100.0), published)


FAILURE_RATES = tuple(_experiments())
"""Experiments for four rates and four strategies, and for two of the strategies with three numbers of clients."""
