"""Analytics query and its options.

Source: SDK-RFC 0057 "ICluster#AnalyticsQuery", "AnalyticsScanConsistency", "Priority"; SDK-RFC 0027 "Request Format".
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import ClassVar

from triclinium_core.checks import check_choice, check_flag
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.analytics.result import AnalyticsMetaData, metadata_of
from triclinium_core.services.service_request import HttpResponse
from triclinium_core.services.statement.identifiers import analytics_identifier
from triclinium_core.services.statement.statement_request import StatementRequest

PRIORITY = ("Analytics-Priority", "-1")
"""Header of a query with high priority. A lower number is a higher priority; queries without the header have 0."""


@unique
class AnalyticsScanConsistency(StrEnum):
    """Required freshness of the datasets that an analytics query reads."""

    NOT_BOUNDED = "not_bounded"
    """Read the datasets as they are. The default."""
    REQUEST_PLUS = "request_plus"
    """Wait until the datasets contain all mutations from before the query."""


class AnalyticsRequest(StatementRequest, frozen=True, kw_only=True):
    """SQL++ statement for the analytics service."""

    name: ClassVar[str] = "analytics_query"
    service: ClassVar[Service] = Service.ANALYTICS
    path: ClassVar[str] = "/analytics/service"

    priority: bool = False
    """Whether the query precedes queries without priority."""
    scan_consistency: AnalyticsScanConsistency | None = None
    """Required freshness of the data. None means ``NOT_BOUNDED``."""

    def __post_init__(self) -> None:
        StatementRequest.__post_init__(self)
        check_flag(self.priority, "priority")
        if self.scan_consistency is not None:
            check_choice(self.scan_consistency, "scan_consistency", AnalyticsScanConsistency)

    def identifier(self, name: str) -> str:
        """Return a name as an identifier in the syntax of the analytics service."""
        return analytics_identifier(name)

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the header for high priority; no headers without it."""
        return (PRIORITY,) if self.priority else ()

    def options(self) -> dict[str, object]:
        """Return the members of the request that contain the options. Omit options with the service's default."""
        options = StatementRequest.options(self)
        if self.scan_consistency is AnalyticsScanConsistency.REQUEST_PLUS:
            options["scan_consistency"] = self.scan_consistency.value
        return options

    def decode(self, answer: HttpResponse) -> AnalyticsMetaData:
        """Return the metadata in the response."""
        return metadata_of(answer)
