"""Requests for analytics queries, according to SDK-RFC 0057 "ICluster#AnalyticsQuery"."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from tests.refusals import refused
from tests.rows import rows
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.analytics.analytics_request import AnalyticsRequest, AnalyticsScanConsistency
from triclinium_core.services.statement.parameters import Parameters, RawOptions
from triclinium_core.services.statement.statement_request import QueryContext

STATEMENT = "SELECT COUNT(*) AS n FROM people"


def members(remaining: float = math.inf, **options: Any) -> dict[str, object]:
    """Return the members of the body of an analytics request with these options."""
    sent = AnalyticsRequest(statement=STATEMENT, **options).encode(remaining)
    decoded: dict[str, object] = msgspec.json.decode(sent.body)
    return decoded


@rows(
    ("options", "expected"),
    [
        ({}, {}),
        ({"scan_consistency": AnalyticsScanConsistency.REQUEST_PLUS}, {"scan_consistency": "request_plus"}),
        ({"scan_consistency": AnalyticsScanConsistency.NOT_BOUNDED}, {}),
        ({"client_context_id": "foobar"}, {"client_context_id": "foobar"}),
        ({"readonly": True}, {"readonly": True}),
        ({"parameters": Parameters([1], {"age": 3})}, {"args": [1], "$age": 3}),
        ({"raw": RawOptions({"max-warnings": 10})}, {"max-warnings": 10}),
        ({"query_context": QueryContext("travel", "inventory")}, {"query_context": "default:`travel`.`inventory`"}),
        ({"priority": True}, {}),
        ({"remaining": 75.0}, {"timeout": "75000ms"}),
    ],
)
def test_members(options: dict[str, Any], expected: dict[str, object]) -> None:
    """Except the priority, each option that is not a default has the RFC's member; other options have none."""
    assert {"statement": STATEMENT, **expected} == members(**options)


@rows(("priority", "headers"), [(False, ()), (True, (("Analytics-Priority", "-1"),))])
def test_priority(priority: bool, headers: tuple[tuple[str, str], ...]) -> None:
    """A query sends a header only if it has priority, and its body has no member for it (SDK-RFC 0057 "Priority")."""
    sent = AnalyticsRequest(statement=STATEMENT, priority=priority).encode(1.0)

    assert headers == sent.headers
    assert ("POST", "/analytics/service") == (sent.method, sent.target)
    assert b"riority" not in sent.body


def test_service_and_context() -> None:
    """The request is for the analytics service, streams its rows, and is idempotent only if it is readonly."""
    request = AnalyticsRequest(statement=STATEMENT)
    context = AnalyticsRequest(statement=STATEMENT, client_context_id="c1", readonly=True).error_context()

    assert (Service.ANALYTICS, "results", False) == (request.service, request.rows_of, request.idempotent)
    assert ("analytics", "analytics_query", True, STATEMENT, "c1") == (
        context.service,
        context.operation,
        context.idempotent,
        context.statement,
        context.client_context_id,
    )


@rows(
    ("options", "parameter"),
    [
        ({"statement": ""}, "statement"),
        ({"priority": -1}, "priority"),
        ({"readonly": "yes"}, "readonly"),
        ({"scan_consistency": "request_plus"}, "scan_consistency"),
        ({"raw": RawOptions({"statement": "DROP"})}, "raw"),
        ({"raw": RawOptions({"$age": 1})}, "raw"),
    ],
)
def test_invalid_arguments(options: dict[str, Any], parameter: str) -> None:
    """An invalid argument raises an error with its name when the request is created."""
    refused(parameter, AnalyticsRequest, **{"statement": STATEMENT, **options})
