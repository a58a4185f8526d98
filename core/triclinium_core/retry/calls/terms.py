"""Terms of a retried call: the caller's options, which are checked before the first attempt."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from triclinium_core.argument_error import ArgumentError
from triclinium_core.checks import is_seconds
from triclinium_core.retry import smithy
from triclinium_core.retry.calls import retryable
from triclinium_core.retry.calls.reports import RetryHook
from triclinium_core.retry.calls.retryable import info_of_result
from triclinium_core.shown import shown

T = TypeVar("T")

KINDS_MAX = 64
"""Maximum number of strategy classes in the cache. A program has only a few. The cache is useful because inspecting
a class takes 19000 instructions, twice as many as all other work on the terms of a call (callgrind, ``tests.bench
--only retries``)."""


class CallTerms(Generic[T]):
    """Options of a retried call.

    Args:
        strategy: strategy that decides about retries.
        on: rule that selects the errors to retry.
        retry_result: function that selects the results to retry; None to accept all results.
        token_scope: scope of the call. A strategy may have a separate quota for each scope.
        name: name of the call in reports; None for the name of the function.
        hooks: functions that receive the reports.

    Raises:
        ArgumentError: an argument is invalid.
    """

    __slots__ = ("hooks", "is_async", "name", "on", "retry_result", "strategy", "token_scope")

    # The parameters may be passed by position, because each call creates an object of this class. If they were passed
    # by name, a call without a failure would take 8 % more instructions: 32400 instead of 29900 (callgrind,
    # ``tests.bench --only retries``).
    def __init__(  # noqa: PLR0917
        self,
        strategy: smithy.AnyRetryStrategy,
        on: retryable.RetryOn = None,
        retry_result: Callable[[T], bool | smithy.ErrorInfo] | None = None,
        token_scope: str | None = None,
        name: str | None = None,
        hooks: Sequence[RetryHook] = (),
    ) -> None:
        kind = _kind_is_async(type(strategy))
        self.is_async: bool = kind if kind is not None else _check_strategy(strategy)
        if on is not None:
            retryable.check_retry_on(on)
        if retry_result is not None:
            retryable.check_retry_result(retry_result)
        if token_scope is not None:
            smithy.require_scope(token_scope)
        if name is not None:
            check_name(name)
        if hooks != ():
            check_hooks(hooks)
        self.strategy: smithy.AnyRetryStrategy = strategy
        self.on: retryable.RetryOn = on
        self.retry_result: Callable[[T], bool | smithy.ErrorInfo] | None = retry_result
        self.token_scope: str | None = token_scope
        self.name: str | None = name
        self.hooks: Sequence[RetryHook] = hooks

    def abandon(self, token: smithy.RetryToken | None) -> None:
        """Release the token of an attempt that will not be made, if the strategy has a synchronous ``abandon``.

        Suppress exceptions of the strategy, because a caller that abandons an attempt has another outcome to report.
        """
        abandon(self.strategy, token)

    def info_of_result(self, result: T) -> smithy.ErrorInfo | None:
        """Return the retry information about a result from ``retry_result``; None if the result is accepted.

        Raises:
            ArgumentError: ``retry_result`` returned an invalid value.
        """
        return None if self.retry_result is None else info_of_result(self.retry_result, result)


@functools.lru_cache(maxsize=KINDS_MAX)
def _kind_is_async(kind: type[smithy.AnyRetryStrategy]) -> bool | None:
    """Return whether strategies of a class are asynchronous; None if this cannot be determined from the class."""
    # Attributes of the class are not bound to an object, but they show whether a method is an ``async def``.
    methods = [getattr(kind, name, None) for name in smithy.METHODS]
    kinds = {inspect.iscoroutinefunction(method) if callable(method) else None for method in methods}
    return kinds.pop() if len(kinds) == 1 and not issubclass(kind, type) else None


def _check_strategy(strategy: smithy.AnyRetryStrategy) -> bool:
    smithy.require_strategy(strategy)
    return smithy.is_async(strategy)


def abandon(strategy: smithy.AnyRetryStrategy, token: smithy.RetryToken | None) -> None:
    """Release the token of an attempt that will not be made, if ``strategy`` has a synchronous ``abandon``.

    Suppress exceptions of the strategy, because a caller that abandons an attempt has another outcome to report.
    """
    take_back = getattr(strategy, "abandon", None)
    if take_back is not None and token is not None and not inspect.iscoroutinefunction(take_back):
        with suppress(Exception):
            take_back(token=token)


def check_name(name: object) -> None:
    """Raise ArgumentError unless ``name``, the name of a call, is a string."""
    if not isinstance(name, str):
        raise ArgumentError(f"name={shown(name)} must be a string or None", parameter="name")


def check_hooks(hooks: object) -> None:
    """Raise ArgumentError unless ``hooks`` is a list or tuple of plain functions."""
    if not isinstance(hooks, list | tuple):
        raise ArgumentError(f"hooks={shown(hooks)} must be a list or tuple of functions", parameter="hooks")
    for hook in hooks:
        if not callable(hook):
            raise ArgumentError(f"hooks: {shown(hook)} must be a function that takes the report", parameter="hooks")
        retryable.check_is_sync("hooks", hook)


def is_refusal(error: Exception) -> bool:
    """Return whether ``error`` is a refusal: smithy.RetryError, or another library's class with the same name."""
    return isinstance(error, smithy.RetryError) or any(kind.__name__ == "RetryError" for kind in type(error).__mro__)


def delay_of(strategy: smithy.AnyRetryStrategy, token: object, error: Exception | None = None) -> float:
    """Return the delay in a strategy's ``token``, in seconds.

    Args:
        error: failure after which the strategy issued the token; None for a first token.

    Raises:
        ArgumentError: the token has no delay, or its delay is not a finite number of at least 0. ``__cause__`` is
            ``error``.
    """
    delay: float | None = getattr(token, "retry_delay", None)
    if delay is not None and is_seconds(delay):
        return delay
    what = (
        f"retry_delay={shown(delay)} in its token"
        if hasattr(token, "retry_delay")
        else f"{shown(token)} instead of a token"
    )
    raise ArgumentError(
        f"strategy {type(strategy).__qualname__} returned {what}; "
        "retry_delay must be a finite number of seconds of at least 0",
        parameter="strategy",
    ) from error
