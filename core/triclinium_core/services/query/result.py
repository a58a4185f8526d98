"""Result of a query, without its rows.

Source: SDK-RFC 0056 "QueryResult".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, unique

import msgspec

from triclinium_core.services.service_request import HttpResponse, ServiceResult
from triclinium_core.services.statement import answers


@unique
class QueryStatus(StrEnum):
    """Status of a query. The value is the word on the wire."""

    RUNNING = "running"
    SUCCESS = "success"
    ERRORS = "errors"
    COMPLETED = "completed"
    STOPPED = "stopped"
    TIMEOUT = "timeout"
    CLOSED = "closed"
    FATAL = "fatal"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """Any word that is not one of the above."""


BROKEN_OFF = frozenset(
    {
        QueryStatus.ERRORS,
        QueryStatus.STOPPED,
        QueryStatus.TIMEOUT,
        QueryStatus.CLOSED,
        QueryStatus.FATAL,
        QueryStatus.ABORTED,
    }
)
"""Statuses with which rows may be missing. A response with such a status must have an error, and never succeeds."""


class QueryWarning(msgspec.Struct, frozen=True):
    """Warning of the service about a query."""

    code: int
    message: str


class QueryMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics of a query. All are 0 unless ``metrics`` is requested."""

    elapsed_time: float = 0.0
    """Seconds from the arrival of the query to the end of its response."""
    execution_time: float = 0.0
    """Seconds from the beginning of the query's execution to the end of its response."""
    sort_count: int = 0
    result_count: int = 0
    result_size: int = 0
    """Size of the rows in bytes."""
    mutation_count: int = 0
    error_count: int = 0
    warning_count: int = 0


class QueryMetaData(ServiceResult, frozen=True, kw_only=True):
    """Metadata of a query, which follows its rows."""

    request_id: str
    """Id of the query in the service."""
    client_context_id: str
    status: QueryStatus
    warnings: tuple[QueryWarning, ...] = ()
    metrics: QueryMetrics = QueryMetrics()
    signature: object = None
    """Signature of the rows, decoded from JSON: usually the type of each name; None if not sent."""
    profile: Mapping[str, object] | None = None
    """Profile, decoded from JSON, if requested and readable; otherwise None."""


class _Metrics(answers.AnsweredMetrics, frozen=True, kw_only=True):
    sort_count: int = 0
    mutation_count: int = 0


class _Answer(answers.AnsweredParts, frozen=True, kw_only=True):
    metrics: _Metrics | None = None
    profile: dict[str, object] | None = None


def metadata_of(answer: HttpResponse) -> QueryMetaData:
    """Return the metadata in a response without an error.

    Raises:
        MalformedAnswer: the body is not a response of the service, or its status is in ``BROKEN_OFF`` without an error.
    """
    answered = answers.read_parts(
        answer,
        _Answer,
        lambda found: {
            "metrics": answers.known_metrics(found, _Metrics),
            "profile": found.get("profile", dict[str, object]),
        },
    )
    return QueryMetaData(
        request_id=answered.request_id,
        client_context_id=answered.client_context_id,
        status=answers.read_status(answered.status, QueryStatus, BROKEN_OFF),
        warnings=answers.read_warnings(answered.warnings, QueryWarning),
        metrics=answers.read_metrics(answered.metrics, QueryMetrics),
        signature=answered.signature,
        profile=answered.profile,
    )
