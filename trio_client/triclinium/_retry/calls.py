"""Driver of retries, including those of HTTP transports: it calls the strategy and the machine, sleeps and reports."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import TypeVar

import trio

from triclinium._retry.tracing import TracedCall, tracing_of_block
from triclinium._retry.watching import report_to_hooks, test_mode
from triclinium._trio_run import not_on_trio
from triclinium_core.retry.calls.call_machine import (
    AwaitStrategy,
    CallMachine,
    Decision,
    Sleep,
    first_delay,
    refuse_first,
)
from triclinium_core.retry.calls.history import AttemptRecord
from triclinium_core.retry.calls.reports import RetryGivenUp, RetryReport, RetryScheduled, RetrySucceeded
from triclinium_core.retry.calls.terms import CallTerms
from triclinium_core.retry.smithy import ErrorInfo, RetryToken

T = TypeVar("T")


async def call(
    terms: CallTerms[T], fn: Callable[..., Awaitable[T]], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> T:
    """Return ``await fn(*args, **kwargs)``, with the retries that ``terms`` describe."""
    retried = RetriedCall(terms, fn)
    try:
        await retried.begin()
        while True:
            made: Awaitable[T] | None = None
            try:
                made = fn(*args, **kwargs)
                result = await made
            except Exception as error:
                if _is_of_the_call(error, made) or not await retried.goes_on(error, None):
                    raise
            else:
                info = terms.info_of_result(result)
                if info is None:
                    await retried.succeed()
                    return result
                if not await retried.goes_on(None, info):
                    retried.end(None)
                    return result
            await retried.sleep()
    except BaseException as error:
        retried.end(error)
        raise


def _is_of_the_call(error: Exception, made: object) -> bool:
    """Return whether the error is a caller's mistake: wrong arguments, or a result that cannot be awaited.

    Add a note to the error of such a mistake.

    Args:
        made: result of the function; None if it raised. An awaitable result may raise TypeError itself, whether it is
            written in Python or not.
    """
    traceback = error.__traceback__
    if not isinstance(error, TypeError) or traceback is None or traceback.tb_next is not None or isawaitable(made):
        return False
    error.add_note("the function to retry must be async and must accept the given arguments")
    return True


def name_of(fn: object) -> str:
    """Return the name of a function in reports."""
    inner = fn.func if isinstance(fn, functools.partial) else fn
    return str(getattr(inner, "__qualname__", type(inner).__qualname__))


class RetriedCall:
    """Call with all its attempts. The first failure creates the machine, so a call without failures has no machine.

    Args:
        fn: names the call, unless its terms have a name.
    """

    __slots__ = ("_began", "_delay", "_fn", "_machine", "_terms", "_token", "_traced", "is_due")

    def __init__(self, terms: CallTerms[T], fn: object = None) -> None:
        self._terms = terms
        self._fn = fn
        self._token: RetryToken | None = None
        self._began = 0.0
        self._machine: CallMachine | None = None
        self._delay = 0.0
        self._traced: TracedCall | None = None
        self.is_due: bool = False
        """Whether another attempt follows and has not begun."""

    def __del__(self) -> None:
        # If the caller leaves a loop between two attempts, Python calls no other method. The garbage collector may run
        # in any thread, but a strategy belongs to one thread.
        if (self.is_due or self._traced is not None) and trio.lowlevel.in_trio_run():
            if self.is_due:
                self.abandon()
            self.end(None)

    @property
    def records(self) -> tuple[AttemptRecord, ...]:
        """Newest failed attempts that were retried, oldest first; empty after the call has ended."""
        return () if self._machine is None else self._machine.records

    @property
    def number(self) -> int:
        """Number of the current or next attempt, beginning with 1."""
        return 1 if self._machine is None else self._machine.number

    async def begin(self) -> None:
        """Wait until the first attempt may begin. Not always a checkpoint.

        Raises:
            RuntimeError: the call is not awaited on trio; the strategy was not called.
            ArgumentError: the strategy returned an invalid value.
            Exception: the strategy raised an error other than a refusal. After a refusal, the call has one attempt.
        """
        try:
            self._began = trio.current_time()
        except RuntimeError as elsewhere:
            raise not_on_trio("retries use the clock of trio; make the call") from elsewhere
        terms, tracing = self._terms, tracing_of_block.get()
        if tracing is not None:
            self._traced = TracedCall(tracing, self._name)
        try:
            answer = terms.strategy.acquire_initial_retry_token(token_scope=terms.token_scope)
            token: RetryToken = await answer if terms.is_async else answer  # type: ignore[assignment, misc]
        except Exception as refusal:
            refuse_first(refusal)
        else:
            self._token = token
            # A value other than 0 is a delay before the first attempt, or shows that the token is invalid.
            if getattr(token, "retry_delay", None) != 0:
                self._delay = first_delay(terms, token)
                await self._sleep()
        if self._delay or terms.is_async:
            self._began = trio.current_time()
        if self._traced is not None:
            self._traced.begin_attempt(1)

    async def goes_on(self, error: Exception | None, info: ErrorInfo | None) -> bool:
        """Return whether another attempt follows an error, or a result described by ``info``."""
        if self._traced is not None:
            self._traced.end_attempt(error)
        machine = self._machine
        if machine is None:
            mode = test_mode.get()
            machine = self._machine = CallMachine(
                self._terms,
                token=self._token,
                began=self._began,
                attempts_max=None if mode is None else mode.attempts_max,
            )
        now, deadline = trio.current_time(), trio.current_effective_deadline()
        if error is None:
            assert info is not None
            decision = machine.reject(info, now=now, deadline=deadline)
        else:
            decision = machine.fail(error, now=now, deadline=deadline)
        if isinstance(decision, AwaitStrategy):
            try:
                token = await decision.answer
            except Exception as refusal:
                decision = machine.refuse(refusal)
            else:
                now, deadline = trio.current_time(), trio.current_effective_deadline()
                decision = machine.grant(token, now=now, deadline=deadline)
        self._report(machine, decision, error)
        return self.is_due

    async def sleep(self) -> None:
        """Wait until the next attempt may begin. Always a checkpoint."""
        assert self._machine is not None, "the call has failed"
        await self._sleep()
        self.is_due = False
        self._machine.begin(trio.current_time())
        if self._traced is not None:
            self._traced.begin_attempt(self._machine.number)

    async def succeed(self) -> None:
        """Report a success to the strategy, and to hooks after a failure. A checkpoint only if the strategy has one."""
        if self._token is not None:
            recorded = self._terms.strategy.record_success(token=self._token)
            if recorded is not None and self._terms.is_async:
                await recorded
        if self._machine is not None:
            self._machine.succeed()
            report_to_hooks(
                RetrySucceeded(self._name, self._machine.number, self._terms.token_scope), self._terms.hooks
            )
        self.end(None)

    def end(self, error: BaseException | None) -> None:
        """End the call: release the errors of its attempts, and end its span. Ending it again is harmless.

        Args:
            error: exception that the caller gets; None for a result.
        """
        if self._traced is not None:
            self._traced.end(error)
        if self._machine is not None:
            self._machine.forget_errors()

    def abandon(self) -> None:
        """Release the token of the next attempt, which will not be made, if the strategy has a sync ``abandon``."""
        self.is_due = False
        self._terms.abandon(self._token)

    async def _sleep(self) -> None:
        """Sleep before an attempt, unless a test forbids sleeping. Always a checkpoint."""
        mode = test_mode.get()
        try:
            await trio.sleep(self._delay if mode is None or mode.sleeps else 0)
        except BaseException:
            self.abandon()
            raise

    @property
    def _name(self) -> str:
        return self._terms.name if self._terms.name is not None else name_of(self._fn)

    def _report(self, machine: CallMachine, decision: Decision, error: Exception | None) -> None:
        name, number, scope = self._name, machine.number, self._terms.token_scope
        report: RetryReport
        if isinstance(decision, Sleep):
            self._token, self._delay, self.is_due = machine.token, decision.delay, True
            report = RetryScheduled(name, number - 1, decision.delay, error, scope)
        else:
            assert not isinstance(decision, AwaitStrategy)
            report = RetryGivenUp(name, number, decision.ending, error, scope)
        try:
            report_to_hooks(report, self._terms.hooks)
        except BaseException:
            if self.is_due:
                self.abandon()
            raise
        if self._traced is not None:
            self._traced.record(report)
