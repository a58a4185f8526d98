"""Counts while a simulation runs; as large as its buckets are many, however many operations there are."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from itertools import accumulate

from triclinium_core.testing.fleet.figures import COUNTS, Bucket, FleetFigures, Totals, recovered_after
from triclinium_core.testing.fleet.scenario import Scenario

PERCENTS = (50.0, 99.0)
_FASTEST = 1e-6
_STEPS_A_DECADE = 50
"""Percentiles are told with steps of 4.7 %."""
_DECADES = 16
"""From a microsecond to longer than any timeout."""


class Tally:
    """What happened when. Whatever comes after the duration counts in the last bucket, which nobody is shown."""

    def __init__(self, scenario: Scenario) -> None:
        self._outage = scenario.outage
        self._width = scenario.bucket
        self._duration = scenario.duration
        self._shown = math.ceil(scenario.duration / scenario.bucket - 1e-9)
        self._last = self._shown
        self.begun: array[int] = self._counts()
        self.sent: array[int] = self._counts()
        self.succeeded: array[int] = self._counts()
        self.failed: array[int] = self._counts()
        self.fulfilled: array[int] = self._counts()
        self.throttled: array[int] = self._counts()
        self.wasted: array[int] = self._counts()
        self.queue: array[float] = array("d", bytes(8 * (self._last + 1)))
        self._latencies = array("q", bytes(8 * (_STEPS_A_DECADE * _DECADES + 1)))

    def _counts(self) -> array[int]:
        return array("q", bytes(8 * (self._last + 1)))

    def at(self, now: float) -> int:
        """Return the index of the bucket of an instant."""
        if now >= self._duration:
            return self._last
        return min(int(now / self._width), self._last - 1)

    def success(self, began: float, now: float) -> None:
        """Count an operation that ended well."""
        self.succeeded[self.at(now)] += 1
        self.fulfilled[self.at(began)] += 1
        latency = now - began
        step = int(_STEPS_A_DECADE * math.log10(latency / _FASTEST)) if latency > _FASTEST else 0
        self._latencies[min(step, _STEPS_A_DECADE * _DECADES)] += 1

    def figures(self, strategy: str) -> FleetFigures:
        """Return what was counted."""
        buckets = [
            Bucket(
                start=index * self._width,
                queue=self.queue[index],
                **{name: getattr(self, name)[index] for name in COUNTS},
            )
            for index in range(self._shown)
        ]
        totals = Totals(**{name: sum(getattr(self, name)) for name in COUNTS if name != "fulfilled"})
        return FleetFigures(
            strategy=strategy,
            buckets=buckets,
            totals=totals,
            # The last one may be cut short by the duration.
            peak_sent=max(bucket.sent / min(self._width, self._duration - bucket.start) for bucket in buckets),
            recovered_after=recovered_after(buckets, self._outage),
            latencies=[(percent, self._percentile(percent)) for percent in PERCENTS if totals.succeeded],
        )

    def _percentile(self, percent: float) -> float:
        counts = list(accumulate(self._latencies))
        step = bisect_left(counts, percent / 100 * counts[-1])
        return _FASTEST * float(10 ** ((step + 0.5) / _STEPS_A_DECADE))
