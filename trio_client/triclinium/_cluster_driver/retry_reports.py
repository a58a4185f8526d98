"""Reports on retries: to the log, to spans, and to the hooks of ``watching_retries``."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from triclinium._cluster_driver.log import Log
from triclinium._cluster_driver.watched_operations import WatchedOperations
from triclinium._driver.waiters import Waiters
from triclinium._telemetry.calls import Calls
from triclinium_core import errors
from triclinium_core.contract.couchbase import ReportRefusal, ReportRetry
from triclinium_core.contract.neutral import ReportStrategyError, Token

Q = TypeVar("Q")
R = TypeVar("R")
T = TypeVar("T")


class RetryReports:
    """Receiver of the reports of one client.

    Args:
        waiters: waiting tasks, in whose contexts log records are written.
        calls: spans of calls.
        watched: hooks of retried operations.
    """

    def __init__(self, log: Log, waiters: Waiters[Q, R], calls: Calls, watched: WatchedOperations) -> None:
        self._log = log
        self._waiters = waiters
        self._calls = calls
        self._watched = watched

    def retry(self, action: ReportRetry) -> None:
        """Report that an operation will be retried, or that its deadline is earlier than the retry."""
        if self._log.writes(action):
            self._write(action.token, self._log.retry, action)
        self._calls.retried(action)
        self._watched.retried(action, self._waiters.open.get(action.token))

    def refusal(self, action: ReportRefusal) -> None:
        """Report that an operation is not retried."""
        if self._log.writes(action):
            self._write(action.token, self._log.refusal, action)
        self._calls.refused(action)
        self._watched.refused(action, self._waiters.open.get(action.token))

    def strategy_error(self, action: ReportStrategyError) -> None:
        """Report the exception of a strategy that could not record a success."""
        self._write(action.token, self._log.strategy_error, action)

    def timeout(self, token: Token, error: errors.TimeoutException) -> None:
        """Report a timeout."""
        self._write(token, self._log.timeout, error)

    def _write(self, token: Token, write: Callable[[T], None], report: T) -> None:
        """Write a log record in the context of the task that waits for an operation, and in the span of its call."""
        waiter = self._waiters.open.get(token)
        # A copy can be entered even while a task runs in the original context.
        context = waiter.task.context.copy() if waiter is not None else copy_context()
        context.run(self._calls.in_span, token, write, report)
