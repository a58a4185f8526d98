"""Calls to asynchronous strategies: each runs in a task with a copy of the waiting task's context."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from typing import Generic, TypeVar

import trio

from triclinium._driver.waiters import Waiters
from triclinium_core.contract import neutral

Q = TypeVar("Q")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


class Consultations(Generic[Q, R]):
    """Pending calls to strategies.

    Args:
        feed: passes the decision of a strategy to the machine.
        waiters: waiting tasks, whose contexts the strategies see.
        report: logs the exception of a strategy that could not record a success.
    """

    nursery: trio.Nursery
    """Nursery of the calls; set before the first call."""
    recorders: trio.Nursery
    """Nursery of the tasks that record successes. These tasks may continue after all other tasks have ended."""

    def __init__(
        self,
        feed: Callable[[neutral.StrategyDecided], None],
        waiters: Waiters[Q, R],
        report: Callable[[neutral.ReportStrategyError], None],
    ) -> None:
        self._feed = feed
        self._waiters = waiters
        self._report = report
        self.open: dict[neutral.Token, trio.CancelScope] = {}
        """Cancel scope of each pending call; usually empty, so that an operation that ends needs no lookup."""

    def consult(self, action: neutral.ConsultStrategy) -> None:
        """Request a strategy's decision about a failed attempt."""
        self._ask(action.token, lambda: action.strategy.retry_after(action.request, action.reason))

    def acquire(self, action: neutral.AcquirePermit) -> None:
        """Request the permit for a first attempt from a strategy."""
        self._ask(action.token, action.permit.acquire)

    def record(self, action: neutral.RecordSuccess) -> None:
        """Start a background task in which a strategy records a success."""
        self._context(action.token).run(self.recorders.start_soon, self._record, action)

    def call_off(self, token: neutral.Token) -> None:
        """Cancel the pending call of a token that has ended or is abandoned, if it has one."""
        scope = self.open.pop(token, None)
        if scope is not None:
            scope.cancel()

    def _ask(self, token: neutral.Token, question: Callable[[], Awaitable[object]]) -> None:
        if token in self._waiters.open:
            scope = self.open[token] = trio.CancelScope()
            self._context(token).run(self.nursery.start_soon, self._answer, token, question, scope)

    def _context(self, token: neutral.Token) -> Context:
        """Return a copy of the waiting task's context, so that the strategy sees that task's variables."""
        waiter = self._waiters.open.get(token)
        # A copy can be entered even while the task itself runs.
        return waiter.task.context.copy() if waiter is not None else copy_context()

    @trio.lowlevel.enable_ki_protection
    async def _answer(
        self, token: neutral.Token, question: Callable[[], Awaitable[object]], scope: trio.CancelScope
    ) -> None:
        with scope:
            answer, raised = await _outcome(question)
        if not scope.cancelled_caught:
            if self.open.get(token) is scope:
                del self.open[token]
            self._feed(neutral.StrategyDecided(token, answer, raised))

    @trio.lowlevel.enable_ki_protection
    async def _record(self, action: neutral.RecordSuccess) -> None:
        _, raised = await _outcome(action.permit.record)
        if raised is not None:
            self._report(neutral.ReportStrategyError(action.token, raised))


async def _outcome(question: Callable[[], Awaitable[T]]) -> tuple[T | None, Exception | None]:
    """Return the result of a call to a strategy, or its exception."""
    try:
        return await question(), None
    except Exception as error:
        return None, error
    except BaseExceptionGroup as group:
        # The call was cancelled or ends the program, and also raised errors. Drop the errors: no caller waits for them.
        _, rest = group.split(Exception)
        assert rest is not None, "a group that contains only Exceptions is an Exception"
        raise rest from None
