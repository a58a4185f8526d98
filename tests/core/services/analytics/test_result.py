"""Metadata of analytics responses, according to SDK-RFC 0057 "AnalyticsResult"."""

from __future__ import annotations

import json

import pytest

from tests.rows import rows
from triclinium_core.services.analytics import result
from triclinium_core.services.analytics.analytics_request import AnalyticsRequest
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer

ANSWER = {
    "requestID": "a1c4115c",
    "clientContextID": "c1",
    "signature": {"*": "*"},
    "results": [],
    "warnings": [{"code": 24000, "msg": "odd"}],
    "plans": {},
    "status": "success",
    "metrics": {
        "elapsedTime": "22.5ms",
        "executionTime": "1.5s",
        "resultCount": 1,
        "resultSize": 18,
        "processedObjects": 7,
        "errorCount": 2,
        "warningCount": 3,
    },
}


def reported(**changes: object) -> result.AnalyticsMetaData:
    """Return the metadata of the response with changed members."""
    return AnalyticsRequest(statement="SELECT 1").decode(HttpResponse(200, json.dumps(ANSWER | changes).encode()))


def test_metadata() -> None:
    """All fields are parsed, with times in seconds; unknown members are ignored."""
    expected = result.AnalyticsMetaData(
        request_id="a1c4115c",
        client_context_id="c1",
        status=result.AnalyticsStatus.SUCCESS,
        signature={"*": "*"},
        warnings=(result.AnalyticsWarning(24000, "odd"),),
        metrics=result.AnalyticsMetrics(
            elapsed_time=0.0225,
            execution_time=1.5,
            result_count=1,
            result_size=18,
            error_count=2,
            processed_objects=7,
            warning_count=3,
        ),
    )

    assert expected == reported()
    assert result.AnalyticsMetrics() == reported(metrics=None).metrics


@rows(
    ("word", "status"),
    [
        ("running", result.AnalyticsStatus.RUNNING),
        ("success", result.AnalyticsStatus.SUCCESS),
        ("unknown", result.AnalyticsStatus.UNKNOWN),
        ("on holiday", result.AnalyticsStatus.UNKNOWN),
    ],
)
def test_status(word: str, status: result.AnalyticsStatus) -> None:
    """The status of a query that has not failed gives its enum member, and any other word gives UNKNOWN."""
    assert status is reported(status=word).status


@rows("changes", [{"status": "timeout"}, {"status": "failed"}, {"status": "fatal"}, {"status": 5}, {"status": None}])
def test_an_invalid_status(changes: dict[str, object]) -> None:
    """A status that ended the query early, or a status that is not a string, raises MalformedAnswer."""
    with pytest.raises(MalformedAnswer):
        reported(**changes)


def test_every_status() -> None:
    """The enum has the six statuses of the RFC."""
    assert ["running", "success", "timeout", "failed", "fatal", "unknown"] == [
        each.value for each in result.AnalyticsStatus
    ]
