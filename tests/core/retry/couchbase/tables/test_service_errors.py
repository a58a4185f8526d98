"""Errors of query, analytics, search and views, compared with the RFCs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from tests.core.retry.couchbase.doctored import import_with
from tests.core.retry.couchbase.request_cases import annotation, error_of, hear, machine_of
from tests.core.retry.couchbase.tables.service_cases import ROWS, answers_to, bodies, body_of, error_class
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry import couchbase
from triclinium_core.retry.couchbase.tables import service_errors
from triclinium_core.retry.couchbase.tables.error_rows import ErrorRow
from triclinium_core.retry.couchbase.tables.service_answers import ServiceAnswer, read_answer

_, QUERY, ANALYTICS, SEARCH, VIEWS, MANAGEMENT = couchbase.Service

QUERY_CODES: dict[int, str] = {
    1065: "InvalidArgument",
    1080: "Timeout",
    **dict.fromkeys((1191, 1192, 1193, 1194), "RateLimited"),
    2120: "AuthenticationFailure",
    3000: "ParsingFailure",
    **dict.fromkeys((4000, 4001, 4100, 4300, 4999), "PlanningFailure"),
    **dict.fromkeys((4040, 4050, 4060, 4070, 4080, 4090), "PreparedStatementFailure"),
    **dict.fromkeys((5000, 5001, 5999), "InternalServerFailure"),
    1000: "InvalidArgument",
    **dict.fromkeys((10000, 10999), "AuthenticationFailure"),
    12003: "BucketNotFound",
    12021: "ScopeNotFound",
    **dict.fromkeys((12000, 12020, 12999, 14000, 14999), "IndexFailure"),
    **dict.fromkeys((12004, 12016), "IndexNotFound"),
    12009: "DmlFailure",
    13014: "AuthenticationFailure",
    **dict.fromkeys((-4040, 0, 1, 1001, 1190, 1195, 3001, 3999, 6000, 9999, 11000, 13000, 15000, 17012), "Couchbase"),
}
"""Exceptions for codes that need no text: SDK-RFC 0058 "Raised When", copied by hand, and decision D37."""

QUERY_TEXTS: list[tuple[int, str, str]] = [
    (1065, "Unrecognized parameter in request: query_context", "FeatureNotAvailable"),
    (1065, "Unrecognized parameter in request: preserve_expiry", "FeatureNotAvailable"),
    (4300, "The index idx already exists.", "IndexExists"),
    (4300, "The index idx already exist.", "IndexExists"),
    (4300, "The keyspace is there.", "PlanningFailure"),
    (5000, "Index idx already exist", "IndexExists"),
    (5000, "GSI index idx not found.", "IndexNotFound"),
    (5000, "Index Not Found - cause: queryport.indexNotFound", "IndexNotFound"),
    (5000, "Limit for number of indexes that can be created per scope has been reached. Limit : 8", "QuotaLimited"),
    (5000, "not found: an index", "InternalServerFailure"),
    (12009, "DML Error, possible causes include CAS mismatch", "CasMismatch"),
]

ANALYTICS_CODES: dict[int, str] = {
    **dict.fromkeys((20000, 20999), "AuthenticationFailure"),
    21002: "Timeout",
    **dict.fromkeys((23000, 23003), "TemporaryFailure"),
    23007: "JobQueueFull",
    24000: "ParsingFailure",
    24006: "LinkNotFound",
    **dict.fromkeys((24044, 24045, 24025), "DatasetNotFound"),
    24034: "DataverseNotFound",
    24039: "DataverseExists",
    24040: "DatasetExists",
    24047: "IndexNotFound",
    24048: "IndexExists",
    24055: "LinkExists",
    **dict.fromkeys((24001, 24999), "CompilationFailure"),
    **dict.fromkeys((25000, 25999), "InternalServerFailure"),
    **dict.fromkeys((1, 4040, 21000, 22000, 23001, 26000), "Couchbase"),
}

BY_STATUS: list[tuple[couchbase.Service, int, str, str]] = [
    *((service, 401, "", "AuthenticationFailure") for service in service_errors.SERVICE_ERRORS),
    *((service, 403, "<html>no</html>", "AuthenticationFailure") for service in service_errors.SERVICE_ERRORS),
    *((service, 503, "", "TemporaryFailure") for service in (QUERY, ANALYTICS, SEARCH, MANAGEMENT)),
    *((service, 500, "<html>", "InternalServerFailure") for service in (QUERY, ANALYTICS, SEARCH, MANAGEMENT)),
    *((service, 429, "{}", "RateLimited") for service in (QUERY, ANALYTICS, SEARCH, MANAGEMENT)),
    *((service, 302, "", "Couchbase") for service in service_errors.SERVICE_ERRORS),
    (QUERY, 500, body_of(17012), "Couchbase"),
    (QUERY, 503, body_of(3000), "ParsingFailure"),
    (QUERY, 401, body_of(99999), "AuthenticationFailure"),
    (QUERY, 403, body_of(1000), "InvalidArgument"),
    (SEARCH, 400, '{"error": "rest_auth: index not found"}', "IndexNotFound"),
    (SEARCH, 400, '{"error": "num_fts_indexes (active + pending) >= 5"}', "QuotaLimited"),
    (SEARCH, 500, '{"error": "no planPIndexes for indexName: x"}', "IndexNotReady"),
    (SEARCH, 400, '{"error": "cannot create, index with the same name already exists"}', "IndexExists"),
    (SEARCH, 404, "404 page not found\n", "FeatureNotAvailable"),
    (SEARCH, 429, '{"error": "num_queries_per_min, value >= limit"}', "RateLimited"),
    (SEARCH, 400, '{"error": "bleve: k must be greater than 0"}', "Couchbase"),
    (SEARCH, 412, "", "Couchbase"),
    (VIEWS, 404, '{"error": "not_found", "reason": "deleted"}', "ViewNotFound"),
    (VIEWS, 404, '{"error": "not_found", "reason": "missing"}', "ViewNotFound"),
    (VIEWS, 500, '{"error": "case_clause", "reason": "{not_found, missing_named_view}"}', "ViewNotFound"),
    (VIEWS, 404, "", "Couchbase"),
    (VIEWS, 400, '{"error": "query_parse_error"}', "Couchbase"),
    (VIEWS, 503, "", "Couchbase"),
]


def answer_of(response: couchbase.ServiceResponse) -> ServiceAnswer:
    """Return the parsed response."""
    return read_answer(response.service, response.http_status, response.body, response.operation)


@rows(
    ("service", "code", "name"),
    [
        (service, *row)
        for service, codes in ((QUERY, QUERY_CODES), (ANALYTICS, ANALYTICS_CODES))
        for row in codes.items()
    ],
)
def test_codes(service: couchbase.Service, code: int, name: str) -> None:
    """The code of a query or analytics error selects the exception, whatever the HTTP status."""
    for http_status in (200, 400, 404, 500, 503):
        assert error_class(name) is service_errors.error_row(read_answer(service, http_status, body_of(code))).error


@rows(("code", "message", "name"), QUERY_TEXTS)
def test_texts_of_query(code: int, message: str, name: str) -> None:
    """For some query errors, the code and the text together select the exception."""
    assert error_class(name) is service_errors.error_row(read_answer(QUERY, 400, body_of(code, message))).error


@rows(
    ("cause", "name"),
    [(12033, "CasMismatch"), (17014, "DocumentNotFound"), (17012, "DocumentExists"), (1, "DmlFailure")],
)
def test_causes_of_a_dml_failure(cause: int, name: str) -> None:
    """If the server sends the cause of a DML failure, the cause selects the exception."""
    body = body_of(12009, "DML Error", reason={"code": cause})

    assert error_class(name) is service_errors.error_row(read_answer(QUERY, 400, body)).error


@rows(("service", "http_status", "body", "name"), BY_STATUS)
def test_statuses(service: couchbase.Service, http_status: int, body: str, name: str) -> None:
    """A known code, or else the HTTP status and the text, selects the exception."""
    assert error_class(name) is service_errors.error_row(read_answer(service, http_status, body)).error


@rows("service", service_errors.SERVICE_ERRORS)
def test_a_successful_proxy_page(service: couchbase.Service) -> None:
    """The page of a proxy with status 200 gives DecodingFailureException."""
    assert (
        errors.DecodingFailureException
        is service_errors.error_row(read_answer(service, 200, "<html>Sign in</html>")).error
    )


KEYSPACE_TEXTS: list[tuple[str, str]] = [
    ("Keyspace not found in CB datastore: default:travel.inventory.gone", "CollectionNotFound"),
    ("Keyspace not found in CB datastore: default:`travel-x`.`inventory`.`gone`", "CollectionNotFound"),
    ("Keyspace not found keyspace `a.b`.c.d - cause: no collection", "CollectionNotFound"),
    ("Keyspace default:travel.inventory.gone. was not found", "CollectionNotFound"),
    ("Keyspace not found in CB datastore: default:gone - cause: No bucket named gone", "BucketNotFound"),
    ("Keyspace not found in CB datastore: default:gone (from 10.0.0.1:8091)", "BucketNotFound"),
    ("Keyspace not found in CB datastore: default:gone - cause: no answer of node.a.b.c", "BucketNotFound"),
    ("Keyspace not found in CB datastore: default:`a.dotted.name`", "BucketNotFound"),
    ("Keyspace not found in CB datastore: default:my.bucket", "BucketNotFound"),
    ("Keyspace not found in CB datastore: gone", "BucketNotFound"),
    ("", "BucketNotFound"),
]


@rows(("message", "name"), KEYSPACE_TEXTS)
def test_missing_keyspaces(message: str, name: str) -> None:
    """If the missing keyspace has three names, the error is about a collection, and otherwise about a bucket."""
    assert error_class(name) is service_errors.error_row(read_answer(QUERY, 404, body_of(12003, message))).error


@rows(
    ("scope", "message", "name"),
    [
        (None, "", "BucketNotFound"),
        ("inventory", "", "CollectionNotFound"),
        ("inventory", "Keyspace not found in CB datastore: default:gone", "CollectionNotFound"),
    ],
)
def test_a_missing_keyspace_in_a_query_context(scope: str | None, message: str, name: str) -> None:
    """The machine's error for a missing keyspace is about a collection in a query context, else about a bucket."""
    request = replace(annotation(service=QUERY, operation="query"), error_context=ErrorContext(scope=scope))
    response = couchbase.ServiceResponse(QUERY, 404, body_of(12003, message))

    assert error_class(name) is type(error_of(hear(machine_of(request), couchbase.ResponseReceived(response))))


