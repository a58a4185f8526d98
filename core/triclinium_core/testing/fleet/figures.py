"""What a fleet's outage was like, in numbers: step by step, in all, and how long it took to recover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from triclinium_core.testing.fleet.scenario import Outage

RECOVERED_SHARE = 0.95
"""The service counts as recovered when this share of the operations that begin succeeds."""


COUNTS = ("begun", "sent", "succeeded", "failed", "fulfilled", "throttled", "wasted")
"""What a bucket counts; the totals count all but what was fulfilled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """One step of the time line. Counts, by the instant at which each thing happened."""

    start: float
    """Seconds since the beginning."""
    begun: int
    """Operations that began: the demand."""
    sent: int
    """Attempts, first ones and retries: the offered load."""
    succeeded: int
    """Operations that ended with an answer in time: the goodput."""
    failed: int
    """Operations that ended otherwise."""
    fulfilled: int
    """Operations that began here and succeeded, whenever that was."""
    throttled: int
    """Attempts for which the service had no room."""
    wasted: int
    """Attempts that were served when their callers had left."""
    queue: float
    """The most requests that waited."""

    @property
    def amplification(self) -> float | None:
        """Attempts for each operation that began; None where none began."""
        return self.sent / self.begun if self.begun else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The same, of all operations, each followed to its end."""

    begun: int
    sent: int
    succeeded: int
    failed: int
    throttled: int
    wasted: int

    @property
    def amplification(self) -> float | None:
        """Attempts for each operation; None where there was none."""
        return self.sent / self.begun if self.begun else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFigures:
    """What came of one strategy."""

    strategy: str
    buckets: Sequence[Bucket]
    """Up to the duration; what ended later is in the totals only."""
    totals: Totals
    peak_sent: float
    """The largest offered load of a bucket, in attempts per second."""
    recovered_after: float | None
    """Seconds from the end of the outage to the first bucket from which on ``RECOVERED_SHARE`` of the operations that
    begin succeed, and it stays so; None where that never comes, or where there was no outage (decision F1)."""
    latencies: Sequence[tuple[float, float]]
    """Percentiles of the operations that succeeded, from their beginning to the answer, as (percent, seconds)."""

    def to_json(self) -> dict[str, object]:
        """Return the figures as an object for JSON; seconds are rounded to microseconds."""
        return {
            "strategy": self.strategy,
            "totals": {**asdict(self.totals), "amplification": _rounded(self.totals.amplification)},
            "peak_sent_per_second": _rounded(self.peak_sent),
            "recovered_after": _rounded(self.recovered_after),
            "latencies": {f"p{percent:g}": _rounded(seconds) for percent, seconds in self.latencies},
            "buckets": [
                {
                    **asdict(bucket),
                    "start": _rounded(bucket.start),
                    "queue": _rounded(bucket.queue),
                    "amplification": _rounded(bucket.amplification),
                }
                for bucket in self.buckets
            ],
        }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 6)


def recovered_after(buckets: Sequence[Bucket], outage: Outage | None) -> float | None:
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
