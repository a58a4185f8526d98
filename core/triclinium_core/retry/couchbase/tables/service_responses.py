"""Which answers of the HTTP services are retried: the RFC's list as data.

Source: SDK-RFC 0049 "Response Code Retry List"; decisions C20 to C22.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from triclinium_core import errors
from triclinium_core.retry.couchbase.tables.kv_status import ErrorClass
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.tables import table_of


@dataclass(frozen=True, slots=True)
class RetryableCode:
    """One line of the list: an error code of the service's body, or an HTTP status of the service.

    ``error`` is what the request fails with when its strategy refuses the retry (SDK-RFC 0058).
    """

    service: Service
    code: int
    reason: RetryReason
    error: ErrorClass
    clause: str
    message_contains: str = ""
    """The line holds only for error texts with these words."""


def _error_codes() -> Iterable[RetryableCode]:
    line, r, e = RetryableCode, RetryReason, errors
    # fmt: off
    yield line(Service.QUERY, 4040, r.QUERY_PREPARED_STATEMENT_FAILURE, e.PreparedStatementFailureException, "Query: Error code 4040")
    yield line(Service.QUERY, 4050, r.QUERY_PREPARED_STATEMENT_FAILURE, e.PreparedStatementFailureException, "Query: Error code 4050")
    yield line(Service.QUERY, 4070, r.QUERY_PREPARED_STATEMENT_FAILURE, e.PreparedStatementFailureException, "Query: Error code 4070")
    yield line(Service.QUERY, 5000, r.QUERY_INDEX_NOT_FOUND, e.IndexNotFoundException,
               'Query: Error code 5000 if the message also contains "queryport.indexNotFound"', "queryport.indexNotFound")
    yield line(Service.ANALYTICS, 23000, r.ANALYTICS_TEMPORARY_FAILURE, e.TemporaryFailureException, "Analytics: Error code 23000")
    yield line(Service.ANALYTICS, 23003, r.ANALYTICS_TEMPORARY_FAILURE, e.TemporaryFailureException, "Analytics: Error code 23003")
    yield line(Service.ANALYTICS, 23007, r.ANALYTICS_TEMPORARY_FAILURE, e.JobQueueFullException, "Analytics: Error code 23007")
    # fmt: on


def _http_statuses() -> Iterable[RetryableCode]:
    line, r, e = RetryableCode, RetryReason, errors
    yield line(Service.SEARCH, 429, r.SEARCH_TOO_MANY_REQUESTS, e.RateLimitedException, "Search: Http status code 429")
    yield line(Service.VIEWS, 302, r.VIEWS_NO_ACTIVE_PARTITION, e.CouchbaseException, "View: Http Status code 302")
    for status in (300, 301, 303, 307, 401, 408, 409, 412, 416, 417, 501, 502, 503, 504):
        error = e.AuthenticationFailureException if status == 401 else e.CouchbaseException
        yield line(Service.VIEWS, status, r.VIEWS_TEMPORARY_FAILURE, error, f"View: Http status code {status}")
    yield line(
        Service.VIEWS,
        404,
        r.VIEWS_TEMPORARY_FAILURE,
        e.ViewNotFoundException,
        'View: Http 404 IF the text contains "reason":"missing"',
    )
    yield line(
        Service.VIEWS,
        500,
        r.VIEWS_TEMPORARY_FAILURE,
        e.CouchbaseException,
        'View: Http 500 IF NOT "error" with {not_found, missing_named_view} or with "badarg"',
    )


RETRYABLE_ERROR_CODES: Mapping[tuple[Service, int], RetryableCode] = table_of(
    ((line.service, line.code), line) for line in _error_codes()
)
"""Query and analytics: by the code of the first error in the body (decision C22)."""

RETRYABLE_HTTP_STATUSES: Mapping[tuple[Service, int], RetryableCode] = table_of(
    ((line.service, line.code), line) for line in _http_statuses()
)
"""Search and views: by HTTP status."""


@dataclass(frozen=True, slots=True)
class ServiceVerdict:
    """What an answer of an HTTP service asks for; ``reason`` None means that the strategy is not asked."""

    reason: RetryReason | None
    error: ErrorClass | None
    clause: str
    text: str = ""
    """The first error text of the body, for the error context."""
    code: int | None = None
    """The first error code of the body, which says more than the HTTP status does."""


def classify(service: Service, http_status: int, body: bytes | str) -> ServiceVerdict:
    """Return what an answer asks for. A body that is not JSON is taken as text, never as a mistake of the caller."""
    decoded = _decode(body)
    if service in (Service.QUERY, Service.ANALYTICS):
        return _classify_error_code(service, http_status, decoded)
    text = _text(body)
    line = RETRYABLE_HTTP_STATUSES.get((service, http_status))
    if line is None or (service is Service.VIEWS and not _view_body_permits(http_status, decoded, text)):
        error = None if http_status < 300 else errors.CouchbaseException
        return ServiceVerdict(None, error, "RFC 0049 Response Code Retry List: not in the list", text[:200])
    return ServiceVerdict(line.reason, line.error, f"RFC 0049 Response Code Retry List: {line.clause}", text[:200])


def _classify_error_code(service: Service, http_status: int, decoded: object) -> ServiceVerdict:
    code, message = first_error(decoded)
    if code is None:
        names_errors = isinstance(decoded, Mapping) and bool(decoded.get("errors"))
        error = None if http_status < 300 and not names_errors else errors.CouchbaseException
        return ServiceVerdict(None, error, "RFC 0049 Response Code Retry List: no error code in the body", message)
    line = RETRYABLE_ERROR_CODES.get((service, code))
    if line is None or line.message_contains not in message:
        clause = "RFC 0049 Response Code Retry List: not in the list"
        return ServiceVerdict(None, errors.CouchbaseException, clause, message, code)
    return ServiceVerdict(line.reason, line.error, f"RFC 0049 Response Code Retry List: {line.clause}", message, code)


def first_error(decoded: object) -> tuple[int | None, str]:
    """Return code and text of the first error of a decoded query or analytics body; the code is None without one."""
    listed = decoded.get("errors") if isinstance(decoded, Mapping) else None
    first = listed[0] if isinstance(listed, list) and listed else None
    if not isinstance(first, Mapping):
        return None, ""
    code, message = first.get("code"), first.get("msg")
    return (code if type(code) is int else None), (message if isinstance(message, str) else "")


def _view_body_permits(http_status: int, decoded: object, text: str) -> bool:
    """Apply the two lines of the list that look into the body, parsed where it is JSON (decision C21)."""
    if http_status == 404:
        if isinstance(decoded, Mapping):
            return decoded.get("reason") == "missing"
        return '"reason":"missing"' in text
    if http_status == 500:
        if isinstance(decoded, Mapping):
            named = [text for text in (decoded.get("error"), decoded.get("reason")) if isinstance(text, str)]
            return "error" not in decoded or not any(
                "{not_found, missing_named_view}" in text or text == "badarg" for text in named
            )
        return "error" not in text or not ("{not_found, missing_named_view}" in text or '"badarg"' in text)
    return True


def _decode(body: bytes | str) -> object:
    try:
        decoded: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return decoded


def _text(body: bytes | str) -> str:
    return body if isinstance(body, str) else body.decode("utf-8", "replace")
