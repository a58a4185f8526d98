"""Conversion of the data of a script to calls of the client and to retry strategies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

import trio

from triclinium import Collection, RawBinaryTranscoder
from triclinium.retries import AnyRetryStrategy, RetryAction, RetryReason, RetryRequest
from triclinium_core.kv.operation import document_operations as wanted
from triclinium_core.kv.operation.results import Result
from triclinium_core.testing.hypothesis_strategies import RETRY_STRATEGIES

BINARY = RawBinaryTranscoder()


def submit(
    c: Collection, operation: wanted.DocumentOperation, strategy: AnyRetryStrategy | None
) -> Awaitable[Result | None]:
    """Call the collection method that submits this operation, and return its awaitable."""
    key, b = operation.key, c.binary
    match operation:
        case wanted.Get():
            return c.get(key, transcoder=BINARY, retry_strategy=strategy)
        case wanted.Exists():
            return c.exists(key, retry_strategy=strategy)
        case wanted.GetAndTouch():
            return c.get_and_touch(key, _expiry(operation.expiry), transcoder=BINARY, retry_strategy=strategy)
        case wanted.Touch():
            return c.touch(key, _expiry(operation.expiry), retry_strategy=strategy)
        case wanted.GetAndLock():
            lock_time = timedelta(seconds=operation.lock_time)
            return c.get_and_lock(key, lock_time, transcoder=BINARY, retry_strategy=strategy)
        case wanted.Unlock():
            return c.unlock(key, operation.cas, retry_strategy=strategy)
        case wanted.Remove():
            return c.remove(key, cas=operation.cas, retry_strategy=strategy)
        case wanted.Store():
            return _store(c, operation, strategy)
        case wanted.Append():
            return b.append(key, operation.value, cas=operation.cas, retry_strategy=strategy)
        case wanted.Prepend():
            return b.prepend(key, operation.value, cas=operation.cas, retry_strategy=strategy)
        case wanted.Count(delta=delta, initial=initial):
            count = b.increment if isinstance(operation, wanted.Increment) else b.decrement
            expiry = _expiry(operation.expiry)
            return count(key, delta=delta, initial=initial, expiry=expiry, retry_strategy=strategy)
        case _:
            raise AssertionError(f"submit() has no case for {operation.name}")


def _store(c: Collection, operation: wanted.Store, strategy: AnyRetryStrategy | None) -> Awaitable[Result]:
    key, value, expiry = operation.key, operation.value, _expiry(operation.expiry)
    match operation:
        case wanted.Upsert(preserve_expiry=preserve):
            return c.upsert(
                key, value, expiry=expiry, preserve_expiry=preserve, transcoder=BINARY, retry_strategy=strategy
            )
        case wanted.Replace(preserve_expiry=preserve, cas=cas):
            return c.replace(
                key, value, cas=cas, expiry=expiry, preserve_expiry=preserve, transcoder=BINARY, retry_strategy=strategy
            )
        case _:
            return c.insert(key, value, expiry=expiry, transcoder=BINARY, retry_strategy=strategy)


def _expiry(seconds: int) -> timedelta | None:
    return timedelta(seconds=seconds) if seconds else None


class CancelsTheCaller:
    """Strategy that cancels the scope of the call about whose retry it decides."""

    def __init__(self, scope: trio.CancelScope) -> None:
        self._scope = scope

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Cancel the scope. Return a retry after a short delay."""
        self._scope.cancel()
        return RetryAction.after(0.01)


class Asks:
    """Asynchronous strategy that sleeps and then calls a function for its decision."""

    def __init__(self, answer: Callable[[], RetryAction]) -> None:
        self._answer = answer

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Sleep, then return the result of the function."""
        await trio.sleep(0.02)
        return self._answer()


class AsksForEver:
    """Asynchronous strategy that never returns."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Sleep forever."""
        await trio.sleep_forever()
        raise AssertionError


def _raise() -> RetryAction:
    raise ZeroDivisionError("a strategy with a defect")


def _nonsense() -> RetryAction:
    return None  # type: ignore[return-value]


OWN_STRATEGIES: Mapping[str, Callable[[trio.CancelScope], AnyRetryStrategy]] = {
    "cancels the caller": CancelsTheCaller,
    "asks": lambda _: Asks(lambda: RetryAction.after(0.01)),
    "asks and raises": lambda _: Asks(_raise),
    "asks and gets nonsense": lambda _: Asks(_nonsense),
    "asks for ever": lambda _: AsksForEver(),
}
"""Retry strategies of a call in a scope, by name, which replace those of the core with the same name."""


def strategy_named(name: str, scope: trio.CancelScope) -> AnyRetryStrategy | None:
    """Return the strategy with this name for a call in ``scope``; None means the client's default."""
    return OWN_STRATEGIES[name](scope) if name in OWN_STRATEGIES else RETRY_STRATEGIES[name]
