"""``fail_after``: a cancel scope that reports whether interrupted operations may have been applied.

Each open ``fail_after`` block keeps a report. A cancelled operation adds itself to the reports of all blocks that may
have cancelled it: those of its own task and of every task above it. Context variables would not work: a block also
cancels a task that is started from outside into a nursery inside the block, but that task does not inherit the block's
variables, so an ambiguous write would go unreported. An extra entry is safe; a missing one would be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields
from types import TracebackType
from weakref import WeakKeyDictionary

import trio

from triclinium._cluster_driver.log import log_timeout
from triclinium_core import errors
from triclinium_core.checks import Duration, check_duration
from triclinium_core.contract.couchbase import AbandonReason
from triclinium_core.error_context import ErrorContext, last_answer, standing, story
from triclinium_core.shown import short_repr, total_repr


@dataclass(frozen=True, slots=True)
class AbandonedOperation:
    """Operation that was abandoned before its response arrived. Equality ignores the context."""

    operation: str
    """Name of the operation, such as ``upsert``."""
    key: str | None
    ambiguous: bool
    """Whether the operation may have been or may still be applied."""
    context: ErrorContext = field(default_factory=ErrorContext, compare=False)
    """State of the operation when it was abandoned: its retries, its node, the cause of its wait."""

    @total_repr
    def __repr__(self) -> str:
        values = ", ".join(f"{spec.name}={short_repr(getattr(self, spec.name))}" for spec in fields(self)[:-1])
        return f"{type(self).__name__}({values}, context={self.context!r})"


class _BlockTimeout(errors.TimeoutException, trio.TooSlowError):
    """Common base of the two exceptions of ``fail_after``."""

    operations: tuple[AbandonedOperation, ...] = ()
    """Newest abandoned operations, oldest first; at most 256. Unambiguous operations are dropped first."""
    ambiguous_count: int = 0
    """Number of abandoned operations that may have been applied, including those that are not in ``operations``."""
    unambiguous_count: int = 0
    """Number of abandoned operations that were not applied, including those that are not in ``operations``."""

    def __reduce__(self) -> tuple[object, ...]:
        names = ("operations", "ambiguous_count", "unambiguous_count")
        return type(self), (self.message, self.context), {name: getattr(self, name) for name in names}


class AmbiguousTooSlowError(
    errors.AmbiguousTimeoutException, _BlockTimeout, rfc_class=errors.AmbiguousTimeoutException
):
    """A ``fail_after`` block ran out of time, and at least one of its abandoned operations may have been applied.

    Also a ``trio.TooSlowError``. ``operations`` lists the abandoned operations in order, at most 256;
    ``ambiguous_count`` and ``unambiguous_count`` count all of them.
    """

    # Tracebacks show the module from which users import the class.
    __module__ = "triclinium.errors"


class UnambiguousTooSlowError(
    errors.UnambiguousTimeoutException, _BlockTimeout, rfc_class=errors.UnambiguousTimeoutException
):
    """A ``fail_after`` block ran out of time, and none of its abandoned operations was applied.

    Also a ``trio.TooSlowError``. ``operations`` lists the abandoned operations in order, at most 256;
    ``unambiguous_count`` counts all of them.
    """

    __module__ = "triclinium.errors"


SHOWN = 3
"""Maximum number of operations, and of different texts about their responses and retries, in the message."""
REMEMBERED_MAX = 256
"""Maximum number of abandoned operations in one report, a few kilobytes each: enough to find the keys of a burst. A
block may last as long as its program, and each cancelled operation adds an entry."""


class Report:
    """Operations abandoned since one block was entered.

    Args:
        is_last: whether the operations are not added to the reports of outer blocks.
    """

    __slots__ = ("ambiguous_count", "is_last", "operations", "reason", "redact", "scope", "unambiguous_count")

    def __init__(self, *, is_last: bool = False) -> None:
        self.is_last: bool = is_last
        self.operations: list[AbandonedOperation] = []
        """Newest ``REMEMBERED_MAX`` operations; unambiguous operations are dropped before ambiguous ones."""
        self.ambiguous_count: int = 0
        """Number of ambiguous operations since the block was entered."""
        self.unambiguous_count: int = 0
        """Number of unambiguous operations since the block was entered."""
        self.redact: bool = False
        """Whether a client that abandoned one of the operations marks user data in its log."""
        self.scope: trio.CancelScope | None = None
        """Scope whose deadline is the time limit of the block; None without a limit."""
        self.reason: AbandonReason | None = None
        """Reason why the client itself abandons all operations under this report; None if it does not."""

    @property
    def is_ambiguous(self) -> bool:
        """Whether one of the operations may have been or may still be applied."""
        return self.ambiguous_count > 0

    @property
    def count(self) -> int:
        """Number of abandoned operations since the block was entered."""
        return self.ambiguous_count + self.unambiguous_count

    def add(self, abandoned: AbandonedOperation) -> None:
        """Record an abandoned operation. Never raises."""
        operations = self.operations
        if abandoned.ambiguous:
            self.ambiguous_count += 1
        else:
            self.unambiguous_count += 1
        operations.append(abandoned)
        if len(operations) > REMEMBERED_MAX:
            del operations[next((at for at, each in enumerate(operations) if not each.ambiguous), 0)]


_open_reports: WeakKeyDictionary[trio.lowlevel.Task, list[Report]] = WeakKeyDictionary()
"""Reports of each task's open blocks."""


