"""Function that classifies HTTP responses, with the RFC's list of the responses after which a retry is possible.

Source: SDK-RFC 0049 "Response Code Retry List"; SDK-RFC 0058; decisions C20 to C22.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from triclinium_core.concealment import NO_SECRETS, Secrets
from triclinium_core.retry.couchbase.tables.kv_status import ErrorClass
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.tables.service_answers import ServiceAnswer, read_answer
from triclinium_core.retry.couchbase.tables.service_errors import error_row
from triclinium_core.retry.tables import table_of


@dataclass(frozen=True, slots=True)
class RetryableCode:
    """Line of the RFC's list: an error code in a service's response, or an HTTP status.

    If the strategy refuses the retry, ``service_errors`` determines the exception.
    """

    service: Service
    code: int
    reason: RetryReason
    clause: str
    message_contains: str = ""
    """Text that the message of the error must contain."""


def _error_codes() -> Iterable[RetryableCode]:
    line, r = RetryableCode, RetryReason
    # fmt: off
    yield line(Service.QUERY, 4040, r.QUERY_PREPARED_STATEMENT_FAILURE, "Query: Error code 4040")
    yield line(Service.QUERY, 4050, r.QUERY_PREPARED_STATEMENT_FAILURE, "Query: Error code 4050")
    yield line(Service.QUERY, 4070, r.QUERY_PREPARED_STATEMENT_FAILURE, "Query: Error code 4070")
    yield line(Service.QUERY, 5000, r.QUERY_INDEX_NOT_FOUND,
               'Query: Error code 5000 if the message also contains "queryport.indexNotFound"', "queryport.indexNotFound")
    yield line(Service.ANALYTICS, 23000, r.ANALYTICS_TEMPORARY_FAILURE, "Analytics: Error code 23000")
    yield line(Service.ANALYTICS, 23003, r.ANALYTICS_TEMPORARY_FAILURE, "Analytics: Error code 23003")
    yield line(Service.ANALYTICS, 23007, r.ANALYTICS_TEMPORARY_FAILURE, "Analytics: Error code 23007")
    # fmt: on


def _http_statuses() -> Iterable[RetryableCode]:
    line, r, views = RetryableCode, RetryReason, Service.VIEWS
    # fmt: off
    yield line(Service.SEARCH, 429, r.SEARCH_TOO_MANY_REQUESTS, "Search: Http status code 429")
    yield line(views, 302, r.VIEWS_NO_ACTIVE_PARTITION, "View: Http Status code 302")
    for status in (300, 301, 303, 307, 401, 408, 409, 412, 416, 417, 501, 502, 503, 504):
        yield line(views, status, r.VIEWS_TEMPORARY_FAILURE, f"View: Http status code {status}")
    yield line(views, 404, r.VIEWS_TEMPORARY_FAILURE, 'View: Http 404 IF the text contains "reason":"missing"')
    yield line(views, 500, r.VIEWS_TEMPORARY_FAILURE, 'View: Http 500 IF NOT "error" with {not_found, missing_named_view} or with "badarg"')
    # fmt: on


RETRYABLE_ERROR_CODES: Mapping[tuple[Service, int], RetryableCode] = table_of(
    ((line.service, line.code), line) for line in _error_codes()
)
"""Lines for the query and analytics services, by the code of the first error in the body (decision C22)."""

RETRYABLE_HTTP_STATUSES: Mapping[tuple[Service, int], RetryableCode] = table_of(
    ((line.service, line.code), line) for line in _http_statuses()
)
"""Lines for the search and views services, by HTTP status."""


@dataclass(frozen=True, slots=True)
class ServiceVerdict:
    """Classification of a response of an HTTP service. Without a ``reason``, the strategy is not consulted."""

    reason: RetryReason | None
    error: ErrorClass | None
    """Exception class with which the request fails if it is not retried; None for a success."""
    clause: str
    """Line of the retry list that applies, or the reason why no line applies."""
    error_clause: str = ""
    """Clause that requires the exception class ``error``."""
    text: str = ""
    """Error text of the server, on one line."""
    code: int | None = None
    """Code of the first error in the body, which is more precise than the HTTP status; None without one."""
    more_codes: tuple[int, ...] = ()
    """Codes of the errors after the first one."""
    server_permits_retry: bool | None = None
    """Value of ``retry`` in the first error of the query service; None without one. The RFCs do not use it to decide
    about retries."""
    body_start: str = ""
    """Beginning of a body in an unexpected format, which the service did not send."""


_LIST = "RFC 0049 Response Code Retry List"


def classify(
    service: Service,
    http_status: int,
    body: bytes | str,
    operation: str = "",
    secrets: Secrets = NO_SECRETS,
    *,
    has_query_context: bool = False,
) -> ServiceVerdict:
    """Return the classification of a response. Treat a body that is not JSON as text; never raise because of a body.

    Args:
        operation: name of the request. The errors of management requests depend on it.
        secrets: credentials that must not appear in the texts of the classification.
        has_query_context: whether the request names a scope.
    """
    answer = read_answer(service, http_status, body, operation, has_query_context=has_query_context)
    if not answer.is_failure:
        return ServiceVerdict(None, None, f"{_LIST}: a success is not in the list")
    line = _retryable(answer)
    row = error_row(answer)
    return ServiceVerdict(
        None if line is None else line.reason,
        row.error,
        f"{_LIST}: {'not in the list' if line is None else line.clause}",
        row.clause,
        answer.error_text_without(secrets),
        answer.code,
        answer.more_codes,
        answer.server_permits_retry,
        answer.body_start(secrets),
    )


def _retryable(answer: ServiceAnswer) -> RetryableCode | None:
    """Return the line of the list that applies to a response that reports a failure; None if no line applies."""
    if answer.code is not None:
        line = RETRYABLE_ERROR_CODES.get((answer.service, answer.code))
        return line if line is not None and line.message_contains in answer.message else None
    line = RETRYABLE_HTTP_STATUSES.get((answer.service, answer.http_status))
    return line if answer.service is not Service.VIEWS or _view_body_permits(answer) else None


def _view_body_permits(answer: ServiceAnswer) -> bool:
    """Return whether the body of a views response permits a retry, by the two lines that examine it (decision C21).

    If the body is JSON, examine the decoded body.
    """
    decoded, text = answer.body, answer.raw
    if answer.http_status == 404:
        if isinstance(decoded, Mapping):
            return decoded.get("reason") == "missing"
        return '"reason":"missing"' in text
    if answer.http_status == 500:
        if isinstance(decoded, Mapping):
            named = [text for text in (decoded.get("error"), decoded.get("reason")) if isinstance(text, str)]
            return "error" not in decoded or not any(
                "{not_found, missing_named_view}" in text or text == "badarg" for text in named
            )
        return "error" not in text or not ("{not_found, missing_named_view}" in text or '"badarg"' in text)
    return True
