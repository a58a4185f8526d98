"""Figures of a fleet's outage: step by step, in total, and the time until recovery."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate

from triclinium_core.tools.fleet.scenario import Outage, Scenario

RECOVERED_SHARE = 0.95
"""The service counts as recovered when this share of the operations that begin succeeds."""

PERCENTS = (50.0, 99.0)
_FASTEST = 1e-6
_STEPS_A_DECADE = 50
"""Percentiles are told with steps of 4.7 %."""
_DECADES = 16
"""From a microsecond to longer than any timeout."""

COUNTS = ("begun", "sent", "succeeded", "failed", "fulfilled", "throttled", "wasted")
"""What a bucket counts; the totals count all but what was fulfilled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts of all operations, each followed to its end."""

    begun: int
    """Operations that began: the demand."""
    sent: int
    """Attempts, first ones and retries: the offered load."""
    succeeded: int
    """Operations that ended with an answer in time: the goodput."""
    failed: int
    """Operations that ended otherwise."""
    throttled: int
    """Attempts for which the service had no room."""
    wasted: int
    """Attempts that were served when their callers had left."""

    @property
    def amplification(self) -> float | None:
        """Attempts for each operation that began; None where none began."""
        return self.sent / self.begun if self.begun else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeStep(Totals):
    """One step of the time line: the same, by the instant at which each thing happened."""

    start: float
    """Seconds since the beginning."""
    fulfilled: int
    """Operations that began here and succeeded, whenever that was."""
    queue: float
    """The most requests that waited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFigures:
    """What came of one strategy."""

    strategy: str
    buckets: Sequence[TimeStep]
    """Up to the duration; what ended later is in the totals only."""
    totals: Totals
    peak_sent: float
    """The largest offered load of a bucket, in attempts per second."""
    recovered_after: float | None
    """Seconds from the end of the outage to the first bucket from which on ``RECOVERED_SHARE`` of the operations that
    begin succeed, and it stays so; None where that never comes, or where there was no outage (decision F1)."""
    latencies: Sequence[tuple[float, float]]
    """Percentiles of the operations that succeeded, from their beginning to the answer, as (percent, seconds)."""
    latency_mean: float | None
    """The mean of the same, in seconds, and as exact as a float; None where none succeeded."""
    finished_at: float
    """Seconds from the beginning to the end of the last operation; 0 where there was none."""

    def to_json(self) -> dict[str, object]:
        """Return the figures as an object for JSON; seconds are rounded to microseconds."""
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
    """Return how long it took, as ``FleetFigures.recovered_after`` has it."""
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
    """Counts while a simulation runs, as large as its buckets are many.

    Whatever comes after the duration counts in the last bucket, which nobody is shown.
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
        """Add one to a count."""
        self._counts[name][self._at(now)] += 1

    def waits(self, requests: float, now: float) -> None:
        """Record how many requests wait."""
        bucket = self._at(now)
        self._queue[bucket] = max(self._queue[bucket], requests)

    def success(self, began: float, now: float) -> None:
        """Count an operation that ended well."""
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
        """Return what was counted."""
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
            # The last one may be cut short by the duration.
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