def fail_after(seconds: Duration) -> AbstractContextManager[trio.CancelScope]:
    """Limit the block to ``seconds``, like ``trio.fail_after``. The timeout error lists the abandoned operations.

    Args:
        seconds: number of seconds from now, or a ``timedelta``; ``math.inf`` for no limit.

    Returns:
        The block's cancel scope.

    Raises:
        AmbiguousTooSlowError: time is up, and an abandoned operation of this task or of a task below it may have been
            applied. It is an AmbiguousTimeoutException.
        UnambiguousTooSlowError: time is up, and no abandoned operation was applied. It is an
            UnambiguousTimeoutException.
        InvalidArgumentException: ``seconds`` is negative, or neither a number nor a ``timedelta``.

    The two timeouts are also ``trio.TooSlowError``. Their ``operations`` list at most 256 abandoned operations, each
    with its context. Beyond that, the oldest unambiguous ones are dropped first; the counts and the class of the error
    include them. The error's own ``context`` contains the timeout of the block. Its other values are those that all
    listed operations share. Operations that an inner scope abandoned earlier count too. Operations that the client
    no longer needs, such as the slower reads of ``get_any_replica``, do not count.
    """
    return _Block(check_duration(seconds, "seconds", endless=True))


class _Block:
    """A ``fail_after`` block.

    It is not a generator: since CPython 3.13, the frames of ``contextlib`` would form a cycle with the ``Cancelled``
    that the block catches.
    """

    __slots__ = ("_report", "_reports", "_scope", "_seconds")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._scope = trio.CancelScope()
        self._report = Report()
        self._report.scope = self._scope

    def __enter__(self) -> trio.CancelScope:
        self._reports = _open_reports.setdefault(trio.lowlevel.current_task(), [])
        self._scope.deadline = trio.current_time() + self._seconds
        self._scope.__enter__()
        self._reports.append(self._report)
        return self._scope

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._scope.__exit__(kind, error, traceback)
        finally:
            self._reports.remove(self._report)
            # The traceback of the raised exception refers to this frame: together they would form a cycle.
            del error, traceback
        if self._scope.cancelled_caught:
            raise self._too_slow()

    def _too_slow(self) -> AmbiguousTooSlowError | UnambiguousTooSlowError:
        """Return the error of a block whose time is up, and log it if operations were abandoned."""
        report = self._report
        error = _too_slow(self._seconds, report)
        if report.operations:
            contexts, dropped = [each.context for each in error.operations], report.count - len(error.operations)
            log_timeout(error, contexts, redact=report.redact, dropped=dropped)
        return error


@contextmanager
def noted(report: Report) -> Iterator[None]:
    """Add ``report`` to the reports of the current task during a block.

    A call that makes several requests one after the other passes a report that ``is_last``, and reports its abandoned
    operation to the outer blocks with ``report_abandoned``.
    """
    reports = _open_reports.setdefault(trio.lowlevel.current_task(), [])
    reports.append(report)
    try:
        yield
    finally:
        reports.remove(report)


def report_abandoned(operations: Sequence[AbandonedOperation], *, redact: bool) -> None:
    """Add abandoned operations of this task to the reports of all blocks that may have cancelled it. Never raises."""
    for report in reports_of(trio.lowlevel.current_task()):
        for abandoned in operations:
            report.add(abandoned)
        report.redact |= redact


def reports_of(task: trio.lowlevel.Task) -> Sequence[Report]:
    """Return the reports to which an operation of ``task`` belongs, innermost first. Never raises."""
    reports: list[Report] = []
    for report in _reports_above(task):
        reports.append(report)
        if report.is_last:
            break
    return reports