ENDINGS: list[tuple[int, str, str]] = [
    (200, '{"results":[],"status":"timeout"}', "Timeout"),
    (200, '{"status":"Timeout","errors":[]}', "Timeout"),
    (200, '{"status":"timeout","errors":[{"msg":"no code"}]}', "Timeout"),
    (408, '{"status":"timeout"}', "Timeout"),
    (503, '{"status":"timeout"}', "Timeout"),
    (200, '{"status":"errors"}', "DecodingFailure"),
    (200, '{"status":"FATAL","errors":null}', "DecodingFailure"),
    (200, '{"status":"aborted"}', "DecodingFailure"),
    (200, '{"status":"stopped"}', "DecodingFailure"),
    (200, '{"status":"closed"}', "DecodingFailure"),
    (200, '{"status":"failed"}', "DecodingFailure"),
    (200, '{"status":"fatal","errors":[{"msg":"no code"}]}', "Couchbase"),
    (400, '{"status":"fatal"}', "Couchbase"),
    (503, '{"status":"fatal"}', "TemporaryFailure"),
]


@rows("service", [QUERY, ANALYTICS])
@rows(("http_status", "body", "name"), ENDINGS)
def test_endings_without_a_code(service: couchbase.Service, http_status: int, body: str, name: str) -> None:
    """A statement that ended early, according to its status, is a failure; the status "timeout" means a timeout."""
    answer = read_answer(service, http_status, body)

    assert answer.is_failure
    assert error_class(name) is service_errors.error_row(answer).error


