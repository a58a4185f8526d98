"""What the analytics service tells beside the rows, line by line of SDK-RFC 0057 "AnalyticsResult"."""

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


def told(**changes: object) -> result.AnalyticsMetaData:
    """Return what the answer tells with these members instead."""
    return AnalyticsRequest(statement="SELECT 1").decode(HttpResponse(200, json.dumps(ANSWER | changes).encode()))


def test_all_of_it() -> None:
    """Every field, with times in seconds; what is not known is passed over."""
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

    assert expected == told()
    assert result.AnalyticsMetrics() == told(metrics=None).metrics


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
    """By its word in lower case; another word is unknown."""
    assert status is told(status=word).status


@rows("changes", [{"status": "timeout"}, {"status": "failed"}, {"status": "fatal"}, {"status": 5}, {"status": None}])
def test_what_is_no_answer(changes: dict[str, object]) -> None:
    """A query that ended early without naming an error is no success; nor is an answer of another form."""
    with pytest.raises(MalformedAnswer):
        told(**changes)


def test_every_status() -> None:
    """The enum has the six of the RFC."""
    assert ["running", "success", "timeout", "failed", "fatal", "unknown"] == [
        each.value for each in result.AnalyticsStatus
    ]
