"""What the answers of query, analytics, search and views fail with, against the RFCs."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tests.core.retry.couchbase.doctored import import_with
from tests.core.retry.couchbase.request_cases import annotation, error_of, hear, machine_of
from tests.core.retry.couchbase.tables.service_cases import ROWS, answers_to, bodies, body_of, error_class
from tests.rows import rows
from triclinium_core.errors import (
    AmbiguousTimeoutException,
    CouchbaseException,
    DecodingFailureException,
    TimeoutException,
    UnambiguousTimeoutException,
)
from triclinium_core.retry.couchbase.actions import Complete, Dispatch, Fail
from triclinium_core.retry.couchbase.events import Dispatched, ResponseReceived, ServiceResponse, TimePassed
from triclinium_core.retry.couchbase.strategy import BestEffortRetryStrategy, FailFastRetryStrategy
from triclinium_core.retry.couchbase.tables import service_errors
from triclinium_core.retry.couchbase.tables.error_rows import ErrorRow
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.tables.service_answers import ServiceAnswer, read_answer
from triclinium_core.retry.couchbase.tables.service_errors import SERVICE_ERRORS, error_row

QUERY, ANALYTICS, SEARCH, VIEWS, MANAGEMENT = (
    Service.QUERY,
    Service.ANALYTICS,
    Service.SEARCH,
    Service.VIEWS,
    Service.MANAGEMENT,
)

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
    **dict.fromkeys((12000, 12003, 12999, 14000, 14999), "IndexFailure"),
    **dict.fromkeys((12004, 12016), "IndexNotFound"),
    12009: "DmlFailure",
    13014: "AuthenticationFailure",
    **dict.fromkeys((-4040, 0, 1, 1001, 1190, 1195, 3001, 3999, 6000, 9999, 11000, 13000, 15000, 17012), "Couchbase"),
}
"""SDK-RFC 0058 "Raised When", copied out by hand, and decision D37; for a text that says nothing."""

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

BY_STATUS: list[tuple[Service, int, str, str]] = [
    *((service, 401, "", "AuthenticationFailure") for service in SERVICE_ERRORS),
    *((service, 403, "<html>no</html>", "AuthenticationFailure") for service in SERVICE_ERRORS),
    *((service, 503, "", "TemporaryFailure") for service in (QUERY, ANALYTICS, SEARCH, MANAGEMENT)),
    *((service, 500, "<html>", "InternalServerFailure") for service in (QUERY, ANALYTICS, SEARCH, MANAGEMENT)),
    *((service, 429, "{}", "RateLimited") for service in (QUERY, ANALYTICS, SEARCH, MANAGEMENT)),
    *((service, 302, "", "Couchbase") for service in SERVICE_ERRORS),
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


def answer_of(response: ServiceResponse) -> ServiceAnswer:
    """Return what a response says."""
    return read_answer(response.service, response.http_status, response.body, response.operation)


@rows(("code", "name"), QUERY_CODES.items())
def test_codes_of_query(code: int, name: str) -> None:
    """By the number alone, whatever the HTTP status."""
    for http_status in (200, 400, 404, 500, 503):
        assert error_class(name) is error_row(read_answer(QUERY, http_status, body_of(code))).error


@rows(("code", "message", "name"), QUERY_TEXTS)
def test_texts_of_query(code: int, message: str, name: str) -> None:
    """By number and text: for the letters in them the RFC has its reasons."""
    assert error_class(name) is error_row(read_answer(QUERY, 400, body_of(code, message))).error


@rows(
    ("cause", "name"),
    [(12033, "CasMismatch"), (17014, "DocumentNotFound"), (17012, "DocumentExists"), (1, "DmlFailure")],
)
def test_reasons_of_a_failed_change(cause: int, name: str) -> None:
    """Newer servers say in numbers why a document could not be changed."""
    body = body_of(12009, "DML Error", reason={"code": cause})

    assert error_class(name) is error_row(read_answer(QUERY, 400, body)).error


@rows(("code", "name"), ANALYTICS_CODES.items())
def test_codes_of_analytics(code: int, name: str) -> None:
    """Its numbers are its own."""
    for http_status in (200, 400, 503):
        assert error_class(name) is error_row(read_answer(ANALYTICS, http_status, body_of(code))).error


@rows(("service", "http_status", "body", "name"), BY_STATUS)
def test_statuses(service: Service, http_status: int, body: str, name: str) -> None:
    """Where there is no number the HTTP status and the text decide."""
    assert error_class(name) is error_row(read_answer(service, http_status, body)).error


@rows("service", SERVICE_ERRORS)
def test_a_success_of_somebody_else(service: Service) -> None:
    """The page of a proxy with status 200 is an error that says so."""
    assert DecodingFailureException is error_row(read_answer(service, 200, "<html>Sign in</html>")).error


@rows(("service", "row"), ROWS)
def test_every_row_is_reached(service: Service, row: ErrorRow) -> None:
    """No row stands behind one that takes its answers, and each has its clause."""
    assert row.clause.startswith("RFC ")
    for response in answers_to(service, row):
        assert row is error_row(answer_of(response))


@rows(("service", "row"), ROWS)
def test_every_row_ends_a_request(service: Service, row: ErrorRow) -> None:
    """The machine fails the request with the row's class, now or where the strategy refuses; nothing succeeds."""
    for response in answers_to(service, row):
        expected = error_row(answer_of(response)).error
        request = annotation(FailFastRetryStrategy(), service=service, operation=response.operation)
        error = error_of(hear(machine_of(request), ResponseReceived(response)))
        assert issubclass(type(error), expected)
        assert response.http_status == error.context.http_status
        assert (response.service, response.operation) == (error.context.service, error.context.operation)


@rows(("service", "row"), ROWS)
def test_no_row_ends_a_request_that_may_go_on(service: Service, row: ErrorRow) -> None:
    """An answer that is retried is followed by another attempt, and that one's success is the request's."""
    for response in answers_to(service, row):
        machine = machine_of(annotation(BestEffortRetryStrategy(), service=service, operation=response.operation))
        actions = hear(machine, ResponseReceived(response))
        if any(isinstance(action, Fail) for action in actions):
            assert machine.last_reason is None
            continue
        now = machine.wakeup
        assert [Dispatch()] == hear(machine, TimePassed(), now)
        hear(machine, Dispatched("another"), now)
        success = ServiceResponse(service, 200, b"{}")
        assert [Complete(success)] == hear(machine, ResponseReceived(success), now)


@rows(("idempotent", "expected"), [(True, UnambiguousTimeoutException), (False, AmbiguousTimeoutException)])
@rows(("service", "code"), [(QUERY, 1080), (ANALYTICS, 21002)])
def test_a_timeout_of_the_service(
    service: Service, code: int, idempotent: bool, expected: type[TimeoutException]
) -> None:
    """What could only read has certainly changed nothing; of anything else nobody knows."""
    request = annotation(service=service, operation="query", idempotent=idempotent)
    error = error_of(hear(machine_of(request), ResponseReceived(ServiceResponse(service, 200, body_of(code)))))

    assert expected is type(error)


def test_a_row_twice_fails_at_import() -> None:
    """Two rows for the same code are a mistake in our own source."""
    with pytest.raises(ValueError, match="two rows"):
        import_with(service_errors, "codes=code(2120)", "codes=code(3000)")


@given(st.sampled_from(sorted(SERVICE_ERRORS)), st.integers(300, 599), bodies)
def test_total(service: Service, http_status: int, body: bytes | str) -> None:
    """Every failed answer has a row."""
    assert issubclass(error_row(read_answer(service, http_status, body)).error, CouchbaseException)
