"""Metadata of analytics responses, according to SDK-RFC 0057 "AnalyticsResult"."""

from __future__ import annotations

import pytest

from tests.core.services.answers import answered
from triclinium_core.services.analytics import result
from triclinium_core.services.analytics.analytics_request import AnalyticsRequest
from triclinium_core.services.service_request import MalformedAnswer

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
    return AnalyticsRequest(statement="SELECT 1").decode(answered(ANSWER | changes))


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


def test_status() -> None:
    """A status of the RFC gives its enum member, or raises MalformedAnswer if it ended the query early or is no string;
    any other word gives UNKNOWN.
    """
    successes, failures = ("running", "success"), ("timeout", "failed", "fatal")

    assert {*successes, *failures, "unknown"} == {status.value for status in result.AnalyticsStatus}
    for word in successes:
        assert result.AnalyticsStatus(word) is reported(status=word).status
    for word in ("unknown", "on holiday"):
        assert result.AnalyticsStatus.UNKNOWN is reported(status=word).status
    for status in (*failures, 5, None):
        with pytest.raises(MalformedAnswer):
            reported(status=status)
