"""The durations of all operations of an interval, by kind.

Source: SDK-RFC 0067 "LoggingMeter".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.telemetry.facts import MICROSECONDS
from triclinium_core.telemetry.histogram import Histogram

PERCENTILES: Mapping[str, float] = {"50.0": 50.0, "90.0": 90.0, "99.0": 99.0, "99.9": 99.9, "100.0": 100.0}
"""What is told of each kind of operation, ascending, by the name in the JSON (RFC 0067 "Collected Percentiles")."""


class OperationDurations:
    """A histogram of microseconds for each kind of operation.

    An operation that ends costs one call: that of ``add`` of its histogram, which the caller finds in ``histograms``.

    Args:
        emit_interval: seconds, for the report.
        on_first: told when the first operation of an interval ends.
    """

    def __init__(self, emit_interval: float, on_first: Callable[[float], None]) -> None:
        self.histograms: dict[str, Histogram] = {}
        """Of the present interval, by the name of the operation."""
        self._services: dict[str, Service] = {}
        self._emit_interval = emit_interval
        self._on_first = on_first

    def __bool__(self) -> bool:
        return bool(self.histograms)

    def begin(self, service: Service, operation: str, now: float) -> Histogram:
        """Return the histogram of an operation that has none in this interval."""
        if not self.histograms:
            self._on_first(now)
        self._services[operation] = service
        histogram = self.histograms[operation] = Histogram()
        return histogram

    def count(self, service: Service, operation: str, seconds: float, now: float) -> None:
        """Count an operation that is over, where an extra call does not matter."""
        histogram = self.histograms.get(operation)
        if histogram is None:
            histogram = self.begin(service, operation, now)
        histogram.add(int(seconds * MICROSECONDS))

    def take(self) -> str:
        """Return what was counted as one line of JSON, and forget it."""
        operations: dict[str, dict[str, object]] = {}
        for operation, histogram in self.histograms.items():
            operations.setdefault(self._services[operation].value, {})[operation] = {
                "total_count": histogram.total_count,
                "percentiles_us": dict(
                    zip(PERCENTILES, histogram.percentiles(tuple(PERCENTILES.values())), strict=True)
                ),
            }
        self.histograms.clear()
        # A whole number stands there as one, as in the RFC.
        seconds = self._emit_interval
        interval = int(seconds) if seconds.is_integer() else seconds
        return json.dumps({"meta": {"emit_interval_s": interval}, "operations": operations}, separators=(",", ":"))
