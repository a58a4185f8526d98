"""Metadata of query responses, according to SDK-RFC 0056 "QueryResult"."""

from __future__ import annotations

import pytest

from tests.core.services.answers import answered
from tests.rows import rows
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.services.query.result import QueryMetaData, QueryMetrics, QueryStatus, QueryWarning
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer

QUERY = QueryRequest(statement="SELECT 1")

METRICS = {
    "elapsedTime": "1.5s",
    "executionTime": "22.5ms",
    "sortCount": 1,
    "resultCount": 2,
    "resultSize": 3,
    "mutationCount": 4,
    "errorCount": 5,
    "warningCount": 6,
    "serviceLoad": 12,
}
ANSWER = {
    "requestID": "922edd9f-23d7-4053-8d60-91f7cbc22c83",
    "clientContextID": "20165766-8ab7-4c1a-8ad6-5b58e2c2c6a0",
    "signature": {"*": "*"},
    "results": [],
    "warnings": [{"code": 5503, "msg": "index scan was cut"}],
    "status": "success",
    "metrics": METRICS,
    "profile": {"phaseTimes": {"authorize": "1ms"}},
}


def reported(**changes: object) -> QueryMetaData:
    """Return the metadata of the response with changed members."""
    return QUERY.decode(answered(ANSWER | changes))


def test_metadata() -> None:
    """All fields are parsed, with times in seconds; unknown members are ignored."""
    expected = QueryMetaData(
        request_id="922edd9f-23d7-4053-8d60-91f7cbc22c83",
        client_context_id="20165766-8ab7-4c1a-8ad6-5b58e2c2c6a0",
        status=QueryStatus.SUCCESS,
        signature={"*": "*"},
        warnings=(QueryWarning(5503, "index scan was cut"),),
        metrics=QueryMetrics(
            elapsed_time=1.5,
            execution_time=0.0225,
            sort_count=1,
            result_count=2,
            result_size=3,
            mutation_count=4,
            error_count=5,
            warning_count=6,
        ),
        profile={"phaseTimes": {"authorize": "1ms"}},
    )

    assert expected == reported()


@rows("signature", ["json", {"one": "number"}, ["a"], 5, True])
def test_signatures(signature: object) -> None:
    """A signature may be any JSON value."""
    assert signature == reported(signature=signature).signature


SUCCESSES, FAILURES = (
    ("running", "success", "completed"),
    ("errors", "stopped", "timeout", "closed", "fatal", "aborted"),
)


def test_status() -> None:
    """A status of the RFC gives its enum member in either case, or raises MalformedAnswer if it ended the query early
    and the response has no error; any other word gives UNKNOWN.
    """
    assert {*SUCCESSES, *FAILURES, "unknown"} == {status.value for status in QueryStatus}
    for word in SUCCESSES:
        assert QueryStatus(word) is reported(status=word).status is reported(status=word.upper()).status
    for word in ("unknown", "on holiday"):
        assert QueryStatus.UNKNOWN is reported(status=word).status
    for word in FAILURES:
        with pytest.raises(MalformedAnswer, match=word):
            reported(status=word)


@rows(
    "body",
    [b"[]", b"{}", b'{"status":5}', b'{"status":null}', b'{"status":"success","signature":' + b"[" * 100_000],
)
def test_invalid_responses(body: bytes) -> None:
    """A response without a valid status, or with a signature that is nested too deeply, raises MalformedAnswer."""
    with pytest.raises(MalformedAnswer):
        QUERY.decode(HttpResponse(200, body))


@rows(
    "changes",
    [
        {},
        {"warnings": {}},
        {"warnings": None},
        {"metrics": []},
        {"metrics": {"elapsedTime": "soon", "executionTime": 7, "resultCount": "many", "resultSize": -1}},
        {"profile": []},
        {"requestID": 7, "clientContextID": None},
    ],
)
def test_an_unknown_value(changes: dict[str, object]) -> None:
    """A part that is missing or has an unknown form is read as empty, and the rest of the response is read."""
    found = QUERY.decode(answered({"status": "success"} | changes))

    assert QueryMetaData(request_id="", client_context_id="", status=QueryStatus.SUCCESS) == found
    assert (None, None, 0.0, 0) == (
        found.signature,
        found.profile,
        found.metrics.elapsed_time,
        found.metrics.sort_count,
    )


def test_a_warning_of_an_unknown_form() -> None:
    """The readable parts of a warning with an unknown form are kept, and the other warnings are read."""
    warnings = [{"code": "x", "msg": "a"}, {"code": 7, "msg": None}, 5, {"code": 1, "msg": "b"}]
    found = QUERY.decode(answered({"status": "success", "warnings": warnings}))

    assert [(0, "a"), (7, ""), (0, ""), (1, "b")] == [(each.code, each.message) for each in found.warnings]
