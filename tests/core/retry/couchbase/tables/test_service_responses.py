"""What an answer of an HTTP service asks for, against the RFC's list."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.errors import CouchbaseException
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.tables.service_responses import (
    RETRYABLE_ERROR_CODES,
    RETRYABLE_HTTP_STATUSES,
    ServiceVerdict,
    classify,
)

R = RetryReason
QUERY, ANALYTICS, SEARCH, VIEWS, MANAGEMENT = (
    Service.QUERY,
    Service.ANALYTICS,
    Service.SEARCH,
    Service.VIEWS,
    Service.MANAGEMENT,
)

ERROR_CODES_OF_THE_RFC: dict[tuple[Service, int], tuple[RetryReason, str, str]] = {
    (QUERY, 4040): (R.QUERY_PREPARED_STATEMENT_FAILURE, "PreparedStatementFailure", ""),
    (QUERY, 4050): (R.QUERY_PREPARED_STATEMENT_FAILURE, "PreparedStatementFailure", ""),
    (QUERY, 4070): (R.QUERY_PREPARED_STATEMENT_FAILURE, "PreparedStatementFailure", ""),
    (QUERY, 5000): (R.QUERY_INDEX_NOT_FOUND, "IndexNotFound", "queryport.indexNotFound"),
    (ANALYTICS, 23000): (R.ANALYTICS_TEMPORARY_FAILURE, "TemporaryFailure", ""),
    (ANALYTICS, 23003): (R.ANALYTICS_TEMPORARY_FAILURE, "TemporaryFailure", ""),
    (ANALYTICS, 23007): (R.ANALYTICS_TEMPORARY_FAILURE, "JobQueueFull", ""),
}
"""SDK-RFC 0049 "Response Code Retry List"; the classes are SDK-RFC 0058's."""

VIEW_STATUSES_OF_THE_RFC = [300, 301, 303, 307, 401, 408, 409, 412, 416, 417, 501, 502, 503, 504]
"""Without 302, which has its own line (decision C20), and without 404 and 500, which depend on the body."""

TEXT_404 = '"reason":"missing"'


def body_of(code: object, message: object = "", **more: object) -> str:
    """Return a body of query or analytics whose first error has ``code``."""
    return json.dumps({"errors": [{"code": code, "msg": message}], **more})


def error_class(name: str) -> type[CouchbaseException]:
    """Return the class of a name without its suffix."""
    found: type[CouchbaseException] = getattr(errors, f"{name}Exception")
    return found


def reason(service: Service, http_status: int, body: bytes | str = b"") -> RetryReason | None:
    """Return the reason alone."""
    return classify(service, http_status, body).reason


def test_the_error_codes_are_those_of_the_rfc() -> None:
    """Seven codes with reason, class and words, and none besides."""
    actual = {key: (line.reason, line.error, line.message_contains) for key, line in RETRYABLE_ERROR_CODES.items()}
    expected = {key: (why, error_class(name), words) for key, (why, name, words) in ERROR_CODES_OF_THE_RFC.items()}

    assert expected == actual
    assert all(str(code) in line.clause for (_, code), line in RETRYABLE_ERROR_CODES.items())


def test_the_http_statuses_are_those_of_the_rfc() -> None:
    """One for search, the view list with 302 apart, and the two that depend on the body."""
    expected = {
        (SEARCH, 429): (R.SEARCH_TOO_MANY_REQUESTS, errors.RateLimitedException),
        (VIEWS, 302): (R.VIEWS_NO_ACTIVE_PARTITION, CouchbaseException),
        (VIEWS, 404): (R.VIEWS_TEMPORARY_FAILURE, errors.ViewNotFoundException),
        (VIEWS, 500): (R.VIEWS_TEMPORARY_FAILURE, CouchbaseException),
    } | {
        (VIEWS, status): (
            R.VIEWS_TEMPORARY_FAILURE,
            errors.AuthenticationFailureException if status == 401 else CouchbaseException,
        )
        for status in VIEW_STATUSES_OF_THE_RFC
    }

    assert expected == {key: (line.reason, line.error) for key, line in RETRYABLE_HTTP_STATUSES.items()}
    assert all(str(status) in line.clause for (_, status), line in RETRYABLE_HTTP_STATUSES.items())
    assert all(not line.message_contains for line in RETRYABLE_HTTP_STATUSES.values())


