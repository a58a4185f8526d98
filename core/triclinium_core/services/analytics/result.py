"""Result of an analytics query besides its rows.

Source: SDK-RFC 0057 "AnalyticsResult".
"""

from __future__ import annotations

from enum import StrEnum, unique

import msgspec

from triclinium_core.services.service_request import HttpResponse, ServiceResult
from triclinium_core.services.statement import answers


@unique
class AnalyticsStatus(StrEnum):
    """How an analytics query ended; the value is the word of the service."""

    RUNNING = "running"
    SUCCESS = "success"
    TIMEOUT = "timeout"
    FAILED = "failed"
    FATAL = "fatal"
    UNKNOWN = "unknown"
    """Another word."""


BROKEN_OFF = frozenset({AnalyticsStatus.TIMEOUT, AnalyticsStatus.FAILED, AnalyticsStatus.FATAL})
"""Rows may be missing. The answer has an error, and is never read as a success."""


class AnalyticsWarning(msgspec.Struct, frozen=True):
    """What the service would have the author of an analytics query know."""

    code: int
    message: str


class AnalyticsMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """What an analytics query has cost."""

    elapsed_time: float = 0.0
    """Seconds from the arrival of the query to the end of its answer."""
    execution_time: float = 0.0
    """Seconds from the beginning of its execution."""
    result_count: int = 0
    result_size: int = 0
    """Bytes."""
    error_count: int = 0
    processed_objects: int = 0
    warning_count: int = 0


class AnalyticsMetaData(ServiceResult, frozen=True, kw_only=True):
    """What the service tells of an analytics query whose rows have all come."""

    request_id: str
    """The service's name for the query."""
    client_context_id: str
    status: AnalyticsStatus
    warnings: tuple[AnalyticsWarning, ...] = ()
    metrics: AnalyticsMetrics = AnalyticsMetrics()
    signature: object = None
    """The shape of the rows as JSON; None if not sent."""


class _Metrics(answers.AnsweredMetrics, frozen=True, kw_only=True):
    processed_objects: int = 0


class _Answer(answers.AnsweredParts, frozen=True, kw_only=True):
    metrics: _Metrics | None = None


def metadata_of(answer: HttpResponse) -> AnalyticsMetaData:
    """Return what an answer without an error says.

    Raises:
        MalformedAnswer: this is not how the service answers, or it broke off without an error.
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
