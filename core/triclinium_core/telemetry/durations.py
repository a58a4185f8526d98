"""Durations of all operations in an interval, by kind of operation.

Source: SDK-RFC 0067 "Default Implementation: LoggingMeter".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from triclinium_core.retry.couchbase import Service
from triclinium_core.telemetry.facts import MICROSECONDS
from triclinium_core.telemetry.histogram import Histogram

INTERVAL_MIN_MS = 1
"""Minimum length of an interval in a report, in milliseconds. It is not 0, because readers divide the counts by it."""

PERCENTILES: Mapping[str, float] = {"50.0": 50.0, "90.0": 90.0, "99.0": 99.0, "99.9": 99.9, "100.0": 100.0}
"""Reported percentiles in ascending order, by name in the JSON (RFC 0067 "Collected Percentiles")."""


class OperationDurations:
    """Histograms of durations in microseconds, one for each kind of operation.

    To count an operation with one call, look up its histogram in ``histograms`` and call ``add``.

    An interval begins at the start of the operation that it counts first. Operations that it counts later may have
    begun earlier.

    Args:
        on_first: function that is called with the time at which an interval begins.
    """

    def __init__(self, on_first: Callable[[float], None]) -> None:
        self.histograms: dict[str, Histogram] = {}
        """Histograms of the current interval, by name of the operation."""
        self._services: dict[str, Service] = {}
        self._on_first = on_first
        self._began_at = 0.0

    def __bool__(self) -> bool:
        return bool(self.histograms)

    def begin(self, service: Service, operation: str, began_at: float) -> Histogram:
        """Create and return the histogram of an operation that has no histogram in this interval.

        Args:
            began_at: time at which the operation began.
        """
        if not self.histograms:
            self._began_at = began_at
            self._on_first(began_at)
        self._services[operation] = service
        histogram = self.histograms[operation] = Histogram()
        return histogram

    def count(self, service: Service, operation: str, seconds: float, now: float) -> None:
        """Count an operation that has ended. Use this method if the cost of one more call does not matter."""
        histogram = self.histograms.get(operation)
        if histogram is None:
            histogram = self.begin(service, operation, now - seconds)
        histogram.add(int(seconds * MICROSECONDS))

    def take(self, now: float) -> str:
        """End the interval at ``now``. Return counts, percentiles and length as one line of JSON, and clear counts."""
        operations: dict[str, dict[str, object]] = {}
        for operation, histogram in self.histograms.items():
            operations.setdefault(self._services[operation].value, {})[operation] = {
                "total_count": histogram.total_count,
                "percentiles_us": dict(
                    zip(PERCENTILES, histogram.percentiles(tuple(PERCENTILES.values())), strict=True)
                ),
            }
        self.histograms.clear()
        seconds = max(INTERVAL_MIN_MS, round((now - self._began_at) * 1000)) / 1000
        # RFC 0067 "JSON Output Format & Logging" writes a whole number of seconds as an integer.
        interval = int(seconds) if seconds.is_integer() else seconds
        return json.dumps({"meta": {"emit_interval_s": interval}, "operations": operations}, separators=(",", ":"))
