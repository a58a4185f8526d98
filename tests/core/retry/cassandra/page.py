"""The two policies of the driver's page, row by row, as the reference for the shipped policies.

This module uses no code from triclinium. Each row is a condition and its result; the first row that matches counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEVELS = (
    "ANY",
    "ONE",
    "TWO",
    "THREE",
    "QUORUM",
    "ALL",
    "LOCAL_QUORUM",
    "EACH_QUORUM",
    "SERIAL",
    "LOCAL_SERIAL",
    "LOCAL_ONE",
)
WRITE_TYPES = ("SIMPLE", "BATCH", "UNLOGGED_BATCH", "COUNTER", "BATCH_LOG", "CAS", "VIEW", "CDC")
ABORTS = ("ClosedConnection", "HeartbeatFailure", "RequestAborted")
ANSWERS = (
    "ServerError",
    "Overloaded",
    "TruncateError",
    "ReadFailure",
    "WriteFailure",
    "CdcWriteFailure",
    "CasWriteUnknown",
    "ProtocolError",
    "AuthenticationError",
    "Bootstrapping",
    "FunctionFailure",
    "InvalidQuery",
    "Unprepared",
)

SERIAL = {"SERIAL", "LOCAL_SERIAL"}
"""Consistency levels of lightweight transactions."""


@dataclass(frozen=True)
class PageFailure:
    """Input of a policy in the words of the page. Fields that an event lacks have their defaults."""

    event: str
    retry_count: int
    level: str = ""
    write_type: str = ""
    needed: int = 0
    """Number of responses or acknowledgements that the level needs, or of replicas that it needs alive."""
    replicas: int = 0
    """Number of responses or acknowledgements received, or of replicas alive."""
    data_present: bool = False
    error: str = ""


Answer = tuple[str, str | None]
"""Name of the decision, and name of the consistency level or None."""

Row = tuple[Callable[[PageFailure], bool], Callable[[PageFailure], Answer] | str]


def downgrade(failure: PageFailure) -> Answer:
    """Return a retry at the level for the number of replicas; without any, at ONE after EACH_QUORUM, else RETHROW."""
    if failure.replicas >= 3:
        return "RETRY_SAME", "THREE"
    if failure.replicas == 2:
        return "RETRY_SAME", "TWO"
    if failure.replicas == 1:
        return "RETRY_SAME", "ONE"
    return ("RETRY_SAME", "ONE") if failure.level == "EACH_QUORUM" else ("RETHROW", None)


def always(failure: PageFailure) -> bool:
    """Return True, as the condition of the last row."""
    return True


def retried(failure: PageFailure) -> bool:
    """Return whether the execution has been retried."""
    return failure.retry_count != 0


def serial(failure: PageFailure) -> bool:
    """Return whether the level is one of those for lightweight transactions."""
    return failure.level in SERIAL


ALIKE: Mapping[str, Sequence[Row]] = {
    "request_aborted": [
        (lambda f: f.error in {"ClosedConnection", "HeartbeatFailure"}, "RETRY_NEXT"),
        (always, "RETHROW"),
    ],
    "error_response": [
        (lambda f: f.error in {"ReadFailure", "WriteFailure"}, "RETHROW"),
        (always, "RETRY_NEXT"),
    ],
}

PAGE: Mapping[str, Mapping[str, Sequence[Row]]] = {
    "default": {
        "read_timeout": [
            (lambda f: f.retry_count == 0 and f.replicas >= f.needed and not f.data_present, "RETRY_SAME"),
            (always, "RETHROW"),
        ],
        "write_timeout": [
            (lambda f: f.retry_count == 0 and f.write_type == "BATCH_LOG", "RETRY_SAME"),
            (always, "RETHROW"),
        ],
        "unavailable": [
            (lambda f: f.retry_count == 0, "RETRY_NEXT"),
            (always, "RETHROW"),
        ],
        **ALIKE,
    },
    "downgrading": {
        "read_timeout": [
            (retried, "RETHROW"),
            (serial, "RETHROW"),
            (lambda f: f.replicas < f.needed, downgrade),
            (lambda f: not f.data_present, "RETRY_SAME"),
            (always, "RETHROW"),
        ],
        "write_timeout": [
            (retried, "RETHROW"),
            (lambda f: f.write_type in {"SIMPLE", "BATCH"} and f.replicas > 0, "IGNORE"),
            (lambda f: f.write_type == "UNLOGGED_BATCH", downgrade),
            (lambda f: f.write_type == "BATCH_LOG", "RETRY_SAME"),
            (always, "RETHROW"),
        ],
        "unavailable": [
            (retried, "RETHROW"),
            (serial, "RETRY_NEXT"),
            (always, downgrade),
        ],
        **ALIKE,
    },
}


def expected_answer(policy: str, failure: PageFailure) -> Answer:
    """Return the decision that the page specifies for ``policy`` and ``failure``."""
    for holds, answer in PAGE[policy][failure.event]:
        if holds(failure):
            return (answer, None) if isinstance(answer, str) else answer(failure)
    raise AssertionError(f"the page has no row for {failure}")


COUNTS = range(5)

SMALL: Mapping[str, Mapping[str, Sequence[object]]] = {
    "read_timeout": {"level": LEVELS, "needed": COUNTS, "replicas": COUNTS, "data_present": (False, True)},
    "write_timeout": {"level": LEVELS, "write_type": WRITE_TYPES, "needed": COUNTS, "replicas": COUNTS},
    "unavailable": {"level": LEVELS, "needed": COUNTS, "replicas": COUNTS},
    "request_aborted": {"error": ABORTS},
    "error_response": {"error": ANSWERS},
}
"""Values of the fields of each event, except ``retry_count``: all names and small counts."""


def every_failure(event: str) -> Iterator[PageFailure]:
    """Yield each failure of one event, for all names and small counts."""
    fields: dict[str, Any] = {"retry_count": range(4), **SMALL[event]}
    for values in itertools.product(*fields.values()):
        yield PageFailure(event, **dict(zip(fields, values, strict=True)))
