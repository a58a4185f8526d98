"""Result of an analytics query, without its rows.

Source: SDK-RFC 0057 "AnalyticsResult".
"""

from __future__ import annotations

from enum import StrEnum, unique

import msgspec

from triclinium_core.services.service_request import HttpResponse, ServiceResult
from triclinium_core.services.statement import answers


@unique
class AnalyticsStatus(StrEnum):
    """Status of an analytics query. The value is the word on the wire."""

    RUNNING = "running"
    SUCCESS = "success"
    TIMEOUT = "timeout"
    FAILED = "failed"
    FATAL = "fatal"
    UNKNOWN = "unknown"
    """Any word that is not one of the above."""


BROKEN_OFF = frozenset({AnalyticsStatus.TIMEOUT, AnalyticsStatus.FAILED, AnalyticsStatus.FATAL})
"""Statuses with which rows may be missing. A response with such a status must have an error, and never succeeds."""


class AnalyticsWarning(msgspec.Struct, frozen=True):
    """Warning of the service about an analytics query."""

    code: int
    message: str


class AnalyticsMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics of an analytics query."""

    elapsed_time: float = 0.0
    """Seconds from the arrival of the query to the end of its response."""
    execution_time: float = 0.0
    """Seconds from the beginning of the query's execution to the end of its response."""
    result_count: int = 0
    result_size: int = 0
    """Size of the rows in bytes."""
    error_count: int = 0
    processed_objects: int = 0
    warning_count: int = 0


class AnalyticsMetaData(ServiceResult, frozen=True, kw_only=True):
    """Metadata of an analytics query, which follows its rows."""

    request_id: str
    """Id of the query in the service."""
    client_context_id: str
    status: AnalyticsStatus
    warnings: tuple[AnalyticsWarning, ...] = ()
    metrics: AnalyticsMetrics = AnalyticsMetrics()
    signature: object = None
    """Signature of the rows, decoded from JSON; None if not sent."""


class _Metrics(answers.AnsweredMetrics, frozen=True, kw_only=True):
    processed_objects: int = 0


class _Answer(answers.AnsweredParts, frozen=True, kw_only=True):
    metrics: _Metrics | None = None


def metadata_of(answer: HttpResponse) -> AnalyticsMetaData:
    """Return the metadata in a response without an error.

    Raises:
        MalformedAnswer: the body is not a response of the service, or its status is in ``BROKEN_OFF`` without an error.
    """
    answered = answers.read_parts(answer, _Answer, lambda found: {"metrics": answers.known_metrics(found, _Metrics)})
    return AnalyticsMetaData(
        request_id=answered.request_id,
        client_context_id=answered.client_context_id,
        status=answers.read_status(answered.status, AnalyticsStatus, BROKEN_OFF),
        warnings=answers.read_warnings(answered.warnings, AnalyticsWarning),
        metrics=answers.read_metrics(answered.metrics, AnalyticsMetrics),
        signature=answered.signature,
    )
