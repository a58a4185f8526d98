"""Tasks that wait for the results of their submissions to the machine."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from typing import Generic, Protocol, TypeVar

import msgspec
import trio

from triclinium_core.contract.neutral import Token

Q = TypeVar("Q")
R = TypeVar("R")

_NO_TOKEN = Token(0)


class Abandons(Protocol[Q, R]):
    """Driver of the waiting tasks."""

    def abandon(self, waiter: Waiter[Q, R], /) -> trio.lowlevel.Abort:
        """Abandon the submission of a task that is being cancelled. Never raises."""
        ...


class Waiter(msgspec.Struct, Generic[Q, R], eq=False, gc=False):
    """Task that waits for the outcome of its submission.

    The driver resumes the task with its waiter as the value, because trio only calls the value's ``unwrap``. With an
    ``outcome.Value`` instead, a get takes about 7 % more instructions (callgrind,
    ``tests.bench --only calls``).
    """

    token: Token
    asked: Q
    """Value that the task submitted."""
    task: trio.lowlevel.Task
    owner: Abandons[Q, R]
    """Driver that abandons the submission when the task is cancelled; a bound method would take 64 bytes more."""
    is_parked: bool = False
    """Whether the task is asleep and must be resumed."""
    result: R | None = None
    error: Exception | None = None

    def abort(self, _: object) -> trio.lowlevel.Abort:
        """Abandon the submission because the task is being cancelled."""
        return self.owner.abandon(self)

    def unwrap(self) -> R:
        """Return the result, or raise the error without a reference cycle through its traceback."""
        result, error = self.result, self.error
        if result is not None:
            return result
        self.error = None
        assert error is not None, "the waiter has a result or an error"
        try:
            raise error
        finally:
            self.release()
            del error

    def release(self) -> None:
        """Drop the task, its submission and the driver.

        A traceback may keep the waiter alive, and the garbage collector skips the waiter.
        """
        del self.task, self.asked, self.owner


class Collector(Protocol[Q, R]):
    """Object that collects the outcomes of many submissions of one task, which does not wait for each."""

    open: dict[str, CollectedWaiter[Q, R]]
    """Submissions without an outcome, by key. The driver adds them."""

    def refuse(self, item: tuple[object, ...], error: Exception, /) -> None:
        """Take the error of an item that is not submitted."""
        ...

    def collect(self, waiters: Iterable[CollectedWaiter[Q, R]], /) -> None:
        """Take the outcomes of submissions that have ended. Never raises."""
        ...


class CollectedWaiter(Waiter[Q, R], Generic[Q, R], eq=False, gc=False):
    """Submission whose outcome goes to a collector."""

    collector: Collector[Q, R] | None = None


class Waiters(Generic[Q, R]):
    """Waiting tasks by token."""

    def __init__(self) -> None:
        self.open: dict[Token, Waiter[Q, R]] = {}
        self.collected: list[CollectedWaiter[Q, R]] = []
        """Submissions that have ended, and whose collectors do not have the outcomes yet."""
        self.newest_at_alarm: Token | None = None
        """Newest token at the time of the alarm; None when no alarm is being handled."""
        self.old_settled: int = 0
        """Number of tokens that ended during an alarm and are older than it."""

    def settle(self, token: Token, result: R | None, error: Exception | None) -> Waiter[Q, R] | None:
        """Give a waiter its outcome, resume its task if that is parked, and return the waiter.

        Return None if the token has no waiter, for example because the machine was handling an event when the task was
        cancelled, and the event of the cancellation is still queued.
        """
        waiter = self.open.pop(token, None)
        if waiter is not None:
            if self.newest_at_alarm is not None:
                self.old_settled += token <= self.newest_at_alarm
            waiter.result, waiter.error = result, error
            if waiter.is_parked:
                trio.lowlevel.reschedule(waiter.task, waiter)  # type: ignore[arg-type]  # it has what trio asks for
            elif isinstance(waiter, CollectedWaiter):
                self.collected.append(waiter)
        return waiter

    def deliver(self) -> None:
        """Pass the outcomes to their collectors: one call for consecutive outcomes of the same collector."""
        collected, self.collected = self.collected, []
        for collector, waiters in groupby(collected, attrgetter("collector")):
            collector.collect(waiters)

    def begin_alarm(self) -> None:
        """Record which tokens are older than the current alarm."""
        self.newest_at_alarm = next(reversed(self.open), _NO_TOKEN)

    def end_alarm(self) -> None:
        """Stop counting old tokens that end."""
        self.newest_at_alarm = None
