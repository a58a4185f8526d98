"""``fail_after``: a cancel scope that knows whether what it interrupted may have happened.

Each ``fail_after`` block that is open keeps a report. An operation that is cancelled writes itself into the reports of
all blocks that may have cancelled it: those of its own task, and of every task above it. Context variables would not
do: a task that an outsider starts into a nursery inside a block is cancelled by the block but has not inherited its
variables, and an ambiguous write would go unreported. One entry too many is safe, one too few would be a lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from weakref import WeakKeyDictionary

import trio

from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import (
    AmbiguousTimeoutException,
    InvalidArgumentException,
    TimeoutException,
    UnambiguousTimeoutException,
)


class AbandonedOperation(NamedTuple):
    """An operation that was given up before it was answered."""

    operation: str
    """The method's name, such as ``upsert``."""
    key: str | None
    ambiguous: bool
    """Whether it may have been applied, or still will be."""


class _BlockTimeout(TimeoutException, trio.TooSlowError):
    """What the two exceptions of ``fail_after`` share."""

    operations: tuple[AbandonedOperation, ...] = ()
    """What was given up, in the order in which it was."""

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.context), {"operations": self.operations}


class AmbiguousTooSlowError(AmbiguousTimeoutException, _BlockTimeout, rfc_class=AmbiguousTimeoutException):
    """A ``fail_after`` block ran out of time, and something in it may or may not have been applied.

    ``trio.TooSlowError`` as well. ``operations`` lists what was given up, in that order.
    """


class UnambiguousTooSlowError(UnambiguousTimeoutException, _BlockTimeout, rfc_class=UnambiguousTimeoutException):
    """A ``fail_after`` block ran out of time, and nothing that it gave up was applied.

    ``trio.TooSlowError`` as well. ``operations`` lists what was given up, in that order.
    """


class _Report:
    """What was given up since one block was entered."""

    __slots__ = ("operations",)

    def __init__(self) -> None:
        self.operations: list[AbandonedOperation] = []


_open_reports: WeakKeyDictionary[trio.lowlevel.Task, list[_Report]] = WeakKeyDictionary()
"""The reports of each task's open blocks."""


@contextmanager
def fail_after(seconds: float) -> Iterator[trio.CancelScope]:
    """Give the block ``seconds``, as ``trio.fail_after`` does, and tell what became of its operations when it is late.

    Args:
        seconds: relative to now; ``math.inf`` for no limit.

    Returns:
        The block's cancel scope.

    Raises:
        AmbiguousTooSlowError: time is up, and an operation of this task or of one below it was given up that may have
            been applied. It is an AmbiguousTimeoutException.
        UnambiguousTooSlowError: time is up, and nothing that was given up was applied. It is an
            UnambiguousTimeoutException.
        InvalidArgumentException: ``seconds`` is negative or not a number.

    Both are ``trio.TooSlowError`` as well, and their ``operations`` lists all that were given up. An operation that an
    inner scope had given up earlier counts too.
    """
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or math.isnan(seconds) or seconds < 0:
        raise InvalidArgumentException(f"seconds={seconds!r} must be a number >= 0", parameter="seconds")
    report = _Report()
    reports = _open_reports.setdefault(trio.lowlevel.current_task(), [])
    reports.append(report)
    try:
        with trio.CancelScope(deadline=trio.current_time() + seconds) as scope:
            yield scope
    finally:
        reports.remove(report)
    if scope.cancelled_caught:
        raise _too_slow(seconds, tuple(report.operations))


def report_abandoned(task: trio.lowlevel.Task, abandoned: AbandonedOperation) -> None:
    """Write ``abandoned``, an operation of ``task``, into every report that may concern it. Never raises."""
    current: trio.lowlevel.Task | None = task
    while current is not None:
        for report in _open_reports.get(current, ()):
            report.operations.append(abandoned)
        nursery = current.parent_nursery
        current = nursery.parent_task if nursery is not None else None


def _too_slow(
    seconds: float, operations: tuple[AbandonedOperation, ...]
) -> AmbiguousTooSlowError | UnambiguousTooSlowError:
    ambiguous = [abandoned for abandoned in operations if abandoned.ambiguous]
    kind = AmbiguousTooSlowError if ambiguous else UnambiguousTooSlowError
    error = kind(_message(seconds, operations, len(ambiguous)), _context(seconds, operations))
    error.operations = operations
    return error


def _message(seconds: float, operations: tuple[AbandonedOperation, ...], ambiguous: int) -> str:
    if not operations:
        return f"{seconds:g} s were not enough; no operation was in flight"
    names = ", ".join(map(_name, operations[:3]))
    more = f" and {len(operations) - 3} more" if len(operations) > 3 else ""
    verdict = "none was applied"
    if ambiguous:
        who = "it" if len(operations) == 1 else f"{ambiguous} of them"
        verdict = f"{who} may have been applied: read before writing again"
    return f"{seconds:g} s were not enough for {names}{more}; {verdict}"


def _name(abandoned: AbandonedOperation) -> str:
    return abandoned.operation if abandoned.key is None else f"{abandoned.operation} of {abandoned.key!r}"


def _context(seconds: float, operations: tuple[AbandonedOperation, ...]) -> ErrorContext:
    """Return what is known; an operation only where there was just one."""
    timeout = seconds if math.isfinite(seconds) else None
    if len(operations) != 1:
        return ErrorContext(timeout=timeout)
    return ErrorContext(operation=operations[0].operation, key=operations[0].key, timeout=timeout)
