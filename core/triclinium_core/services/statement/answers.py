"""What the answers of query and analytics share beside the rows.

Source: SDK-RFC 0056 "QueryResult"; SDK-RFC 0057 "AnalyticsResult".
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import TypeVar

import msgspec

from triclinium_core.services.request import MalformedAnswer
from triclinium_core.services.statement.go_durations import seconds_of

S = TypeVar("S", bound=StrEnum)
M = TypeVar("M", bound=msgspec.Struct)


class AnsweredWarning(msgspec.Struct, frozen=True):
    """One of ``warnings``."""

    code: int = 0
    msg: str = ""


class AnsweredParts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The members of an answer that both services have."""

    request_id: str = msgspec.field(default="", name="requestID")
    client_context_id: str = msgspec.field(default="", name="clientContextID")
    status: str
    signature: object = None
    warnings: list[AnsweredWarning] | None = None


class AnsweredMetrics(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The members of ``metrics`` that both services have."""

    elapsed_time: str = "0"
    execution_time: str = "0"
    result_count: int = 0
    result_size: int = 0
    error_count: int = 0
    warning_count: int = 0


def read_status(word: str, kind: type[S], broken_off: Collection[S]) -> S:
    """Return how a statement ended; UNKNOWN for a word that ``kind`` does not have.

    Raises:
        MalformedAnswer: it broke off, and the answer has no error.
    """
    try:
        status = kind(word.lower())
    except ValueError:
        status = kind("unknown")
    if status in broken_off:
        raise MalformedAnswer(f"the statement ended as {status!r}, and no error says why; rows may be missing")
    return status


def read_metrics(answered: AnsweredMetrics | None, kind: type[M]) -> M:
    """Return metrics with their times in seconds; all are 0 if the answer has none.

    Raises:
        MalformedAnswer: one of the times is not a duration.
    """
    if answered is None:
        return kind()
    metrics = msgspec.structs.asdict(answered)
    for name, told in (("elapsed_time", "elapsedTime"), ("execution_time", "executionTime")):
        try:
            metrics[name] = seconds_of(metrics[name])
        except ValueError as error:
            raise MalformedAnswer(f"metrics.{told}: {error}") from error
    return msgspec.convert(metrics, kind)