@rows("http_status", [200, 400, 404, 500, 503])
@rows(("service", "code"), ERROR_CODES_OF_THE_RFC)
def test_listed_codes(service: Service, code: int, http_status: int) -> None:
    """A listed code is retried under any HTTP status, also where it came with status 200."""
    why, error, words = ERROR_CODES_OF_THE_RFC[service, code]
    message = f"about {words} and more"
    verdict = classify(service, http_status, body_of(code, message))
    line = RETRYABLE_ERROR_CODES[service, code]

    clause = f"RFC 0049 Response Code Retry List: {line.clause}"
    expected = ServiceVerdict(why, error_class(error), clause, message, code)
    assert expected == verdict


@rows(
    ("service", "errors_", "expected", "text"),
    [
        (QUERY, [{"code": 5000, "msg": "an internal error"}], None, "an internal error"),
        (QUERY, [{"code": 5000, "msg": "queryport.indexnotfound"}], None, "queryport.indexnotfound"),
        (QUERY, [{"code": 1000, "msg": "queryport.indexNotFound"}], None, "queryport.indexNotFound"),
        (ANALYTICS, [{"code": 5000, "msg": "queryport.indexNotFound"}], None, "queryport.indexNotFound"),
        *((QUERY, [{"code": code}], None, "") for code in (4060, 4080, 4090, 23000, -4040)),
        *((ANALYTICS, [{"code": code}], None, "") for code in (4040, 23001)),
        (QUERY, [{"code": 4040, "msg": ["stale"]}], R.QUERY_PREPARED_STATEMENT_FAILURE, ""),
        # Decision C22: the first error decides, and so do its own words.
        (QUERY, [{"code": 4040, "msg": "stale"}, {"code": 3000}], R.QUERY_PREPARED_STATEMENT_FAILURE, "stale"),
        (QUERY, [{"code": 3000, "msg": "syntax"}, {"code": 4040, "msg": "stale"}], None, "syntax"),
        (QUERY, [{"code": 5000, "msg": "x"}, {"code": 5000, "msg": "queryport.indexNotFound"}], None, "x"),
    ],
)
def test_other_codes(service: Service, errors_: object, expected: RetryReason | None, text: str) -> None:
    """A code without a line, of the other service, or without the words, is surfaced, whatever the HTTP status."""
    for http_status in (200, 400, 503):
        verdict = classify(service, http_status, json.dumps({"errors": errors_, "metrics": {"x": 1}}))
        assert (expected, text) == (verdict.reason, verdict.text)
        assert expected is not None or (CouchbaseException, True) == (
            verdict.error,
            "not in the list" in verdict.clause,
        )


@rows("service", [QUERY, ANALYTICS])
@rows(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'"4040"',
        b"4040",
        b"{}",
        b'{"errors": null}',
        b'{"errors": []}',
        b'{"errors": {}}',
        b"<html>503</html>",
        b"\xff\xfe\x00",
        b"\xff",
        b"[" * 100_000,
        b'{"errors": [{"code": ' + b"4" * 5000 + b"}]}",
        b'{"code": 4040}',
    ],
)
def test_bodies_without_errors(service: Service, body: bytes) -> None:
    """A body that names no error is judged by the HTTP status, and nothing in it can raise."""
    assert (None, None) == (reason(service, 299, body), classify(service, 299, body).error)
    assert (None, CouchbaseException) == (reason(service, 300, body), classify(service, 300, body).error)
    assert classify(service, 503, body).clause.endswith("no error code in the body")


@rows("http_status", [200, 400])
@rows("service", [QUERY, ANALYTICS])
@rows(
    "body",
    [
        '{"errors": "4040"}',
        '{"errors": [4040]}',
        '{"errors": [null, {"code": 4040}]}',
        '{"errors": [{}]}',
        '{"errors": [{"code": "4040"}]}',
        '{"errors": [{"code": 4040.0}]}',
        '{"errors": [{"code": true}]}',
        '{"errors": [{"code": null, "msg": 1}]}',
        '{"errors": [[4040, "stale"]]}',
    ],
)
def test_errors_without_a_code(service: Service, http_status: int, body: str) -> None:
    """A body that names errors is no success, even under status 200; without a code it is not in the list."""
    verdict = classify(service, http_status, body)

    assert (None, CouchbaseException) == (verdict.reason, verdict.error)
    assert verdict.clause.endswith("no error code in the body")