@rows("service", [QUERY, ANALYTICS])
def test_a_code_beside_the_status_of_a_timeout(service: couchbase.Service) -> None:
    """If the body has an error with a code, the code takes precedence over the status in the body."""
    code, name = (3000, "ParsingFailure") if service is QUERY else (24000, "ParsingFailure")
    body = f'{{"errors":[{{"code":{code}}}],"status":"timeout"}}'

    assert error_class(name) is service_errors.error_row(read_answer(service, 200, body)).error


@rows("service", [SEARCH, VIEWS, MANAGEMENT])
def test_the_body_status_of_other_services(service: couchbase.Service) -> None:
    """Search, views and management ignore the status in the body."""
    assert not read_answer(service, 200, '{"status":"timeout"}').is_failure


@rows(("service", "row"), ROWS)
def test_every_row_is_reached(service: couchbase.Service, row: ErrorRow) -> None:
    """For the responses of each row, that row is the first match, and each row has its clause."""
    assert row.clause.startswith("RFC ")
    for response in answers_to(service, row):
        assert row is service_errors.error_row(answer_of(response))


@rows(("service", "row"), ROWS)
def test_every_row_ends_a_request(service: couchbase.Service, row: ErrorRow) -> None:
    """With fail-fast, the machine fails each request with the exception of the row that its response matches."""
    for response in answers_to(service, row):
        expected = service_errors.error_row(answer_of(response)).error
        request = annotation(couchbase.FailFastRetryStrategy(), service=service, operation=response.operation)
        request = replace(request, error_context=ErrorContext())
        error = error_of(hear(machine_of(request), couchbase.ResponseReceived(response)))
        assert issubclass(type(error), expected)
        assert response.http_status == error.context.http_status
        assert (response.service, response.operation) == (error.context.service, error.context.operation)