def abandon_reason(task: trio.lowlevel.Task) -> AbandonReason:
    """Return the reason why an operation of ``task``, which is being cancelled, is abandoned. Never raises.

    The reason is the one that the client itself has set, if any. Otherwise it is a timeout if the scope of a report can
    cancel the task and its time limit has passed. Trio does not report which of several scopes cancelled a call, so a
    passed limit counts even if another scope was cancelled at the same time.
    """
    now = trio.current_time()
    late: list[trio.CancelScope] = []
    for report in _reports_above(task):
        if report.reason is not None:
            return report.reason
        # Trio regards a scope as cancelled once its deadline has passed. Do not read ``cancel_called``: that would
        # cancel the scope immediately, while trio delivers another cancellation.
        if report.scope is not None and report.scope.deadline <= now:
            late.append(report.scope)
    reaches = any(_can_cancel(scope, task) for scope in late)
    return AbandonReason.TIMEOUT if reaches else AbandonReason.CANCELLED


def leave_reason() -> AbandonReason:
    """Return the reason why the current task leaves a block with unfinished operations."""
    # The garbage collector may close a generator after ``trio.run``, outside of a task.
    if trio.lowlevel.in_trio_task() and trio.current_effective_deadline() == -math.inf:
        return abandon_reason(trio.lowlevel.current_task())
    return AbandonReason.NOT_NEEDED


def _reports_above(task: trio.lowlevel.Task) -> Iterator[Report]:
    """Yield the reports of all open blocks of ``task`` and of the tasks above it, the innermost first."""
    current: trio.lowlevel.Task | None = task
    while current is not None:
        yield from reversed(_open_reports.get(current, ()))
        nursery = current.parent_nursery
        current = nursery.parent_task if nursery is not None else None


def _can_cancel(scope: trio.CancelScope, task: trio.lowlevel.Task) -> bool:
    """Return whether a scope surrounds a task with no shield between them. Never raises.

    Trio has no public attribute for the scopes around a task. If a later version renames the private attributes, the
    result is True for every scope.
    """
    try:
        status = task._cancel_status
        while status._scope is not scope:
            if status._scope.shield or status.parent is None:
                return False
            status = status.parent
    except AttributeError:
        return True
    return True


def _too_slow(seconds: float, report: Report) -> AmbiguousTooSlowError | UnambiguousTooSlowError:
    operations = tuple(report.operations)
    # The counts decide the class, because they include operations that were dropped from the list.
    kind = AmbiguousTooSlowError if report.ambiguous_count else UnambiguousTooSlowError
    error = kind(_message(seconds, operations, report), _context(seconds, operations))
    error.operations = operations
    error.ambiguous_count, error.unambiguous_count = report.ambiguous_count, report.unambiguous_count
    return error


def _message(seconds: float, operations: tuple[AbandonedOperation, ...], report: Report) -> str:
    if not operations:
        return f"not done within {seconds:g} s; no operation was in flight"
    # Ambiguous operations first: the caller must check these.
    names = ", ".join(map(_name, sorted(operations, key=lambda each: not each.ambiguous)[:SHOWN]))
    ambiguous, count = report.ambiguous_count, report.count
    more = f" and {count - SHOWN} more" if count > SHOWN else ""
    verdict = "nothing was applied"
    if ambiguous:
        who = "it" if count == 1 else f"{ambiguous} of them"
        verdict = f"{who} may have been applied: read before writing again"
    return f"not done within {seconds:g} s: {names}{more}; {verdict}{_stories(operations)}"


def _name(abandoned: AbandonedOperation) -> str:
    name = abandoned.operation if abandoned.key is None else f"{abandoned.operation} of {abandoned.key!r}"
    where = standing(abandoned.context)
    return f"{name} ({where})" if where is not None else name


def _stories(operations: tuple[AbandonedOperation, ...]) -> str:
    """Return the last response and the retries of the operations as text: the first ``SHOWN`` different ones."""
    stories = dict.fromkeys(_story(abandoned.context) for abandoned in operations)
    return "".join(list(stories)[:SHOWN])


def _story(context: ErrorContext) -> str:
    answer = last_answer(context)
    return f"{f'; {answer}' if answer is not None else ''}{story(context)}"


def _context(seconds: float, operations: tuple[AbandonedOperation, ...]) -> ErrorContext:
    """Return a context with the timeout of the block, and with the values that all operations share."""
    timeout = seconds if math.isfinite(seconds) else None
    if not operations:
        return ErrorContext(timeout=timeout)
    first = operations[0].context
    others = [abandoned.context for abandoned in operations[1:]]
    names = [spec.name for spec in fields(ErrorContext)]
    shared = [name for name in names if all(getattr(first, name) == getattr(other, name) for other in others)]
    return ErrorContext(**{**{name: getattr(first, name) for name in shared}, "timeout": timeout})
