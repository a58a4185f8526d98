"""A query for analytics and its options.

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
"""Header of what goes before others: a lower number is a higher priority, and everything else has 0."""


@unique
class AnalyticsScanConsistency(StrEnum):
    """How new the datasets have to be that an analytics query reads."""

    NOT_BOUNDED = "not_bounded"
    """As they are; what an analytics query does unless told otherwise."""
    REQUEST_PLUS = "request_plus"
    """With all mutations from before the query; it waits until they have arrived."""


class AnalyticsRequest(StatementRequest, frozen=True, kw_only=True):
    """Run a statement in SQL++ for analytics."""

    name: ClassVar[str] = "analytics_query"
    service: ClassVar[Service] = Service.ANALYTICS
    path: ClassVar[str] = "/analytics/service"

    priority: bool = False
    """Whether it goes before those without."""
    scan_consistency: AnalyticsScanConsistency | None = None

    def __post_init__(self) -> None:
        StatementRequest.__post_init__(self)
        check_flag(self.priority, "priority")
        if self.scan_consistency is not None:
            check_choice(self.scan_consistency, "scan_consistency", AnalyticsScanConsistency)

    def identifier(self, name: str) -> str:
        """Return a name as an identifier of the service."""
        return analytics_identifier(name)

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the priority, which stands in no body."""
        return (PRIORITY,) if self.priority else ()

    def options(self) -> dict[str, object]:
        """Return the members of the request that stand for options; what is not set is left out."""
        options = StatementRequest.options(self)
        if self.scan_consistency is AnalyticsScanConsistency.REQUEST_PLUS:
            options["scan_consistency"] = self.scan_consistency.value
        return options

    def decode(self, answer: HttpResponse) -> AnalyticsMetaData:
        """Return what comes beside the rows."""
        return metadata_of(answer)