@rows("service", [SEARCH, VIEWS, MANAGEMENT])
@rows("body", [b"", b"<html>", b'{"error":"x","reason":"badarg"}', TEXT_404, body_of(4040)])
def test_statuses(service: Service, body: bytes | str) -> None:
    """Search has 429, the views have their list, and management nothing; what is below 300 is a success."""
    listed = {
        (SEARCH, 429): R.SEARCH_TOO_MANY_REQUESTS,
        (VIEWS, 302): R.VIEWS_NO_ACTIVE_PARTITION,
        **{(VIEWS, status): R.VIEWS_TEMPORARY_FAILURE for status in VIEW_STATUSES_OF_THE_RFC},
    }
    for http_status in set(range(200, 600)) - ({404, 500} if service is VIEWS else set()):
        verdict = classify(service, http_status, body)
        assert listed.get((service, http_status)) is verdict.reason
        assert (http_status < 300) is (verdict.error is None)


@rows(
    ("body", "retried"),
    [
        ('{"error":"not_found","reason":"missing"}', True),
        ('{"error": "not_found", "reason": "missing"}', True),
        ('{"reason":"missing"}', True),
        ('{"error":"not_found","reason":"deleted"}', False),
        ('{"error":"missing","reason":"x"}', False),
        ('{"error":"not_found","reason":"missing_named_view"}', False),
        ('{"error":"not_found","reason":["missing"]}', False),
        ('{"nested":{"reason":"missing"}}', False),
        ('<p>{"reason":"missing"}</p>', True),
        ('<p>{"reason": "missing"}</p>', False),
        ('[{"reason":"missing"}]', True),
        ("missing", False),
        ("", False),
    ],
)
def test_views_404(body: str, retried: bool) -> None:
    """404 is temporary if its reason is "missing": the field where the body is an object, else the text (decision C21)."""
    for given_body in (body, body.encode()):
        verdict = classify(VIEWS, 404, given_body)
        assert (R.VIEWS_TEMPORARY_FAILURE if retried else None) is verdict.reason
        assert (errors.ViewNotFoundException if retried else CouchbaseException) is verdict.error


@rows(
    ("body", "retried"),
    [
        ('{"error":"x","reason":"{not_found, missing_named_view}"}', False),
        ('{"error":"case_clause","reason":"was: {not_found, missing_named_view} of it"}', False),
        ('{"error":"{not_found, missing_named_view}"}', False),
        ('{"error":"x","reason":"badarg"}', False),
        ('{"error":"badarg","reason":"x"}', False),
        ('{"error":"x","reason":"a badarg somewhere"}', True),
        ('{"error":"x","reason":"timeout"}', True),
        ('{"error":"x","reason":null}', True),
        ('{"error":"x"}', True),
        ('{"error":17,"reason":["badarg"]}', True),
        ('{"reason":"badarg"}', True),
        ('{"reason":"{not_found, missing_named_view}"}', True),
        ("{}", True),
        ("", True),
        ("<html>500</html>", True),
        ("error: {not_found, missing_named_view}", False),
        ('error: "badarg"', False),
        ("error: badarg", True),
        ("{not_found, missing_named_view}", True),
        ('"badarg"', True),
        ('[{"error":"x","reason":"badarg"}]', False),
    ],
)
def test_views_500(body: str, retried: bool) -> None:
    """500 is temporary unless it is an error that names the missing view or the bad argument (decision C21)."""
    for given_body in (body, body.encode()):
        verdict = classify(VIEWS, 500, given_body)
        assert (R.VIEWS_TEMPORARY_FAILURE if retried else None) is verdict.reason
        assert CouchbaseException is verdict.error


def test_the_text_is_bounded() -> None:
    """An error context is no place for a whole page of a proxy."""
    assert 200 == len(classify(SEARCH, 503, "x" * 100_000).text)
    assert 200 == len(classify(VIEWS, 503, b"\xff" * 100_000).text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["errors", "error", "reason", "code", "msg"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.sampled_from(Service), st.integers(100, 599), json_values.map(json.dumps) | st.text() | st.binary())
def test_total(service: Service, http_status: int, body: bytes | str) -> None:
    """No answer raises; a retry always knows the error that a refusal surfaces as."""
    verdict = classify(service, http_status, body)

    assert verdict.reason is None or verdict.error is not None
    assert verdict.clause.startswith("RFC 0049 Response Code Retry List: ")
