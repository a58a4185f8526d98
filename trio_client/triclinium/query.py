"""Results and options of SQL++ queries; ``Cluster.query`` and ``Scope.query`` run them."""

from __future__ import annotations

from triclinium._services.query import QueryResult
from triclinium_core.services.query.query_request import QueryProfile, QueryScanConsistency
from triclinium_core.services.query.result import QueryMetaData, QueryMetrics, QueryStatus, QueryWarning

__all__ = [
    "QueryMetaData",
    "QueryMetrics",
    "QueryProfile",
    "QueryResult",
    "QueryScanConsistency",
    "QueryStatus",
    "QueryWarning",
]
