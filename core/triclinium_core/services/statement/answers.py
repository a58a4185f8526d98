"""What query and analytics answer beside the rows, as far as it is the same.

Source: SDK-RFC 0056 "QueryResult"; SDK-RFC 0057 "AnalyticsResult".
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from triclinium_core.services.request import HttpAnswer, MalformedAnswer
from triclinium_core.services.statement.go_durations import seconds_of
from triclinium_core.shown import one_line

T = TypeVar("T")


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


def read_answer(answer: HttpAnswer, kind: type[T]) -> T:
    """Return an answer as an object of ``kind``.

    Raises:
        MalformedAnswer: it is none.
    """
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise MalformedAnswer(f"status {answer.status} with a body of another form: {one_line(str(error))}") from error


def read_seconds(metrics: str, name: str) -> float:
    """Return one of the times among the metrics, in seconds.

    Raises:
        MalformedAnswer: it is none.
    """
    try:
        return seconds_of(metrics)
    except ValueError as error:
        raise MalformedAnswer(f"metrics.{name}: {error}") from error
