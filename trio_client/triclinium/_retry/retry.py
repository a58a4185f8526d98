"""``retry`` and ``retried``: retries of an async function as long as its strategy permits them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Never, ParamSpec, TypeVar, TypeVarTuple, overload

from triclinium._retry.calls import call, name_of
from triclinium._retry.strategies import COUCHBASE, as_token_strategy
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
    """Return ``await fn(*args)``, called again after retryable errors and results as long as ``strategy`` permits it.

    Pass keyword arguments of ``fn`` with ``functools.partial``, as for ``trio.run``.

    Args:
        strategy: decides about retries. Usually many calls share it, because it holds the quota. A Couchbase strategy
            sees each failed attempt as a request without a service. The request is idempotent if the error is
            retry-safe. If an operation of this client was refused a retry and raised the error, the reason is that of
            the refusal. For other errors, it is ``SERVICE_RESPONSE_CODE_INDICATED``, or ``UNKNOWN`` if the error is not
            retry-safe. ``retrying`` does not apply here: it concerns the operations of this client.
        on: errors to retry: a type or a tuple of types, a function that returns True, False or an ``ErrorInfo``, or
            None for errors whose ``is_retry_safe`` is True. An error that declares itself unsafe is not retried,
            even if its type matches. A group of exceptions matches only a type of groups.
        retry_result: returns whether a result is to be retried, as a bool or as an ``ErrorInfo``. None, the default,
            retries no result.
        token_scope: scope of the call; each scope has its own quota in the strategy. None, the default, is a scope as
            well.
        name: name of the call in logs and reports; default: that of ``fn``.
        hooks: functions that receive a report of each retry and, after a failed attempt, of the end of the call.
            Default: none.

    Returns:
        The result of ``fn``; after the last attempt, even a result that should be retried.

    Raises:
        ArgumentError: an argument is wrong, and nothing was called; or ``strategy``, ``on`` or ``retry_result``
            returned an invalid value. The cause is the error of the attempt, if there is one.
        TypeError: ``fn`` is not async.
        RuntimeError: the call is not awaited on trio; neither ``fn`` nor ``strategy`` was called.
        Exception: the error of the last attempt, as the object that ``fn`` raised. ``attempts_of`` returns the
            last attempt and up to a hundred attempts before it; the notes of the error list up to 20. If the next
            attempt could not begin before the deadline of the surrounding cancel scopes, the error is raised
            immediately.

    Cancellation: never retried. The strategy gets no report of the attempt.

    If the first attempt succeeds, the only checkpoints are those of ``fn`` and of ``strategy``, which may delay the
    first attempt. Each retry adds a checkpoint.
    """
    if not callable(fn):
        raise _not_async(fn, "it is not a function")
    # A strategy that issues tokens itself needs no name: this saves 2,400 of 32,300 instructions of a call.
    token_strategy = as_token_strategy(strategy, name or name_of(fn)) if kind_of(strategy) is COUCHBASE else strategy
    return await call(
        CallTerms(token_strategy, on, retry_result, token_scope, name, hooks),  # type: ignore[arg-type]  # as in ``as_token_strategy``
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
    """Return a decorator that passes every call of an async function to ``retry``, with the arguments of ``retry``.

    All calls share ``strategy``, and so its quota.

    Raises:
        ArgumentError: an argument is wrong.
        TypeError: the decorated object is not an async function.
    """
    terms = CallTerms(as_token_strategy(strategy, name or "retried"), on, retry_result, token_scope, name, hooks)

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
            fn, "it is an async generator, whose yielded values cannot be undone; retry the functions that it awaits"
        )
    # Check the class of an object, as Python does, so that a class does not count as its instance.
    called = getattr(type(fn), "__call__", None)  # noqa: B004  # the method itself is examined below
    if not inspect.iscoroutinefunction(fn) and not inspect.iscoroutinefunction(called):
        raise _not_async(fn, "it is a class; pass an instance" if inspect.isclass(fn) else "it is not async")


def _not_async(fn: object, why: str) -> TypeError:
    if isinstance(fn, Coroutine):
        fn.close()
        why = "it was already called; write retry(function, arguments), not retry(function(arguments))"
    return TypeError(f"{fn!r} must be an async function to be retried: {why}")
