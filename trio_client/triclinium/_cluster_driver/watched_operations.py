"""Reports on the retries of Couchbase operations to the hooks of ``watching_retries``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from triclinium._driver.waiters import Waiter
from triclinium._retry.watching import call_hooks, hooks_of_blocks
from triclinium_core import errors
from triclinium_core.contract.couchbase import ReportRefusal, ReportRetry
from triclinium_core.contract.neutral import Token
from triclinium_core.retry.calls.history import RetryEnding
from triclinium_core.retry.calls.reports import RetryGivenUp, RetryHook, RetryReport, RetryScheduled, RetrySucceeded

Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(slots=True)
class WatchedOperation:
    """Operation that is being retried, or was refused a retry."""

    name: str
    hooks: Sequence[RetryHook]
    attempt: int
    """Number of the attempt that failed last."""
    reason: str
    is_last: bool = False
    """Whether no attempt follows."""
    is_refused: bool = False
    """Whether the strategy, or a rule, refused a retry before the deadline."""


class WatchedOperations:
    """Operations of ``watching_retries`` blocks that were retried, or refused a retry, and have not ended."""

    def __init__(self) -> None:
        self.open: dict[Token, WatchedOperation] = {}
        """Operations by token. The mapping is usually empty, so that an operation that ends needs no lookup."""

    def retried(self, report: ReportRetry, waiter: Waiter[Q, R] | None) -> None:
        """Report that an attempt failed and a retry follows, unless the delay of the retry reaches the deadline."""
        watched = self._watch(report, waiter)
        if watched is not None and waiter is not None:
            watched.is_last = not report.dispatches
            if watched.is_last:
                return
            scheduled = RetryScheduled(watched.name, watched.attempt, report.delay, None, None, watched.reason)
            _report(waiter, scheduled, watched.hooks)

    def refused(self, report: ReportRefusal, waiter: Waiter[Q, R] | None) -> None:
        """Record that no attempt follows; the error arrives later."""
        watched = self._watch(report, waiter)
        if watched is not None:
            watched.is_last, watched.is_refused = True, report.request.remaining > 0

    def settled(self, waiter: Waiter[Q, R], error: Exception | None) -> None:
        """Report the end of an operation if it was retried or refused a retry."""
        watched = self.open.pop(waiter.token, None)
        if watched is None:
            return
        if error is None:
            _report(waiter, RetrySucceeded(watched.name, watched.attempt + 1, None), watched.hooks)
            return
        if isinstance(error, errors.TimeoutException) and not watched.is_refused:
            ending = RetryEnding.DEADLINE
        else:
            ending = RetryEnding.REFUSED if watched.is_last else RetryEnding.NOT_RETRY_SAFE
        number = watched.attempt if watched.is_last else watched.attempt + 1
        _report(waiter, RetryGivenUp(watched.name, number, ending, error, None, watched.reason), watched.hooks)

    def forget(self, token: Token) -> None:
        """Forget an operation whose task was cancelled. Hooks get no further report of the operation."""
        self.open.pop(token, None)

    def _watch(self, report: ReportRetry | ReportRefusal, waiter: Waiter[Q, R] | None) -> WatchedOperation | None:
        hooks = waiter.task.context.get(hooks_of_blocks) if waiter is not None else None
        if not hooks:
            return None
        request = report.request
        watched = WatchedOperation(request.operation, hooks, request.retry_attempts + 1, str(report.reason))
        self.open[report.token] = watched
        return watched


def _report(waiter: Waiter[Q, R], report: RetryReport, hooks: Sequence[RetryHook]) -> None:
    # Use the context of the calling task, so that a hook sees that task's variables.
    context = waiter.task.context if waiter.is_parked else waiter.task.context.copy()
    context.run(call_hooks, report, hooks)
