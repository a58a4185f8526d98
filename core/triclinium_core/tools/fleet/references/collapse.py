"""Collapse by retries: a service that slows down under load, and clients whose attempts time out.

New clients arrive at random. Each leg takes ``Exp(0.1 s)``. The service takes 1 s, plus 0.01 s for each request in
flight, including requests whose client has left. A client makes three attempts of at most 3 s each. With a backoff, it
waits ``U(0, 1) * 10 * 2 ** k`` s before the k-th retry.

- Spike: 40 clients/s, and 80/s between 20 s and 25 s. The service has two stable states, and the spike may move it
  from one to the other. So the share of runs that serve no client after 60 s is compared. With the backoff it is 0.
- Ramp: the rate rises from 40/s to 80/s in 25 s and falls again. With and without the backoff, almost no client is
  served after 30 s.

Source: Marc Brooker, simulator_example/simple_collapse_sim; figures of that program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from triclinium_core.tools.fleet.demand import PoissonArrivals, Ramp, Spike, Trend
from triclinium_core.tools.fleet.figures import FleetFigures
from triclinium_core.tools.fleet.references.experiment import SIGMAS, Experiment, Quantity, mean
from triclinium_core.tools.fleet.retries import CountedRetries, ExponentialDelays, NoDelay, Retries
from triclinium_core.tools.fleet.scenario import Fleet, ParallelService, Scenario
from triclinium_core.tools.fleet.times import ExponentialTime

REFERENCE = "collapse by retries"

RATE = 40.0
"""Clients per second, and the goodput of a healthy service."""
DURATION = 80.0
SPIKE = Spike(start=20.0, end=25.0, factor=2.0)
RAMP = Ramp(points=((0.0, 1.0), (25.0, 2.0), (75.0, 0.0)))
AT_ONCE = CountedRetries(name="no backoff", max_attempts=3, delays=NoDelay())
# The ceiling has no effect: there are two delays, of at most 20 s and 40 s.
BACKOFF = CountedRetries(name="backoff", max_attempts=3, delays=ExponentialDelays(base=20.0, most=1e3))

NO_GOODPUT = 0.5
"""Answers per second below which a run counts as collapsed, because they round to 0. One run in seventy still has one
answer after 30 s."""

SPIKE_RUNS = 60
COLLAPSED = 40
"""Number of runs, out of 60, that collapse without a backoff."""
COLLAPSED_SIGMAS = 3.0
"""Tolerance, in standard errors of the difference between two sets of 60 runs. With a tolerance of four, all runs could
collapse, and the test would not show that there are two stable states."""
COLLAPSED_SLACK = COLLAPSED_SIGMAS * math.sqrt(2 * COLLAPSED * (1 - COLLAPSED / SPIKE_RUNS))
NEVER_SLACK = 3.0
"""Tolerance if none of 60 runs collapses. Rule of three: with 95 % confidence, fewer than 3 of 60 runs collapse."""
RAMP_RUNS = 10


def goodput(start: float, end: float) -> Callable[[FleetFigures], float]:
    """Return a function that returns the number of answers in time, per second, between two instants."""
    return lambda figures: (
        sum(bucket.succeeded for bucket in figures.buckets if start <= bucket.start < end) / (end - start)
    )


def _collapsed(values: Sequence[float]) -> float:
    """Return the number of collapsed runs."""
    return float(sum(value < NO_GOODPUT for value in values))


def _mean_of_others(values: Sequence[float]) -> float:
    """Return the mean goodput of the runs that did not collapse, or 0 if all did."""
    others = [value for value in values if value >= NO_GOODPUT]
    return mean(others) if others else 0.0


def _goodput_quantity(
    subject: str, start: float, *, runs: float, summary: Callable[[Sequence[float]], float]
) -> Quantity:
    """Return the quantity for the full goodput after ``start``, with the tolerance for ``runs`` random runs."""
    error = math.sqrt(RATE / (DURATION - start) / runs)
    return Quantity(
        reference=REFERENCE,
        subject=subject,
        unit="goodput/s",
        expected=RATE,
        measure=goodput(start, DURATION),
        summary=summary,
        slack=SIGMAS * math.hypot(error, error) + 0.5,
    )


def _experiment(name: str, trend: Trend, retries: Retries, runs: int, *quantities: Quantity) -> Experiment:
    return Experiment(
        name=f"{REFERENCE}: {name}",
        scenario=Scenario(
            fleet=Fleet(
                clients=int(RATE),
                period=1.0,
                timeout=1e5,
                attempt_timeout=3.0,
                arrivals=PoissonArrivals(),
                trend=trend,
            ),
            service=ParallelService(base=1.0, growth=0.01, leg=ExponentialTime(mean=0.1)),
            duration=DURATION,
            bucket=1.0,
            strategies=(retries,),
        ),
        strategy=retries.name,
        runs=runs,
        quantities=quantities,
    )


def _runs_without_goodput(subject: str, start: float, expected: int, slack: float) -> Quantity:
    return Quantity(
        reference=REFERENCE,
        subject=subject,
        unit="runs",
        expected=expected,
        measure=goodput(start, DURATION),
        summary=_collapsed,
        slack=slack,
    )


COLLAPSE = (
    _experiment(
        "spike",
        SPIKE,
        AT_ONCE,
        SPIKE_RUNS,
        _runs_without_goodput("spike, collapsed of 60", 60.0, COLLAPSED, COLLAPSED_SLACK),
        _goodput_quantity(
            "spike, others",
            60.0,
            runs=SPIKE_RUNS - COLLAPSED,
            summary=_mean_of_others,
        ),
    ),
    _experiment(
        "spike + backoff",
        SPIKE,
        BACKOFF,
        SPIKE_RUNS,
        _runs_without_goodput("spike + backoff, of 60", 60.0, 0, NEVER_SLACK),
        _goodput_quantity("spike + backoff", 50.0, runs=SPIKE_RUNS, summary=mean),
    ),
    *(
        _experiment(
            subject,
            RAMP,
            retries,
            RAMP_RUNS,
            _runs_without_goodput(subject, 30.0, RAMP_RUNS, 0.0),
        )
        for subject, retries in (("ramp, of 10", AT_ONCE), ("ramp + backoff, of 10", BACKOFF))
    ),
)
"""Experiments for the spike and the ramp, without a backoff and with it."""
