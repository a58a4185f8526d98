"""``retry`` and ``retried``: an async function, called again until it succeeds or its strategy permits no more."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Never, ParamSpec, TypeVar, TypeVarTuple, overload

from triclinium._retry.calls import call, name_of
from triclinium._retry.strategies import COUCHBASE, lending
from triclinium_core.retry.calls import CallTerms, RetryHook, RetryOn
from triclinium_core.retry.combined.call_strategies import AnyCallStrategy
from triclinium_core.retry.kinds import kind_of
from triclinium_core.retry.smithy import ErrorInfo

T = TypeVar("T")
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")


async def retry(
    fn: Callable[[*Ts], Awaitable[T]],
    *args: *Ts,
    strategy: AnyCallStrategy,
    on: RetryOn = None,
    retry_result: Callable[[T], bool | ErrorInfo] | None = None,
    token_scope: str | None = None,
    name: str | None = None,
    hooks: Sequence[RetryHook] = (),
) -> T:
    """Return ``await fn(*args)``, called again after errors and results that are to be retried, as ``strategy`` permits.

    Keyword arguments of ``fn`` go into ``functools.partial``, as with ``trio.run``.

    Args:
        strategy: decides, and is usually shared by many calls, for it has the quota. One of Couchbase's strategies sees each
            failed attempt as a request: without a service, idempotent where the error is retry-safe, and for the reason
            ``SERVICE_RESPONSE_CODE_INDICATED``, or the one that an error of this client's operations was refused for.
            ``retrying`` does not apply here: it is about the operations of this client.
        on: which errors are retried: a type or a tuple of types, a function that answers True, False or an ``ErrorInfo``, or
            None for those that say ``is_retry_safe`` of themselves. An error that says of itself that it is not safe is not
            retried for its type; a group of exceptions matches only a type of groups.
        retry_result: tells of a result whether it is to be retried, as a bool or as an ``ErrorInfo``.
        token_scope: separates the quotas of one strategy.
        name: of the call in logs and reports; that of ``fn`` unless given.
        hooks: functions that are told of each retry and of its end.

    Returns:
        What ``fn`` returned; where attempts are used up and the last result is still one to be retried, that result.

    Raises:
        ArgumentError: an argument is wrong, and nothing was called; or ``strategy`` or ``on`` answered nonsense,
            with the error of the attempt as its cause.
        TypeError: ``fn`` is not async.
        RuntimeError: it is not awaited on trio; nothing was called.
        Exception: the error of the last attempt, the same object; ``attempts_of`` has all attempts, and its notes tell them.
            If the next attempt could not begin before the deadline of the cancel scopes around, it is raised at once.

    Cancellation: never retried. The strategy is not told of the attempt, as of one that failed for good.

    No checkpoint is added to those of ``fn`` where the first attempt succeeds; each retry has one.
    """
    if not callable(fn):
        raise _not_async(fn, "it is not a function")
    # Most strategies lend tokens themselves, and then the call needs no name: 28,500 instructions, not 30,900.
    lender = lending(strategy, name or name_of(fn)) if kind_of(strategy) is COUCHBASE else strategy
    return await call(
        CallTerms(lender, on, retry_result, token_scope, name, hooks),  # type: ignore[arg-type]  # as ``lending`` says
        fn,
        args,
        {},
    )


@overload
def retried(
    *,
    strategy: AnyCallStrategy,
    on: RetryOn = None,
    retry_result: None = None,
    token_scope: str | None = None,
    name: str | None = None,
    hooks: Sequence[RetryHook] = (),
) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Coroutine[object, Never, T]]]: ...


@overload
def retried(
    *,
    strategy: AnyCallStrategy,
    on: RetryOn = None,
    retry_result: Callable[[T], bool | ErrorInfo],
    token_scope: str | None = None,
    name: str | None = None,
    hooks: Sequence[RetryHook] = (),
) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Coroutine[object, Never, T]]]: ...


def retried(
    *,
    strategy: AnyCallStrategy,
    on: RetryOn = None,
    retry_result: Callable[[T], bool | ErrorInfo] | None = None,
    token_scope: str | None = None,
    name: str | None = None,
    hooks: Sequence[RetryHook] = (),
) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Coroutine[object, Never, T]]]:
    """Return a decorator that has every call of an async function go through ``retry``; the arguments are those of ``retry``.

    All calls share ``strategy``, and so its quota.

    Raises:
        ArgumentError: an argument is wrong.
        TypeError: what is decorated is not an async function.
    """
    terms = CallTerms(lending(strategy, name or "retried"), on, retry_result, token_scope, name, hooks)

    def decorate(fn: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[object, Never, T]]:
        _check_async(fn)

        @functools.wraps(fn)
        async def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            return await call(terms, fn, args, kwargs)

        return wrapper

    return decorate


def _check_async(fn: object) -> None:
    if inspect.isasyncgenfunction(fn):
        raise _not_async(
            fn, "it is an async generator; what it has yielded cannot be taken back, so retry what it awaits"
        )
    # Of an object its class is asked, as Python does; so a class is not taken for its objects.
    called = getattr(type(fn), "__call__", None)  # noqa: B004 - its kind counts, not whether it is there
    if not inspect.iscoroutinefunction(fn) and not inspect.iscoroutinefunction(called):
        raise _not_async(fn, "it is a class; give an object of it" if inspect.isclass(fn) else "it is not async")


def _not_async(fn: object, why: str) -> TypeError:
    if isinstance(fn, Coroutine):
        fn.close()
        why = "it was called already; write retry(function, arguments), not retry(function(arguments))"
    return TypeError(f"{fn!r} must be an async function to be retried: {why}")