@rows(("service", "row"), ROWS)
def test_a_retried_response_may_end_in_success(service: couchbase.Service, row: ErrorRow) -> None:
    """If a response is retried, the success of the next attempt completes the request."""
    for response in answers_to(service, row):
        machine = machine_of(
            annotation(couchbase.BestEffortRetryStrategy(), service=service, operation=response.operation)
        )
        actions = hear(machine, couchbase.ResponseReceived(response))
        if any(isinstance(action, couchbase.Fail) for action in actions):
            assert machine.last_reason is None
            continue
        now = machine.wakeup
        assert [couchbase.Dispatch()] == hear(machine, couchbase.WakeupReached(), now)
        hear(machine, couchbase.Dispatched("another"), now)
        success = couchbase.ServiceResponse(service, 200, b"{}")
        assert [couchbase.Complete(success)] == hear(machine, couchbase.ResponseReceived(success), now)


@rows(
    ("idempotent", "expected"), [(True, errors.UnambiguousTimeoutException), (False, errors.AmbiguousTimeoutException)]
)
@rows(
    ("service", "body"),
    [
        (QUERY, body_of(1080)),
        (ANALYTICS, body_of(21002)),
        (QUERY, '{"status":"timeout"}'),
        (ANALYTICS, '{"status":"timeout"}'),
    ],
)
def test_a_timeout_of_the_service(
    service: couchbase.Service, body: str, idempotent: bool, expected: type[errors.TimeoutException]
) -> None:
    """If a service times out, the timeout is unambiguous for an idempotent request, and ambiguous otherwise."""
    request = annotation(service=service, operation="query", idempotent=idempotent)
    error = error_of(
        hear(machine_of(request), couchbase.ResponseReceived(couchbase.ServiceResponse(service, 200, body)))
    )

    assert expected is type(error)


def test_a_duplicate_row_fails_at_import() -> None:
    """If two rows have the same code, the import fails."""
    with pytest.raises(ValueError, match="two rows"):
        import_with(service_errors, "codes=code(2120)", "codes=code(3000)")


@given(st.sampled_from(sorted(service_errors.SERVICE_ERRORS)), st.integers(300, 599), bodies)
def test_every_failure_has_a_row(service: couchbase.Service, http_status: int, body: bytes | str) -> None:
    """Every response that is a failure has a row."""
    assert issubclass(
        service_errors.error_row(read_answer(service, http_status, body)).error, errors.CouchbaseException
    )
