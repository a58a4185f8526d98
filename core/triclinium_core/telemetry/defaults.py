"""Default telemetry: reports of slow operations, durations and late answers in the log.

They need no package and no set-up except a log. ``None`` in place of one turns it off.

Source: SDK-RFC 0067 rev 27 "ThresholdLoggingTracer", "LoggingMeter", "Orphaned Response Reporting".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triclinium_core.checks import Duration, check_duration, check_integer
from triclinium_core.retry.couchbase import Service

INTERVAL_MAX = 1e9
"""Seconds: thirty years."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ThresholdLoggingTracer:
    """Have the slowest operations logged, as one line of JSON an interval in which there were any.

    An operation counts from the encoding of its value to its end, with all its retries: a query until its answer is
    whole, for the time of whoever reads its rows is not the query's. One that takes its threshold or longer is slow. Durations are kept as seconds.

    Raises:
        InvalidArgumentException: a duration is not one or is below 0, or an interval or ``sample_size`` is not above 0.

    Source: SDK-RFC 0067 rev 27 "ThresholdLoggingTracer".
    """

    kv_threshold: float = 0.5
    query_threshold: float = 1.0
    views_threshold: float = 1.0
    search_threshold: float = 1.0
    analytics_threshold: float = 1.0
    management_threshold: float = 1.0
    """Of the requests that manage a cluster; the RFC has none for them."""
    sample_size: int = 10
    """Operations that are listed for each service; all of them are counted."""
    emit_interval: float = 10.0
    """From the first slow operation to the line that lists it."""

    def __init__(
        self,
        *,
        kv_threshold: Duration = 0.5,
        query_threshold: Duration = 1.0,
        views_threshold: Duration = 1.0,
        search_threshold: Duration = 1.0,
        analytics_threshold: Duration = 1.0,
        management_threshold: Duration = 1.0,
        sample_size: int = 10,
        emit_interval: Duration = 10.0,
    ) -> None:
        for name, threshold in (
            ("kv_threshold", kv_threshold),
            ("query_threshold", query_threshold),
            ("views_threshold", views_threshold),
            ("search_threshold", search_threshold),
            ("analytics_threshold", analytics_threshold),
            ("management_threshold", management_threshold),
        ):
            object.__setattr__(self, name, check_duration(threshold, name, endless=True))
        object.__setattr__(self, "sample_size", check_integer(sample_size, "sample_size", 1))
        object.__setattr__(self, "emit_interval", _interval(emit_interval))

    @property
    def thresholds(self) -> Mapping[Service, float]:
        """The seconds from which an operation is slow, by its service."""
        return {
            Service.KV: self.kv_threshold,
            Service.QUERY: self.query_threshold,
            Service.VIEWS: self.views_threshold,
            Service.SEARCH: self.search_threshold,
            Service.ANALYTICS: self.analytics_threshold,
            Service.MANAGEMENT: self.management_threshold,
        }


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class LoggingMeter:
    """Have the durations of all operations logged, as one line of JSON an interval in which there were any.

    The line has a count and five percentiles for each kind of operation. Its ``emit_interval_s`` is the true number of
    seconds that it covers, also if the client closes early.

    Raises:
        InvalidArgumentException: the interval is no duration, or not above 0.

    Source: SDK-RFC 0067 rev 27 "LoggingMeter".
    """

    emit_interval: float = 600.0
    """Seconds from the start of the first operation to the line that counts it."""

    def __init__(self, *, emit_interval: Duration = 600.0) -> None:
        object.__setattr__(self, "emit_interval", _interval(emit_interval))


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class OrphanReporter:
    """Have answers logged for which nobody waited any more, as one line of JSON an interval in which there were any.

    They tell what a timeout cannot: that the node did answer, how late, and how long it had worked on it.

    Raises:
        InvalidArgumentException: the interval is no duration, or it or ``sample_size`` is not above 0.

    Source: SDK-RFC 0067 rev 27 "Orphaned Response Reporting".
    """

    emit_interval: float = 10.0
    """Seconds from the first orphan to the line that lists it."""
    sample_size: int = 10
    """Orphans that are listed for each service; all of them are counted."""

    def __init__(self, *, emit_interval: Duration = 10.0, sample_size: int = 10) -> None:
        object.__setattr__(self, "emit_interval", _interval(emit_interval))
        object.__setattr__(self, "sample_size", check_integer(sample_size, "sample_size", 1))


def _interval(duration: Duration) -> float:
    return float(check_duration(duration, "emit_interval", above_zero=True, most=INTERVAL_MAX))
