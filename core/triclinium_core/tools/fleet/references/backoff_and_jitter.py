"""Optimistic concurrency with backoff: clients that each update the same row once.

Each leg to the row takes ``|Normal(10, 2)|`` ms. The delay before the k-th retry is based on ``min(2000, 5 * 2 ** k)``
ms: all of it, a random part between half and all, or between nothing and all. A decorrelated delay is drawn between 5
ms and three times the previous delay. The measures are the time until the last client is done, and the number of
writes.

Two retry designs of the core are compared with the figures: Smithy's, with the machine of a call; and Couchbase's, with
the retry machine of an operation, which supports neither retries without a delay nor decorrelated delays.

Source: Marc Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog (2015). The figures are means of many runs
of its program, with standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from triclinium_core.retry.smithy import Jitter
from triclinium_core.tools.fleet.demand import ClosedLoop
from triclinium_core.tools.fleet.references.experiment import Experiment, Quantity
from triclinium_core.tools.fleet.retries import (
    ATTEMPTS_MAX,
    CouchbaseRetries,
    CountedRetries,
    DecorrelatedDelays,
    Delays,
    ExponentialDelays,
    NoDelay,
    Retries,
)
from triclinium_core.tools.fleet.scenario import ContendedRow, Fleet, Scenario
from triclinium_core.tools.fleet.times import NormalTime

SMITHY = "backoff and jitter"
COUCHBASE = "backoff and jitter, Couchbase"

PUBLISHED = {
    (50, "none"): ((1141, 9), (694, 4)),
    (50, "expo"): ((36925, 399), (628, 4)),
    (50, "equal"): ((4344, 79), (347, 1)),
    (50, "full"): ((2845, 68), (333, 1)),
    (50, "decorrelated"): ((2297, 68), (375, 2)),
    (100, "none"): ((2044, 10), (2428, 8)),
    (100, "expo"): ((63648, 597), (1842, 9)),
    (100, "equal"): ((6707, 71), (812, 1)),
    (100, "full"): ((4995, 86), (796, 1)),
    (100, "decorrelated"): ((4791, 96), (1001, 3)),
    (190, "none"): ((3529, 8), (8012, 13)),
    (190, "expo"): ((100507, 551), (5171, 15)),
    (190, "equal"): ((9461, 82), (1759, 2)),
    (190, "full"): ((7432, 65), (1773, 1)),
    (190, "decorrelated"): ((7900, 126), (2436, 7)),
}
"""Time in ms and number of writes, each with its standard error, by clients and backoff."""

PUBLISHED_RUNS = 40
"""Estimated number of runs behind a published figure, which the source does not state. The standard deviation of our
single runs is 6.5 times the published standard errors."""
RUNS = 20
ROUNDING = 0.5

BASE, MOST = 0.005, 2.0
"""Base and ceiling of the delays in seconds. The first delay is twice the base."""

DELAYS: dict[str, Delays] = {
    "none": NoDelay(),
    "expo": ExponentialDelays(base=2 * BASE, most=MOST, jitter=Jitter.NONE),
    "equal": ExponentialDelays(base=2 * BASE, most=MOST, jitter=Jitter.EQUAL),
    "full": ExponentialDelays(base=2 * BASE, most=MOST, jitter=Jitter.FULL),
    "decorrelated": DecorrelatedDelays(base=BASE, most=MOST),
}
JITTERS = {"expo": 0.0, "equal": 0.5, "full": 1.0}
"""Equivalent ``jitter`` of Couchbase's backoff: the random share of a delay."""


def _experiment(reference: str, clients: int, backoff: str, retries: Retries) -> Experiment:
    (time, time_error), (writes, writes_error) = PUBLISHED[clients, backoff]
    what = f"N={clients} {backoff}"
    return Experiment(
        name=f"{reference}: {what}",
        scenario=Scenario(
            # The timeout is so long that no operation times out: the slowest operations take two minutes.
            fleet=Fleet(clients=clients, clients_per_process=clients, timeout=1e5, arrivals=ClosedLoop(operations=1)),
            service=ContendedRow(leg=NormalTime(mean=0.01, deviation=0.002)),
            duration=1.0,
            strategies=(retries,),
        ),
        strategy=retries.name,
        runs=RUNS,
        quantities=(
            Quantity(
                reference=reference,
                subject=what,
                unit="ms",
                expected=time,
                measure=lambda figures: 1000.0 * figures.finished_at,
                error=time_error,
                spread=time_error * math.sqrt(PUBLISHED_RUNS),
                rounding=ROUNDING,
            ),
            Quantity(
                reference=reference,
                subject=what,
                unit="writes",
                expected=writes,
                measure=lambda figures: float(figures.totals.sent),
                error=writes_error,
                spread=writes_error * math.sqrt(PUBLISHED_RUNS),
                rounding=ROUNDING,
            ),
        ),
    )


def _experiments() -> Iterator[Experiment]:
    for clients, backoff in PUBLISHED:
        counted = CountedRetries(name=backoff, max_attempts=ATTEMPTS_MAX, delays=DELAYS[backoff])
        yield _experiment(SMITHY, clients, backoff, counted)
    for clients, backoff in PUBLISHED:
        if backoff in JITTERS:
            couchbase = CouchbaseRetries(name=backoff, first=2 * BASE, most=MOST, jitter=JITTERS[backoff])
            yield _experiment(COUCHBASE, clients, backoff, couchbase)


BACKOFF_AND_JITTER = tuple(_experiments())
"""Experiments for two retry designs, three numbers of clients, and the backoffs that each design supports."""
