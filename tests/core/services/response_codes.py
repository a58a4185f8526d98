"""The lines of the RFC's retry list for services, each with a request and a response that matches the line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from triclinium_core.retry.couchbase import RETRYABLE_ERROR_CODES, RETRYABLE_HTTP_STATUSES, Service
from triclinium_core.retry.couchbase.tables.service_responses import RetryableCode
from triclinium_core.services.analytics.analytics_request import AnalyticsRequest
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.services.search.queries import MatchAllQuery
from triclinium_core.services.search.search_request import SearchQueryRequest, SearchRequest
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.services.views.view_request import ViewRequest
from triclinium_core.testing.fakes.services.answers import FakeAnswer

SAID = "SELECT hotels"
"""Statement by which the fake's script selects the request."""
INDEX = "hotels"
VIEW = "hotels/by_name"

ASKED: dict[Service, tuple[str, ServiceRequest]] = {
    Service.QUERY: (SAID, QueryRequest(statement=SAID)),
    Service.ANALYTICS: (SAID, AnalyticsRequest(statement=SAID)),
    Service.SEARCH: (INDEX, SearchQueryRequest(index=INDEX, search=SearchRequest(MatchAllQuery()))),
    Service.VIEWS: (VIEW, ViewRequest(bucket_name="travel", design_document="hotels", view_name="by_name")),
}


class ListedAnswer(NamedTuple):
    """One line of the list, with a request and a matching response."""

    line: RetryableCode
    said: str
    """Text by which the fake's script selects the request."""
    request: ServiceRequest
    failing: FakeAnswer
    """Response that matches the line."""

    @property
    def answers(self) -> Sequence[FakeAnswer]:
        """The matching response twice, then a response with one row."""
        return self.failing, self.failing, FakeAnswer(rows=[{"id": "a", "key": None, "value": 1}])


def listed_answers() -> Iterator[ListedAnswer]:
    """Yield each line of the retry list with its request and response."""
    for line in (*RETRYABLE_ERROR_CODES.values(), *RETRYABLE_HTTP_STATUSES.values()):
        said, request = ASKED[line.service]
        if line.service in (Service.QUERY, Service.ANALYTICS):
            failing = FakeAnswer(errors=[{"code": line.code, "msg": f"no {line.message_contains}"}])
        else:
            body = '{"error":"not_found","reason":"missing"}' if line.code == 404 else '{"reason":"busy"}'
            failing = FakeAnswer(http_status=line.code, body=body)
        yield ListedAnswer(line, said, request, failing)
