"""Metadata of query responses, according to SDK-RFC 0056 "QueryResult"."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.services.query.result import QueryMetaData, QueryMetrics, QueryStatus, QueryWarning
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer

QUERY = QueryRequest(statement="SELECT 1")

ANSWER = {
    "requestID": "922edd9f-23d7-4053-8d60-91f7cbc22c83",
    "clientContextID": "20165766-8ab7-4c1a-8ad6-5b58e2c2c6a0",
    "signature": {"*": "*"},
    "results": [],
    "warnings": [{"code": 5503, "msg": "index scan was cut"}],
    "status": "success",
    "metrics": {
        "elapsedTime": "1.5s",
        "executionTime": "22.5ms",
        "sortCount": 1,
        "resultCount": 2,
        "resultSize": 3,
        "mutationCount": 4,
        "errorCount": 5,
        "warningCount": 6,
        "serviceLoad": 12,
    },
    "profile": {"phaseTimes": {"authorize": "1ms"}},
}


def reported(**changes: object) -> QueryMetaData:
    """Return the metadata of the response with changed members."""
    return QUERY.decode(HttpResponse(200, json.dumps(ANSWER | changes).encode()))


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


def test_missing_members() -> None:
    """Missing metrics are read as 0, and a missing signature or profile as None."""
    metadata = QUERY.decode(HttpResponse(200, b'{"results":[],"status":"success"}'))

    assert QueryMetaData(request_id="", client_context_id="", status=QueryStatus.SUCCESS) == metadata
    assert (None, None, 0.0, 0, ()) == (
        metadata.signature,
        metadata.profile,
        metadata.metrics.elapsed_time,
        metadata.metrics.sort_count,
        metadata.warnings,
    )


@rows("signature", ["json", {"one": "number"}, ["a"], 5, True])
def test_signatures(signature: object) -> None:
    """A signature may be any JSON value."""
    assert signature == reported(signature=signature).signature


@rows(
    ("word", "status"),
    [
        ("running", QueryStatus.RUNNING),
        ("success", QueryStatus.SUCCESS),
        ("completed", QueryStatus.COMPLETED),
        ("unknown", QueryStatus.UNKNOWN),
        ("on holiday", QueryStatus.UNKNOWN),
        ("SUCCESS", QueryStatus.SUCCESS),
    ],
)
def test_status(word: str, status: QueryStatus) -> None:
    """The status of a query that has not failed gives its enum member in either case; any other word gives UNKNOWN."""
    assert status is reported(status=word).status


@rows("word", ["errors", "stopped", "timeout", "closed", "fatal", "aborted"])
def test_a_status_of_an_early_end(word: str) -> None:
    """A status that ended the query early raises MalformedAnswer if the response has no error."""
    with pytest.raises(MalformedAnswer, match=word):
        reported(status=word)


def test_every_status() -> None:
    """The enum has the ten statuses of the RFC."""
    words = ["running", "success", "errors", "completed", "stopped", "timeout", "closed", "fatal", "aborted", "unknown"]

    assert words == [status.value for status in QueryStatus]


@rows(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"status":5}',
        b'{"status":null}',
        b"[" * 100_000,
        b'{"status":"success","signature":' + b"[" * 100_000,
        b"\xff",
    ],
)
def test_invalid_responses(body: bytes) -> None:
    """An invalid response raises MalformedAnswer."""
    with pytest.raises(MalformedAnswer):
        QUERY.decode(HttpResponse(200, body))


@rows(
    "changes",
    [
        {"warnings": {}},
        {"warnings": None},
        {"metrics": []},
        {"metrics": {"elapsedTime": "soon", "executionTime": 7, "resultCount": "many", "resultSize": -1}},
        {"profile": []},
        {"requestID": 7, "clientContextID": None},
    ],
)
def test_an_unknown_value(changes: dict[str, object]) -> None:
    """If a part has an unknown form, it is read as empty, and the rest of the response is read."""
    found = QUERY.decode(HttpResponse(200, json.dumps({"status": "success"} | changes).encode()))

    assert QueryMetaData(request_id="", client_context_id="", status=QueryStatus.SUCCESS) == found


def test_a_warning_of_an_unknown_form() -> None:
    """The readable parts of a warning with an unknown form are kept, and the other warnings are read."""
    warnings = [{"code": "x", "msg": "a"}, {"code": 7, "msg": None}, 5, {"code": 1, "msg": "b"}]
    found = QUERY.decode(HttpResponse(200, json.dumps({"status": "success", "warnings": warnings}).encode()))

    assert [(0, "a"), (7, ""), (0, ""), (1, "b")] == [(each.code, each.message) for each in found.warnings]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["status", "metrics", "elapsedTime", "warnings", "code", "msg", "requestID", "profile"])
                | st.text(),
                inner,
            )
        ),
    )
)
def test_any_json(value: object) -> None:
    """Any JSON is decoded or raises MalformedAnswer."""
    for body in (value, ANSWER | value if isinstance(value, dict) else [value]):
        try:
            QUERY.decode(HttpResponse(200, json.dumps(body).encode()))
        except MalformedAnswer as error:
            assert len(str(error)) < 500
