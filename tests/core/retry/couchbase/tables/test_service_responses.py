"""Classification of responses of the HTTP services, compared with the list of the RFC."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from tests.core.retry.couchbase.tables.service_cases import bodies, body_of, error_class
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.retry.couchbase import RETRYABLE_ERROR_CODES, RETRYABLE_HTTP_STATUSES, RetryReason, Service
from triclinium_core.retry.couchbase.tables.service_responses import classify
from triclinium_core.shown import SERVER_TEXT_MAX

R = RetryReason
_, QUERY, ANALYTICS, SEARCH, VIEWS, MANAGEMENT = Service

ERROR_CODES_OF_THE_RFC: dict[tuple[Service, int], tuple[RetryReason, str, str]] = {
    (QUERY, 4040): (R.QUERY_PREPARED_STATEMENT_FAILURE, "PreparedStatementFailure", ""),
    (QUERY, 4050): (R.QUERY_PREPARED_STATEMENT_FAILURE, "PreparedStatementFailure", ""),
    (QUERY, 4070): (R.QUERY_PREPARED_STATEMENT_FAILURE, "PreparedStatementFailure", ""),
    (QUERY, 5000): (R.QUERY_INDEX_NOT_FOUND, "IndexNotFound", "queryport.indexNotFound"),
    (ANALYTICS, 23000): (R.ANALYTICS_TEMPORARY_FAILURE, "TemporaryFailure", ""),
    (ANALYTICS, 23003): (R.ANALYTICS_TEMPORARY_FAILURE, "TemporaryFailure", ""),
    (ANALYTICS, 23007): (R.ANALYTICS_TEMPORARY_FAILURE, "JobQueueFull", ""),
}
"""Lines of SDK-RFC 0049 "Response Code Retry List", with the classes of SDK-RFC 0058."""

STATUSES_OF_THE_RFC: dict[tuple[Service, int], RetryReason] = {
    (SEARCH, 429): R.SEARCH_TOO_MANY_REQUESTS,
    (VIEWS, 302): R.VIEWS_NO_ACTIVE_PARTITION,
    **dict.fromkeys(
        ((VIEWS, status) for status in (300, 301, 303, 307, 401, 408, 409, 412, 416, 417, 501, 502, 503, 504)),
        R.VIEWS_TEMPORARY_FAILURE,
    ),
}
"""Statuses with their reasons, except a view's 404 and 500, for which the body decides. 302 is decision C20."""

TEXT_404 = '"reason":"missing"'


def reason(service: Service, http_status: int, body: bytes | str = b"") -> RetryReason | None:
    """Return the retry reason of the response, or None."""
    return classify(service, http_status, body).reason


def test_the_error_codes_are_those_of_the_rfc() -> None:
    """The list has exactly the seven codes of the RFC, with their reasons and words."""
    actual = {key: (line.reason, line.message_contains) for key, line in RETRYABLE_ERROR_CODES.items()}
    expected = {key: (why, words) for key, (why, _, words) in ERROR_CODES_OF_THE_RFC.items()}

    assert expected == actual
    assert all(str(code) in line.clause for (_, code), line in RETRYABLE_ERROR_CODES.items())


def test_the_http_statuses_are_those_of_the_rfc() -> None:
    """The list has the status for search and the statuses for views that the RFC has."""
    by_body = dict.fromkeys(((VIEWS, 404), (VIEWS, 500)), R.VIEWS_TEMPORARY_FAILURE)

    assert STATUSES_OF_THE_RFC | by_body == {key: line.reason for key, line in RETRYABLE_HTTP_STATUSES.items()}
    assert all(str(status) in line.clause for (_, status), line in RETRYABLE_HTTP_STATUSES.items())
    assert all(not line.message_contains for line in RETRYABLE_HTTP_STATUSES.values())


@rows("http_status", [200, 400, 404, 500, 503])
@rows(("service", "code"), ERROR_CODES_OF_THE_RFC)
def test_listed_codes(service: Service, code: int, http_status: int) -> None:
    """A listed code is retried whatever the HTTP status, even if it is 200."""
    why, error, words = ERROR_CODES_OF_THE_RFC[service, code]
    message = f"about {words} and more"
    verdict = classify(service, http_status, body_of(code, message))
    line = RETRYABLE_ERROR_CODES[service, code]

    assert (why, error_class(error)) == (verdict.reason, verdict.error)
    assert (" ".join(message.split()), code) == (verdict.text, verdict.code)
    assert f"RFC 0049 Response Code Retry List: {line.clause}" == verdict.clause


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
        # Decision C22: only the code and the text of the first error decide.
        (QUERY, [{"code": 4040, "msg": "stale"}, {"code": 3000}], R.QUERY_PREPARED_STATEMENT_FAILURE, "stale"),
        (QUERY, [{"code": 3000, "msg": "syntax"}, {"code": 4040, "msg": "stale"}], None, "syntax"),
        (QUERY, [{"code": 5000, "msg": "x"}, {"code": 5000, "msg": "queryport.indexNotFound"}], None, "x"),
    ],
)
def test_other_codes(service: Service, errors_: object, expected: RetryReason | None, text: str) -> None:
    """Only a listed first code is retried, and only if the text has the listed words, whatever the HTTP status."""
    for http_status in (200, 400, 503):
        verdict = classify(service, http_status, json.dumps({"errors": errors_, "metrics": {"x": 1}}))
        assert (expected, text) == (verdict.reason, verdict.text)
        assert (expected is None) is ("not in the list" in verdict.clause)
        assert verdict.error is not None


