"""Smallest request to each HTTP service, for pings.

Source: SDK-RFC 0061 "The ping Command".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from triclinium_core.retry.couchbase import TERMINAL_ERRORS, RetryAction, RetryReason, RetryRequest, Service
from triclinium_core.retry.tables import table_of
from triclinium_core.services.service_request import Acknowledged, HttpRequest, HttpResponse, ServiceRequest


class PingRequest(ServiceRequest, frozen=True, kw_only=True):
    """Base of the requests that ping a service on one node."""

    name: ClassVar[str] = "ping"
    target: ClassVar[str] = "/"

    @property
    def idempotent(self) -> bool:
        """True: a ping changes nothing."""
        return True

    def encode(self, remaining: float) -> HttpRequest:
        """Return a GET of a path that every node of the service has, without credentials (decision D66)."""
        return HttpRequest("GET", self.target, carries_credentials=False)

    def decode(self, answer: HttpResponse) -> Acknowledged:
        """Return an acknowledgement. Ignore the body."""
        return Acknowledged()


class PingQuery(PingRequest, frozen=True, kw_only=True):
    """Ping of the query service."""

    service: ClassVar[Service] = Service.QUERY
    target: ClassVar[str] = "/admin/ping"


class PingAnalytics(PingRequest, frozen=True, kw_only=True):
    """Ping of the analytics service."""

    service: ClassVar[Service] = Service.ANALYTICS
    target: ClassVar[str] = "/admin/ping"


class PingSearch(PingRequest, frozen=True, kw_only=True):
    """Ping of the search service."""

    service: ClassVar[Service] = Service.SEARCH
    target: ClassVar[str] = "/api/ping"


class PingViews(PingRequest, frozen=True, kw_only=True):
    """Ping of the views service."""

    service: ClassVar[Service] = Service.VIEWS


class PingManagement(PingRequest, frozen=True, kw_only=True):
    """Ping of the cluster manager, at ``/pools`` because ``/`` is the web console."""

    service: ClassVar[Service] = Service.MANAGEMENT
    target: ClassVar[str] = "/pools"


PINGS: Mapping[Service, type[PingRequest]] = table_of(
    (ping.service, ping) for ping in (PingQuery, PingAnalytics, PingSearch, PingViews, PingManagement)
)
"""Class of the ping for each HTTP service."""


class NoRetry:
    """Strategy of pings, which never retries, because a ping reports the first failure.

    A ping also reports status 302 of the views service, after which a view query is retried under every strategy
    (decision C20).
    """

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Refuse the retry. For a terminal reason, the returned action contains the error of that reason."""
        return RetryAction.no_retry(TERMINAL_ERRORS.get(reason))
