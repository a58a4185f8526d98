"""Common parts of the responses of query and analytics, without the rows.

A response of the known form is decoded in one pass. Any other response is read member by member, so that an unknown
value does not make other values unreadable.

Source: SDK-RFC 0056 "QueryResult"; SDK-RFC 0057 "AnalyticsResult".
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from typing import TypeVar

import msgspec

from triclinium_core.services.received import Members, body_members
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer
from triclinium_core.services.statement.go_durations import seconds_of

W = TypeVar("W")
S = TypeVar("S", bound=StrEnum)
M = TypeVar("M", bound=msgspec.Struct)
A = TypeVar("A", bound="AnsweredParts")


class AnsweredWarning(msgspec.Struct, frozen=True):
    """Item of ``warnings``."""

    code: int = 0
    msg: str = ""


class AnsweredParts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Members that the responses of both services have."""

    request_id: str = msgspec.field(default="", name="requestID")
    client_context_id: str = msgspec.field(default="", name="clientContextID")
    status: str
    signature: object = None
    warnings: list[AnsweredWarning] | None = None


class AnsweredMetrics(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Members of ``metrics`` that both services have."""

    elapsed_time: str = "0"
    execution_time: str = "0"
    result_count: int = 0
    result_size: int = 0
    error_count: int = 0
    warning_count: int = 0


def read_parts(answer: HttpResponse, kind: type[A], rest: Callable[[Members], dict[str, object]]) -> A:
    """Return the members of a response. Use the default for a member of an unknown form.

    Args:
        answer: response of the service.
        kind: type of the result.
        rest: reader of the members of ``kind`` that ``AnsweredParts`` does not have.

    Raises:
        MalformedAnswer: the response is not an object, or has no valid status, so rows may be missing.
    """
    try:
        return answer.body_as(kind)
    except MalformedAnswer:
        found = body_members(answer)
    status = found.get("status", str)
    if status is None:
        raise MalformedAnswer("the response has no valid status")
    warnings = [AnsweredWarning(each.integer("code") or 0, each.text("msg")) for each in found.objects("warnings")]
    return kind(
        request_id=found.text("requestID"),
        client_context_id=found.text("clientContextID"),
        status=status,
        signature=found.get("signature", object),
        warnings=warnings,
        **rest(found),
    )


def known_metrics(found: Members, kind: type[M]) -> M:
    """Return the metrics, with 0 for each unreadable metric."""
    metrics = found.members("metrics")
    names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    return kind(
        **{
            field: metrics.text(name) if field.endswith("_time") else metrics.count(name)
            for field, name in names.items()
        }
    )


def read_status(word: str, kind: type[S], broken_off: Collection[S]) -> S:
    """Return the status of a statement; UNKNOWN for a word that ``kind`` does not have.

    Raises:
        MalformedAnswer: the status is in ``broken_off``, but the response has no error.
    """
    try:
        status = kind(word.lower())
    except ValueError:
        status = kind("unknown")
    if status in broken_off:
        raise MalformedAnswer(
            f"the statement ended with status {str(status)!r} and without an error; rows may be missing"
        )
    return status


def read_warnings(answered: list[AnsweredWarning] | None, kind: Callable[[int, str], W]) -> tuple[W, ...]:
    """Return the warnings of a response."""
    return tuple([kind(warning.code, warning.msg) for warning in answered or ()])


def read_metrics(answered: AnsweredMetrics | None, kind: type[M]) -> M:
    """Return metrics with their times in seconds, and 0 for a missing or invalid metric."""
    if answered is None:
        return kind()
    metrics = msgspec.structs.asdict(answered)
    for name in ("elapsed_time", "execution_time"):
        metrics[name] = _seconds(metrics[name])
    return kind(**metrics)


def _seconds(duration: str) -> float:
    try:
        return seconds_of(duration)
    except ValueError:
        return 0.0