@rows("service", [QUERY, ANALYTICS])
@rows(
    "body",
    [
        b"",
        b"{}",
        b'{"errors": null}',
        b'{"errors": []}',
        b'{"errors": {}}',
        b'{"code": 4040}',
        b"[]",
        b"null",
        b'"4040"',
        b"<html>503</html>",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"errors": [{"code": ' + b"4" * 5000 + b"}]}",
    ],
)
def test_bodies_without_errors(service: Service, body: bytes) -> None:
    """If a body has no error, the HTTP status decides; a body that is neither empty nor a JSON object is a failure."""
    foreign = (bool(body) and not body.startswith(b"{")) or len(body) > 5000
    success, failure = classify(service, 299, body), classify(service, 300, body)

    assert (None, errors.DecodingFailureException if foreign else None) == (success.reason, success.error)
    assert (None, errors.CouchbaseException) == (failure.reason, failure.error)
    assert foreign is bool(failure.body_start)
    assert (None, errors.TemporaryFailureException) == (reason(service, 503, body), classify(service, 503, body).error)


@rows("service", [SEARCH, VIEWS, MANAGEMENT])
@rows("body", [b"", b"<html>", b'{"error":"x","reason":"badarg"}', TEXT_404, body_of(4040)])
def test_statuses(service: Service, body: bytes | str) -> None:
    """Search retries status 429, views retry the statuses of their list, and management retries no status."""
    for http_status in set(range(200, 600)) - ({404, 500} if service is VIEWS else set()):
        verdict = classify(service, http_status, body)
        assert STATUSES_OF_THE_RFC.get((service, http_status)) is verdict.reason
        assert verdict.error is not None or http_status < 300


VIEW_BODIES: dict[int, list[tuple[str, bool]]] = {
    404: [
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
    500: [
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
}
"""Bodies of a view's 404 and 500, each with whether the response is temporary."""


@rows(("http_status", "body", "retried"), [(status, *row) for status, table in VIEW_BODIES.items() for row in table])
def test_bodies_of_views(http_status: int, body: str, retried: bool) -> None:
    """A view's 404 is temporary only if its reason is "missing", and its 500 unless its error is final (C21)."""
    named = "not_found" in body or "missing" in body
    for given_body in (body, body.encode()):
        verdict = classify(VIEWS, http_status, given_body)
        assert (R.VIEWS_TEMPORARY_FAILURE if retried else None) is verdict.reason
        assert (errors.ViewNotFoundException if named else errors.CouchbaseException) is verdict.error


def test_the_details_of_a_verdict() -> None:
    """The classification has the details of the response, or the beginning of a foreign page."""
    body = {"errors": [{"code": 3000, "msg": "syntax\nerror", "retry": True}, {"code": 4040}]}
    reported, page = classify(QUERY, 400, json.dumps(body)), classify(QUERY, 502, "<html>\n" + "x" * 100_000)

    assert ("syntax error", 3000, (4040,), True, "") == (
        reported.text,
        reported.code,
        reported.more_codes,
        reported.server_permits_retry,
        reported.body_start,
    )
    assert reported.reason is None  # the server permits a retry, but the list does not have the code
    assert ("", None, SERVER_TEXT_MAX) == (page.text, page.code, len(page.body_start))
    assert page.body_start.startswith("<html> xxx")


def test_the_operation_decides_about_management() -> None:
    """The same management response has different errors for different operations."""
    reported = {name: classify(MANAGEMENT, 404, "", name) for name in ("get_user", "get_group", "get_all_users")}

    assert [errors.UserNotFoundException, errors.GroupNotFoundException, errors.CouchbaseException] == [
        verdict.error for verdict in reported.values()
    ]
    assert all(verdict.error_clause for verdict in reported.values())


@given(st.sampled_from(Service), st.integers(100, 599), bodies)
def test_any_response_has_a_verdict(service: Service, http_status: int, body: bytes | str) -> None:
    """Any response is classified; one that is retried has an error, and each error has its clause."""
    verdict = classify(service, http_status, body)

    assert verdict.reason is None or verdict.error is not None
    assert (verdict.error is None) is (verdict.error_clause == "")
    assert verdict.clause.startswith("RFC 0049 Response Code Retry List: ")
