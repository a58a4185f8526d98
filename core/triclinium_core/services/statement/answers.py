"""What the answers of query and analytics share beside the rows.

Source: SDK-RFC 0056 "QueryResult"; SDK-RFC 0057 "AnalyticsResult".
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from typing import TypeVar

import msgspec

from triclinium_core.services.received import Members
from triclinium_core.services.request import MalformedAnswer
from triclinium_core.services.statement.go_durations import seconds_of

S = TypeVar("S", bound=StrEnum)
M = TypeVar("M", bound=msgspec.Struct)
W = TypeVar("W")


def read_warnings(answered: Members, kind: Callable[[int, str], W]) -> tuple[W, ...]:
    """Return the warnings; 0 stands for a code and an empty string for a text that is not one."""
    return tuple(kind(each.integer("code") or 0, each.text("msg")) for each in answered.objects("warnings"))


def read_status(answered: Members, kind: type[S], broken_off: Collection[S]) -> S:
    """Return how a statement ended; UNKNOWN for a word that ``kind`` does not have.

    Raises:
        MalformedAnswer: it broke off and the answer has no error, or the answer has no status: rows may be missing.
    """
    word = answered.get("status", str)
    if word is None:
        raise MalformedAnswer("the answer has no status")
    try:
        status = kind(word.lower())
    except ValueError:
        status = kind("unknown")
    if status in broken_off:
        raise MalformedAnswer(f"the statement ended as {status!r}, and no error says why; rows may be missing")
    return status


def read_metrics(answered: Members, kind: type[M]) -> M:
    """Return the metrics. A metric that is missing or invalid is 0. Fields that end in ``_time`` are seconds."""
    metrics = answered.members("metrics")
    found: dict[str, float] = {}
    for name in kind.__struct_fields__:
        first, *others = name.split("_")
        key = first + "".join(map(str.capitalize, others))
        found[name] = _seconds(metrics.text(key)) if name.endswith("_time") else metrics.count(key)
    return kind(**found)


def _seconds(duration: str) -> float:
    try:
        return seconds_of(duration)
    except ValueError:
        return 0.0
