"""Adapter that gives a synchronous strategy the asynchronous interface of smithy-core since 0.6; decision S1."""

from __future__ import annotations

import inspect
from typing import cast, overload

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.kinds import DeciderKind, other_kind
from triclinium_core.retry.smithy import protocols
from triclinium_core.shown import shown

METHODS = ("acquire_initial_retry_token", "refresh_retry_token_for_retry", "record_success")
"""Names of the methods that every strategy has."""


class AsyncShape:
    """Adapter with an asynchronous interface. Its methods have no checkpoints, so they cannot be cancelled.

    Args:
        strategy: synchronous strategy to adapt.

    Raises:
        ArgumentError: ``strategy`` is not a strategy, or is asynchronous already.
    """

    def __init__(self, strategy: protocols.MinimalRetryStrategy) -> None:
        require_strategy(strategy)
        if protocols.is_async(strategy):
            raise ArgumentError(
                f"strategy={shown(strategy)} is asynchronous already; use it without a wrapper", parameter="strategy"
            )
        self.strategy: protocols.MinimalRetryStrategy = strategy
        """Synchronous strategy that the adapter wraps."""

    @property
    def backoff_strategy(self) -> protocols.RetryBackoffStrategy:
        """Backoff that the wrapped strategy uses.

        Raises:
            AttributeError: the strategy has no such attribute.
        """
        return cast(protocols.RetryStrategy, self.strategy).backoff_strategy

    @property
    def max_attempts(self) -> int:
        """Maximum number of attempts that the wrapped strategy permits for one request, including the first.

        Raises:
            AttributeError: the strategy has no such attribute.
        """
        return cast(protocols.RetryStrategy, self.strategy).max_attempts

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> protocols.RetryToken:
        """Return the token for the first attempt of a request. Exceptions of the strategy propagate."""
        return self.strategy.acquire_initial_retry_token(token_scope=token_scope)

    async def refresh_retry_token_for_retry(
        self, *, token_to_renew: protocols.RetryToken, error: Exception
    ) -> protocols.RetryToken:
        """Return the token for the next attempt. Exceptions of the strategy propagate."""
        return self.strategy.refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)

    async def record_success(self, *, token: protocols.RetryToken) -> None:
        """Record that the attempt with ``token`` succeeded. Exceptions of the strategy propagate."""
        self.strategy.record_success(token=token)

    def abandon(self, *, token: protocols.RetryToken) -> None:
        """Release the token of an attempt that will not be made, if the strategy has a method ``abandon``.

        This method is synchronous, because an ``await`` in a cancelled caller would be cancelled too.
        """
        take_back = getattr(self.strategy, "abandon", None)
        if take_back is not None:
            take_back(token=token)


@overload
def as_async(strategy: protocols.RetryStrategy | protocols.AsyncRetryStrategy) -> protocols.AsyncRetryStrategy: ...
@overload
def as_async(strategy: protocols.AnyRetryStrategy) -> protocols.AsyncMinimalRetryStrategy: ...
def as_async(strategy: protocols.AnyRetryStrategy) -> protocols.AsyncMinimalRetryStrategy:
    """Return ``strategy`` itself if it is asynchronous, and otherwise an asynchronous adapter for it.

    The result has ``backoff_strategy`` and ``max_attempts`` if ``strategy`` has them.

    Raises:
        ArgumentError: ``strategy`` is not a strategy.
    """
    require_strategy(strategy)
    return strategy if protocols.is_async(strategy) else AsyncShape(cast(protocols.MinimalRetryStrategy, strategy))


def require_strategy(strategy: object, parameter: str = "strategy") -> None:
    """Raise ArgumentError, about ``parameter``, unless ``strategy`` is an object with the three methods of a strategy.

    Either all three methods must be ``async def``, or none.
    """
    missing = [name for name in METHODS if not callable(getattr(strategy, name, None))]
    if isinstance(strategy, type) or missing:
        lacking = f"it lacks {', '.join(missing)}"
        hint = (other_kind(strategy, DeciderKind.SMITHY) or lacking) if missing else "it is a class"
        raise ArgumentError(
            f"{parameter}={shown(strategy)} must be an object such as StandardRetryStrategy(…); {hint}",
            parameter=parameter,
        )
    awaited = [name for name in METHODS if inspect.iscoroutinefunction(getattr(strategy, name))]
    if 0 < len(awaited) < len(METHODS):
        raise ArgumentError(
            f"{parameter}={shown(strategy)} has `async def` for {', '.join(awaited)}, but not for its other methods; "
            "make all of them async, or none",
            parameter=parameter,
        )
