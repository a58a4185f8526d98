"""Figures of a simulation, by step and in total, such as latencies and the time until recovery."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate

from triclinium_core.tools.fleet.scenario import Outage, Scenario

RECOVERED_SHARE = 0.95
"""Share of the operations in a step that must succeed for the service to count as recovered."""

PERCENTS = (50.0, 99.0)
_FASTEST = 1e-6
_STEPS_A_DECADE = 50
"""Resolution of percentiles: steps of 4.7 %."""
_DECADES = 16
"""Range of latencies: from a microsecond to more than any timeout."""

COUNTS = ("begun", "sent", "succeeded", "failed", "fulfilled", "throttled", "wasted")
"""Counts of a bucket. The totals have all these counts except ``fulfilled``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts over all operations. Each operation is followed to its end."""

    begun: int
    """Number of operations that began: the demand."""
    sent: int
    """Number of attempts, including retries: the offered load."""
    succeeded: int
    """Number of operations that ended with an answer in time: the goodput."""
    failed: int
    """Number of operations that ended without an answer in time."""
    throttled: int
    """Number of attempts that the service rejected for overload."""
    wasted: int
    """Number of attempts that were served after their callers had left."""

    @property
    def amplification(self) -> float | None:
        """Attempts per operation; None without operations."""
        return self.sent / self.begun if self.begun else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeStep(Totals):
    """Counts of one time step. Each event counts in the step in which it happened."""

    start: float
    """Start of the step in seconds."""
    fulfilled: int
    """Number of operations that began in this step and succeeded at any time."""
    queue: float
    """Maximum number of requests that are queued, or in service at a ``ParallelService`` with ``growth``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFigures:
    """Figures of one strategy."""

    strategy: str
    buckets: Sequence[TimeStep]
    """Steps up to the duration. Later events count in the totals only."""
    totals: Totals
    peak_sent: float
    """Largest offered load of a step, in attempts per second."""
    recovered_after: float | None
    """Seconds from the end of the outage to the recovery: the start of the first step from which at least
    ``RECOVERED_SHARE`` of the operations that begin in each step succeed. None without such a step, or without an
    outage (decision F1)."""
    latencies: Sequence[tuple[float, float]]
    """Percentiles of the latency of successful operations, as (percent, seconds)."""
    latency_mean: float | None
    """Mean latency of successful operations in seconds, with the precision of a float. None without such operations."""
    finished_at: float
    """End of the last operation in seconds; 0 without operations."""

    def to_json(self) -> dict[str, object]:
        """Return the figures as an object for JSON, with seconds rounded to microseconds."""
        return {
            "strategy": self.strategy,
            "totals": {**asdict(self.totals), "amplification": _rounded(self.totals.amplification)},
            "peak_sent_per_second": _rounded(self.peak_sent),
            "recovered_after": _rounded(self.recovered_after),
            "latencies": {f"p{percent:g}": _rounded(seconds) for percent, seconds in self.latencies},
            "latency_mean": _rounded(self.latency_mean),
            "finished_at": _rounded(self.finished_at),
            "buckets": [
                {
                    "start": _rounded(bucket.start),
                    **{name: count for name, count in asdict(bucket).items() if name != "start"},
                    "queue": _rounded(bucket.queue),
                    "amplification": _rounded(bucket.amplification),
                }
                for bucket in self.buckets
            ],
        }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 6)


def recovered_after(buckets: Sequence[TimeStep], outage: Outage | None) -> float | None:
    """Return the time until recovery, as in ``FleetFigures.recovered_after``."""
    if outage is None:
        return None
    since: float | None = None
    for bucket in buckets:
        if bucket.start < outage.end or not bucket.begun:
            continue
        if bucket.fulfilled < RECOVERED_SHARE * bucket.begun:
            since = None
        elif since is None:
            since = bucket.start
    return None if since is None else since - outage.end


class Tally:
    """Counts of a running simulation. Its size is proportional to the number of buckets.

    Events after the duration count in an extra bucket, which only the totals include.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._outage = scenario.outage
        self._width = scenario.bucket
        self._duration = scenario.duration
        self._shown = math.ceil(scenario.duration / scenario.bucket - 1e-9)
        self._counts = {name: array("q", bytes(8 * (self._shown + 1))) for name in COUNTS}
        self._queue = array("d", bytes(8 * (self._shown + 1)))
        self._latencies = array("q", bytes(8 * (_STEPS_A_DECADE * _DECADES + 1)))
        self._latency_total = 0.0
        self._finished_at = 0.0

    def count(self, name: str, now: float) -> None:
        """Add one to a count, in the step of ``now``."""
        self._counts[name][self._at(now)] += 1

    def waits(self, requests: float, now: float) -> None:
        """Record the number of requests at the service; a step keeps the maximum."""
        bucket = self._at(now)
        self._queue[bucket] = max(self._queue[bucket], requests)

    def success(self, began: float, now: float) -> None:
        """Count an operation that succeeded."""
        self.count("succeeded", now)
        self.count("fulfilled", began)
        self._finished_at = max(self._finished_at, now)
        latency = now - began
        self._latency_total += latency
        step = int(_STEPS_A_DECADE * math.log10(latency / _FASTEST)) if latency > _FASTEST else 0
        self._latencies[min(step, _STEPS_A_DECADE * _DECADES)] += 1

    def failure(self, now: float) -> None:
        """Count an operation that ended without an answer in time."""
        self.count("failed", now)
        self._finished_at = max(self._finished_at, now)

    def figures(self, strategy: str) -> FleetFigures:
        """Return the figures of a strategy."""
        buckets = [
            TimeStep(
                start=index * self._width,
                queue=self._queue[index],
                **{name: self._counts[name][index] for name in COUNTS},
            )
            for index in range(self._shown)
        ]
        totals = Totals(**{name: sum(self._counts[name]) for name in COUNTS if name != "fulfilled"})
        return FleetFigures(
            strategy=strategy,
            buckets=buckets,
            totals=totals,
            # The duration may end within the last bucket.
            peak_sent=max(bucket.sent / min(self._width, self._duration - bucket.start) for bucket in buckets),
            recovered_after=recovered_after(buckets, self._outage),
            latencies=[(percent, self._percentile(percent)) for percent in PERCENTS if totals.succeeded],
            latency_mean=self._latency_total / totals.succeeded if totals.succeeded else None,
            finished_at=self._finished_at,
        )

    def _at(self, now: float) -> int:
        """Return the index of the bucket of an instant."""
        return self._shown if now >= self._duration else min(int(now / self._width), self._shown - 1)

    def _percentile(self, percent: float) -> float:
        counts = list(accumulate(self._latencies))
        step = bisect_left(counts, percent / 100 * counts[-1])
        return _FASTEST * float(10 ** ((step + 0.5) / _STEPS_A_DECADE))
