"""Results and options of analytics queries; ``Cluster.analytics_query`` and ``Scope.analytics_query`` run them."""

from __future__ import annotations

from triclinium._services.results import AnalyticsResult
from triclinium_core.services.analytics.analytics_request import AnalyticsScanConsistency
from triclinium_core.services.analytics.result import (
    AnalyticsMetaData,
    AnalyticsMetrics,
    AnalyticsStatus,
    AnalyticsWarning,
)

__all__ = [
    "AnalyticsMetaData",
    "AnalyticsMetrics",
    "AnalyticsResult",
    "AnalyticsScanConsistency",
    "AnalyticsStatus",
    "AnalyticsWarning",
]
