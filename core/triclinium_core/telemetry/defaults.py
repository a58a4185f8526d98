"""Default telemetry: log lines about slow operations, durations and orphans.

The default telemetry needs no other package, and no set-up except a log. Pass ``None`` instead of an instance of one of
these classes to turn its log lines off.

Source: SDK-RFC 0067 rev 27 "Default Implementation: ThresholdLoggingTracer", "Default Implementation: LoggingMeter",
"Orphaned Response Reporting".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triclinium_core.checks import Duration, check_duration, check_integer
from triclinium_core.retry.couchbase import Service

INTERVAL_MAX = 1e9
"""Maximum interval in seconds: about thirty years."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ThresholdLoggingTracer:
    """Settings of the log of slow operations: one line of JSON for each interval with at least one slow operation.

    An operation is slow if it takes at least as long as its threshold. Its duration starts with the encoding of the
    value and includes all retries. For a response with rows, it ends with the complete response, because the caller
    determines how long it takes to read the rows. All attributes except ``sample_size`` are durations in seconds.

    Raises:
        InvalidArgumentException: a threshold is not a duration or is below 0, ``emit_interval`` is not a duration above
            0 and up to ``INTERVAL_MAX``, or ``sample_size`` is not a whole number above 0.

    Source: SDK-RFC 0067 rev 27 "Default Implementation: ThresholdLoggingTracer".
    """

    kv_threshold: float = 0.5
    query_threshold: float = 1.0
    views_threshold: float = 1.0
    search_threshold: float = 1.0
    analytics_threshold: float = 1.0
    management_threshold: float = 1.0
    """Threshold of management requests. The RFC defines none for them."""
    sample_size: int = 10
    """Maximum number of operations that a line lists for each service. The line counts all slow operations."""
    emit_interval: float = 10.0
    """Seconds from the first slow operation to the line that lists it."""

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
        """Minimum duration of a slow operation in seconds, by service."""
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
    """Settings of the log of durations: one line of JSON for each interval with at least one operation.

    The line has a count and five percentiles for each kind of operation. ``emit_interval_s`` in the line is the number
    of seconds that the line covers. It is shorter than the interval if the client closes early.

    Raises:
        InvalidArgumentException: the interval is not a duration above 0 and up to ``INTERVAL_MAX``.

    Source: SDK-RFC 0067 rev 27 "Default Implementation: LoggingMeter".
    """

    emit_interval: float = 600.0
    """Seconds from the start of the first operation to the line that counts it."""

    def __init__(self, *, emit_interval: Duration = 600.0) -> None:
        object.__setattr__(self, "emit_interval", _interval(emit_interval))


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class OrphanReporter:
    """Settings of the log of orphans: one line of JSON for each interval with at least one orphan.

    An orphan is a response whose operation has ended. Unlike a timeout, it shows that the node responded, how late the
    response was, and, if reported, how long the node worked on the request.

    Raises:
        InvalidArgumentException: ``emit_interval`` is not a duration above 0 and up to ``INTERVAL_MAX``, or
            ``sample_size`` is not a whole number above 0.

    Source: SDK-RFC 0067 rev 27 "Orphaned Response Reporting".
    """

    emit_interval: float = 10.0
    """Seconds from the first orphan to the line that lists it."""
    sample_size: int = 10
    """Maximum number of orphans that a line lists for each service. The line counts all orphans."""

    def __init__(self, *, emit_interval: Duration = 10.0, sample_size: int = 10) -> None:
        object.__setattr__(self, "emit_interval", _interval(emit_interval))
        object.__setattr__(self, "sample_size", check_integer(sample_size, "sample_size", 1))


def _interval(duration: Duration) -> float:
    return float(check_duration(duration, "emit_interval", above_zero=True, most=INTERVAL_MAX))
