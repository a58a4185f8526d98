"""``fail_after``: a cancel scope that knows whether what it interrupted may have happened.

Each ``fail_after`` block that is open keeps a report. An operation that is cancelled writes itself into the reports of
all blocks that may have cancelled it: those of its own task, and of every task above it. Context variables would not
do: a task that an outsider starts into a nursery inside a block is cancelled by the block but has not inherited its
variables, and an ambiguous write would go unreported. One entry too many is safe, one too few would be a lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from weakref import WeakKeyDictionary

import trio

from triclinium._driver.log import log_timeout
from triclinium_core.checks import Duration, check_duration
from triclinium_core.error_context import ErrorContext, last_answer, standing, story
from triclinium_core.errors import (
    AmbiguousTimeoutException,
    TimeoutException,
    UnambiguousTimeoutException,
)
from triclinium_core.shown import short_repr, total_repr


@dataclass(frozen=True, slots=True)
class AbandonedOperation:
    """An operation that was given up before it was answered. Two are equal whatever their contexts say."""

    operation: str
    """The method's name, such as ``upsert``."""
    key: str | None
    ambiguous: bool
    """Whether it may have been applied, or still will be."""
    context: ErrorContext = field(default_factory=ErrorContext, compare=False)
    """What the client knew of it then: its retries, its node, what it waited for."""

    @total_repr
    def __repr__(self) -> str:
        values = ", ".join(f"{spec.name}={short_repr(getattr(self, spec.name))}" for spec in fields(self)[:-1])
        return f"{type(self).__name__}({values}, context={self.context!r})"


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

    # Where users find it, and what tracebacks show.
    __module__ = "triclinium.errors"


class UnambiguousTooSlowError(UnambiguousTimeoutException, _BlockTimeout, rfc_class=UnambiguousTimeoutException):
    """A ``fail_after`` block ran out of time, and nothing that it gave up was applied.

    ``trio.TooSlowError`` as well. ``operations`` lists what was given up, in that order.
    """

    __module__ = "triclinium.errors"


SHOWN = 3
"""Of how many operations the message tells; ``operations`` has them all."""


class Report:
    """What was given up since one block was entered.

    Args:
        is_last: whether no other block is to hear of it.
    """

    __slots__ = ("is_last", "operations", "redact")

    def __init__(self, *, is_last: bool = False) -> None:
        self.is_last: bool = is_last
        self.operations: list[AbandonedOperation] = []
        self.redact: bool = False
        """Whether a client that gave up one of them marks document ids in its log."""


_open_reports: WeakKeyDictionary[trio.lowlevel.Task, list[Report]] = WeakKeyDictionary()
"""The reports of each task's open blocks."""


@contextmanager
def fail_after(seconds: Duration) -> Iterator[trio.CancelScope]:
    """Give the block ``seconds``, as ``trio.fail_after`` does, and tell what became of its operations when it is late.

    Args:
        seconds: relative to now, or a ``timedelta``; ``math.inf`` for no limit.

    Returns:
        The block's cancel scope.

    Raises:
        AmbiguousTooSlowError: time is up, and an operation of this task or of one below it was given up that may have
            been applied. It is an AmbiguousTimeoutException.
        UnambiguousTooSlowError: time is up, and nothing that was given up was applied. It is an
            UnambiguousTimeoutException.
        InvalidArgumentException: ``seconds`` is negative or not a number.

    Both are ``trio.TooSlowError`` as well, and their ``operations`` lists all that were given up, each with its context.
    Their own ``context`` has all of a single operation, and of several what is the same of all. An operation that an
    inner scope had given up earlier counts too.
    """
    seconds = check_duration(seconds, "seconds", endless=True)
    report = Report()
    reports = _open_reports.setdefault(trio.lowlevel.current_task(), [])
    reports.append(report)
    try:
        with trio.CancelScope(deadline=trio.current_time() + seconds) as scope:
            yield scope
    finally:
        reports.remove(report)
    if scope.cancelled_caught:
        error = _too_slow(seconds, tuple(report.operations))
        if report.operations:
            log_timeout(error, [abandoned.context for abandoned in report.operations], redact=report.redact)
        raise error


@contextmanager
def told_alone(report: Report) -> Iterator[None]:
    """Have a call of several operations hear alone of what is given up in the block; ``tell`` is for the others then.

    Args:
        report: one that ``is_last``.
    """
    reports = _open_reports.setdefault(trio.lowlevel.current_task(), [])
    reports.append(report)
    try:
        yield
    finally:
        reports.remove(report)


def tell(operations: Sequence[AbandonedOperation], *, redact: bool) -> None:
    """Write what this task gave up into the reports of all blocks that may have cancelled it. Never raises."""
    for report in reports_of(trio.lowlevel.current_task()):
        report.operations += operations
        report.redact |= redact


def reports_of(task: trio.lowlevel.Task) -> Sequence[Report]:
    """Return every report that may concern an operation of ``task``. Never raises."""
    reports: list[Report] = []
    current: trio.lowlevel.Task | None = task
    while current is not None:
        for report in reversed(_open_reports.get(current, ())):
            reports.append(report)
            if report.is_last:
                return reports
        nursery = current.parent_nursery
        current = nursery.parent_task if nursery is not None else None
    return reports


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
        return f"not done within {seconds:g} s; no operation was in flight"
    names = ", ".join(map(_name, operations[:SHOWN]))
    more = f" and {len(operations) - SHOWN} more" if len(operations) > SHOWN else ""
    verdict = "nothing was applied"
    if ambiguous:
        who = "it" if len(operations) == 1 else f"{ambiguous} of them"
        verdict = f"{who} may have been applied: read before writing again"
    return f"not done within {seconds:g} s: {names}{more}; {verdict}{_stories(operations)}"


def _name(abandoned: AbandonedOperation) -> str:
    name = abandoned.operation if abandoned.key is None else f"{abandoned.operation} of {abandoned.key!r}"
    where = standing(abandoned.context)
    return f"{name} ({where})" if where is not None else name


def _stories(operations: tuple[AbandonedOperation, ...]) -> str:
    """Return the newest answer and the retries of the operations, each text once: operations often have the same."""
    stories = dict.fromkeys(_story(abandoned.context) for abandoned in operations)
    return "".join(list(stories)[:SHOWN])


def _story(context: ErrorContext) -> str:
    answer = last_answer(context)
    return f"{f'; {answer}' if answer is not None else ''}{story(context)}"


def _context(seconds: float, operations: tuple[AbandonedOperation, ...]) -> ErrorContext:
    """Return what is known: all of a single operation, and of several what is the same of all."""
    timeout = seconds if math.isfinite(seconds) else None
    if not operations:
        return ErrorContext(timeout=timeout)
    first = operations[0].context
    others = [abandoned.context for abandoned in operations[1:]]
    names = [spec.name for spec in fields(ErrorContext)]
    shared = [name for name in names if all(getattr(first, name) == getattr(other, name) for other in others)]
    return ErrorContext(**{**{name: getattr(first, name) for name in shared}, "timeout": timeout})
