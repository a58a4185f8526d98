"""Closed formulas: queues with one worker, and the mean delays of backoffs.

Queues: a worker can serve ``c`` requests per second and has the load ``r``, so ``r * c`` requests arrive per second. In
an M/M/1 queue the mean time in the system is ``1 / (c * (1 - r))``, and the mean number of requests in the system is
``r / (1 - r)``. In an M/D/1 queue the mean wait is ``r / (2 * c * (1 - r))`` (Pollaczek and Khinchine).

Delays: operations run one after the other, and each attempt fails immediately until the attempts are used up. So the
end of the last operation is the sum of all delays. The mean of an exponential delay is three quarters of the full delay
with equal jitter, and half with full jitter. A decorrelated delay is drawn between ``b`` and ``3 s``, where ``s`` is
the previous delay. So its mean is half of ``b + 3 s``, and the mean of its square is a third of ``b² + 3 b s + 9 s²``.
Both means are computed by iteration, as long as no delay reaches the ceiling.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from triclinium_core.retry.smithy import Jitter
from triclinium_core.tools.fleet.demand import ClosedLoop, PoissonArrivals
from triclinium_core.tools.fleet.figures import FleetFigures
from triclinium_core.tools.fleet.references.experiment import Experiment, Quantity
from triclinium_core.tools.fleet.retries import CountedRetries, DecorrelatedDelays, Delays, ExponentialDelays
from triclinium_core.tools.fleet.scenario import Fleet, ParallelService, Scenario, SimulatedService, Work
from triclinium_core.tools.fleet.times import SECONDS_MAX, FixedTime

REFERENCE = "closed forms"

CAPACITY = 100.0
LOADS = (0.5, 0.8)
QUEUE_SECONDS = 500.0
QUEUE_RUNS = 4

OPERATIONS = 2_000
"""Number of operations whose delays are added up in one run."""
BASE, MOST = 0.005, 2.0
DOUBLINGS = 8
"""Number of retries with delays below the ceiling: 10 ms doubled seven times is 1.28 s."""
EXPONENTIAL_SUM = sum(2 * BASE * 2**retry for retry in range(DOUBLINGS))
SHARES = {Jitter.NONE: (1.0, 0.0), Jitter.EQUAL: (0.75, 0.5), Jitter.FULL: (0.5, 1.0)}
"""Mean and random share of a delay, by jitter."""
WALKS = (1, 2, 3, 4, 5)
"""Numbers of retries with decorrelated delays. The fifth delay is at most 1.215 s; the sixth may reach the ceiling."""
FLOAT_ERROR = 0.01
"""Tolerance in milliseconds. Sums of delays without jitter are more exact than that."""


def _latency(figures: FleetFigures) -> float:
    return figures.latency_mean or 0.0


def _queues() -> Iterator[Experiment]:
    for load in LOADS:
        rate = load * CAPACITY
        # Ward Whitt, "Planning Queueing Simulations" (1989): the variance of the mean number in an M/M/1 queue over a
        # long time. The ratio of its root to the mean also holds for the time in the queue. M/D/1 varies less.
        variance = 2 * load * (1 + load) / ((1 - load) ** 4 * CAPACITY * QUEUE_SECONDS)
        relative = math.sqrt(variance) / (load / (1 - load))
        number = load / (1 - load)
        time = 1.0 / (CAPACITY - rate)
        wait = load / (2 * CAPACITY * (1 - load))
        for work, quantities in (
            (
                Work.EXPONENTIAL,
                (
                    Quantity(
                        reference=REFERENCE,
                        subject=f"M/M/1 load {load:g}",
                        unit="s in system",
                        expected=time,
                        measure=_latency,
                        spread=relative * time,
                    ),
                    Quantity(
                        reference=REFERENCE,
                        subject=f"M/M/1 load {load:g}",
                        unit="requests",
                        expected=number,
                        # The total time of all requests is the integral of their number over time.
                        measure=lambda figures: _latency(figures) * figures.totals.succeeded / QUEUE_SECONDS,
                        spread=relative * number,
                    ),
                ),
            ),
            (
                Work.CONSTANT,
                (
                    Quantity(
                        reference=REFERENCE,
                        subject=f"M/D/1 load {load:g}",
                        unit="s of wait",
                        expected=wait,
                        measure=lambda figures: _latency(figures) - 1.0 / CAPACITY,
                        spread=relative * wait,
                    ),
                ),
            ),
        ):
            yield Experiment(
                name=f"{REFERENCE}: {work} work, {load:g}",
                scenario=Scenario(
                    fleet=Fleet(clients=100, period=100 / rate, timeout=1e5, arrivals=PoissonArrivals()),
                    service=SimulatedService(capacity=CAPACITY, latency=0.0, queue=SECONDS_MAX, work=work),
                    duration=QUEUE_SECONDS,
                ),
                strategy="none",
                runs=QUEUE_RUNS,
                quantities=quantities,
            )


def _delays(name: str, retries: int, delays: Delays, mean: float, spread: float) -> Experiment:
    """Return the experiment that adds up the delays of ``retries`` retries, with mean and spread of their sum."""
    return Experiment(
        name=f"{REFERENCE}: {name}, {retries} delays",
        scenario=Scenario(
            fleet=Fleet(clients=1, timeout=1e5, arrivals=ClosedLoop(operations=OPERATIONS)),
            service=ParallelService(leg=FixedTime(seconds=0.0)),
            failure_rate=1.0,
            duration=1e6,
            bucket=1e6,
            strategies=(CountedRetries(name=name, max_attempts=retries + 1, delays=delays),),
        ),
        strategy=name,
        runs=1,
        quantities=(
            Quantity(
                reference=REFERENCE,
                subject=f"{name}, {retries} delays" if retries > 1 else f"{name}, 1 delay",
                unit="ms",
                expected=round(1000 * mean, 6),
                measure=lambda figures: 1000 * figures.finished_at / OPERATIONS,
                spread=1000 * spread / math.sqrt(OPERATIONS),
                rounding=FLOAT_ERROR,
            ),
        ),
    )


def _backoffs() -> Iterator[Experiment]:
    squares = sum((2 * BASE * 2**retry) ** 2 for retry in range(DOUBLINGS))
    for jitter, (share, random) in SHARES.items():
        delays = ExponentialDelays(base=2 * BASE, most=MOST, jitter=jitter)
        name = "expo" if jitter is Jitter.NONE else str(jitter)
        yield _delays(name, DOUBLINGS, delays, share * EXPONENTIAL_SUM, random * math.sqrt(squares / 12))
    for retries in WALKS:
        mean, spread = _walk(retries)
        yield _delays("decorrelated", retries, DecorrelatedDelays(base=BASE, most=MOST), mean, spread)


def _walk(retries: int) -> tuple[float, float]:
    """Return the mean and the standard deviation of the sum of ``retries`` decorrelated delays."""
    # Means of the last delay, its square, the sum, the sum times the last delay, and the square of the sum.
    last, last_square, total, product, total_square = BASE, BASE**2, 0.0, 0.0, 0.0
    for _ in range(retries):
        following = (BASE + 3 * last) / 2
        following_square = (BASE**2 + 3 * BASE * last + 9 * last_square) / 3
        crossed = (BASE * total + 3 * product) / 2
        total_square += 2 * crossed + following_square
        total += following
        product = crossed + following_square
        last, last_square = following, following_square
    return total, math.sqrt(max(total_square - total**2, 0.0))


FORMULAS = (*_queues(), *_backoffs())
"""Experiments for queues and backoffs."""
