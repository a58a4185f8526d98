"""What carries out the retries of ``retry``, ``retried`` and ``attempts``: it asks, sleeps and tells, and decides nothing.

An attempt that succeeds at once passes ``call`` and ``first_token`` only; a ``Recovery`` is made at the first failure.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from inspect import isawaitable
from typing import Never, TypeVar, cast

import trio

from triclinium._retry.watching import current_test_mode, tell
from triclinium._trio_run import not_on_trio
from triclinium_core.retry.calls.history import AttemptRecord
from triclinium_core.retry.calls.machine import AwaitStrategy, CallMachine, Decision, Sleep, first_delay, refuse_first
from triclinium_core.retry.calls.reports import RetryGivenUp, RetryScheduled, RetrySucceeded
from triclinium_core.retry.calls.terms import CallTerms
from triclinium_core.retry.smithy.classification import ErrorInfo
from triclinium_core.retry.smithy.protocols import RetryToken

T = TypeVar("T")

SLEEPS = "retries sleep and count as trio does; call them"
"""What is wrong with retries on another event loop."""


async def first_token(terms: CallTerms[T]) -> RetryToken | None:
    """Return the token of the first attempt once that may begin; None where the strategy has none."""
    try:
        answer = terms.strategy.acquire_initial_retry_token(token_scope=terms.token_scope)
    except Exception as refusal:
        refuse_first(refusal)
        return None
    return await begin_first(terms, answer)


async def begin_first(
    terms: CallTerms[T], answer: RetryToken | Coroutine[object, Never, RetryToken]
) -> RetryToken | None:
    """Return the token of the first attempt once that may begin, given what the strategy answered; None where it has none."""
    try:
        token = cast("RetryToken", await cast("Awaitable[RetryToken]", answer) if terms.is_async else answer)
    except Exception as refusal:
        refuse_first(refusal)
        return None
    delay = first_delay(terms, token)
    if delay:
        try:
            await sleep(delay)
        except BaseException:
            terms.abandon(token)
            raise
    return token


async def sleep(delay: float) -> None:
    """Sleep for ``delay`` seconds, or not where a test lets nobody sleep; a checkpoint in any case."""
    mode = current_test_mode()
    await trio.sleep(delay if mode is None or mode.sleeps else 0)


async def record_success(terms: CallTerms[T], token: RetryToken | None) -> None:
    """Give back the token of an attempt that succeeded."""
    if token is not None:
        recorded = terms.strategy.record_success(token=token)
        if recorded is not None and terms.is_async:
            await recorded


async def call(
    terms: CallTerms[T], fn: Callable[..., Awaitable[T]], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> T:
    """Return ``await fn(*args, **kwargs)``, retried on ``terms``."""
    # What every call does stands here in one piece, for calls that succeed at once pay for nothing else.
    strategy = terms.strategy
    token: RetryToken | None
    try:
        began = trio.current_time()
    except RuntimeError as elsewhere:
        raise not_on_trio(SLEEPS) from elsewhere
    try:
        answer = strategy.acquire_initial_retry_token(token_scope=terms.token_scope)
    except Exception as refusal:
        refuse_first(refusal)
        token = None
    else:
        # A delay, or anything that is no token that could be used as it is.
        if getattr(answer, "retry_delay", None) != 0:
            token = await begin_first(terms, answer)
            began = trio.current_time()
        else:
            token = answer  # type: ignore[assignment]  # what has a delay is a token
    recovery: Recovery | None = None
    while True:
        made: Awaitable[T] | None = None
        try:
            made = fn(*args, **kwargs)
            result = await made
        except Exception as error:
            if _is_of_the_call(error, made):
                raise
            if recovery is None:
                recovery = Recovery(terms, name_of(fn), token, began)
            if not await recovery.goes_on(error, None):
                raise
        else:
            info = None if terms.retry_result is None else terms.info_of_result(result)
            if info is None:
                if token is not None:
                    recorded = strategy.record_success(token=token)
                    if recorded is not None and terms.is_async:
                        await recorded
                if recovery is not None:
                    recovery.succeeded()
                return result
            if recovery is None:
                recovery = Recovery(terms, name_of(fn), token, began)
            if not await recovery.goes_on(None, info):
                return result
        await recovery.sleep()
        token = recovery.token


def _is_of_the_call(error: Exception, made: object) -> bool:
    """Tell whether not the function raised, but the attempt to call it or to await what it returned: its caller's mistake.

    Args:
        made: what the function returned; None where it did not. What can be awaited raises errors of its own, written in
            Python or not.
    """
    traceback = error.__traceback__
    if not isinstance(error, TypeError) or traceback is None or traceback.tb_next is not None or isawaitable(made):
        return False
    error.add_note("what is to be retried must be an async function that takes the arguments given for it")
    return True


def name_of(fn: object) -> str:
    """Return what a call of ``fn`` is named where its caller gives it no name."""
    inner = fn.func if isinstance(fn, functools.partial) else fn
    return str(getattr(inner, "__qualname__", type(inner).__qualname__))


class Recovery:
    """The retries of one call, made at its first failure.

    Args:
        name: of the call, unless its terms have one.
        token: of the first attempt.
        began: when it did, as trio counts.
    """

    __slots__ = ("_delay", "_is_due", "_machine", "_name", "_terms")

    def __init__(self, terms: CallTerms[T], name: str, token: RetryToken | None, began: float) -> None:
        mode = current_test_mode()
        self._terms = terms
        self._name = name if terms.name is None else terms.name
        self._delay = 0.0
        self._is_due = False
        self._machine = CallMachine(
            terms, token=token, began=began, attempts_max=None if mode is None else mode.attempts_max
        )

    def __del__(self) -> None:
        # Whoever leaves a loop between two attempts tells nobody. A collector may run in any thread; a strategy has one.
        if self._is_due and trio.lowlevel.in_trio_run():
            self.abandon()

    @property
    def token(self) -> RetryToken | None:
        """Of the attempt under way, or to come."""
        return self._machine.token

    @property
    def records(self) -> tuple[AttemptRecord, ...]:
        """The attempts so far that failed and were followed by another one, oldest first; nothing once the call has ended."""
        return self._machine.records

    @property
    def number(self) -> int:
        """Of that attempt; 1 is the first."""
        return self._machine.number

    def decide(self, error: Exception | None, info: ErrorInfo | None) -> Decision:
        """Return what follows an error, or a result of which ``info`` is said, as far as the strategy answers at once."""
        now, deadline = trio.current_time(), trio.current_effective_deadline()
        if error is None:
            assert info is not None
            decision = self._machine.reject(info, now=now, deadline=deadline)
        else:
            decision = self._machine.fail(error, now=now, deadline=deadline)
        self._tell(decision, error)
        return decision

    async def goes_on(self, error: Exception | None, info: ErrorInfo | None) -> bool:
        """Tell whether another attempt follows an error, or a result of which ``info`` is said."""
        decision = self.decide(error, info)
        if isinstance(decision, AwaitStrategy):
            try:
                token = await decision.answer
            except Exception as refusal:
                decision = self._machine.refuse(refusal)
            else:
                now, deadline = trio.current_time(), trio.current_effective_deadline()
                decision = self._machine.grant(token, now=now, deadline=deadline)
            self._tell(decision, error)
        return isinstance(decision, Sleep)

    async def sleep(self) -> None:
        """Wait until the next attempt may begin; a checkpoint in any case."""
        try:
            await sleep(self._delay)
        except BaseException:
            self.abandon()
            raise
        self._is_due = False
        self._machine.begin(trio.current_time())

    def abandon(self) -> None:
        """Give back what was taken for the attempt to come, where one was to come, for nobody will make it."""
        if self._is_due:
            self._is_due = False
            self._machine.abandon()

    def succeeded(self) -> None:
        """Note that an attempt succeeded after others had failed."""
        self._machine.succeed()
        tell(RetrySucceeded(self._name, self._machine.number, self._terms.token_scope), self._terms.hooks)

    def _tell(self, decision: Decision, error: Exception | None) -> None:
        terms, number = self._terms, self._machine.number
        if isinstance(decision, Sleep):
            self._delay = decision.delay
            self._is_due = True
            try:
                tell(RetryScheduled(self._name, number - 1, decision.delay, error, terms.token_scope), terms.hooks)
            except BaseException:
                self.abandon()
                raise
        elif not isinstance(decision, AwaitStrategy):
            tell(RetryGivenUp(self._name, number, decision.ending, error, terms.token_scope), terms.hooks)
