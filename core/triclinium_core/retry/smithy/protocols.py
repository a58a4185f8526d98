"""Interfaces of Smithy's retries: tokens, strategies, backoffs, and the description of an error.

They are structural: another library's strategy fits here, and ours fits there.

Source: the Smithy Python retry design, "Specification", "Error Classification", "Backoff Strategy".
"""

from __future__ import annotations

import inspect
from typing import Literal, Protocol, TypeGuard, runtime_checkable

PartyAtFault = Literal["client", "server"] | None
"""Party at fault, None if unknown; ``Fault`` of the design (decision D72)."""


class RetryError(Exception):
    """A strategy permits no further attempt; the caller of a request gets the request's own last error instead.

    Args:
        retry_after: seconds that the refused retry would have waited, where the quota refused it; None otherwise.
    """

    def __init__(self, message: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RetryToken(Protocol):
    """The state of one request's retries; it serves once, for a refresh or for a success."""

    @property
    def retry_count(self) -> int:
        """Attempts so far without the first."""
        ...

    @property
    def retry_delay(self) -> float:
        """Seconds to wait before the attempt that the token is for."""
        ...


class RetryBackoffStrategy(Protocol):
    """How long to wait before a retry; it keeps no state.

    It may have a second method, ``compute_following_backoff_delay(previous_delay)``. The shipped strategies call that one
    instead, with the seconds that the attempt before had to wait: 0 for a first attempt (decision S23).
    """

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the seconds before retry ``retry_attempt``; 1 is the first retry, and 0 no retry: no delay."""
        ...


class MinimalRetryStrategy(Protocol):
    """The methods of a strategy that answers immediately: all that arguments of this library require.

    Many requests share one strategy.

    It may have a fourth method, ``abandon(*, token)``, and then hears of tokens whose attempts are never made (decision S11).
    """

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return the token of a request's first attempt.

        Args:
            token_scope: separates the quotas of a strategy; None is a scope as well.

        Raises:
            RetryError: no token is available. The request may still be sent once.
        """
        ...

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Return the token of the next attempt, given that of the attempt that failed with ``error``.

        Raises:
            RetryError: no further attempt is permitted.
        """
        ...

    def record_success(self, *, token: RetryToken) -> None:
        """Take back the token of the attempt that succeeded."""
        ...


class RetryStrategy(MinimalRetryStrategy, Protocol):
    """The strategy of the Smithy design: the methods, and the two attributes that other code may read.

    All shipped strategies have both. An argument also accepts a ``MinimalRetryStrategy``, which needs neither.
    """

    @property
    def backoff_strategy(self) -> RetryBackoffStrategy:
        """The backoff that computes the delays of the tokens."""
        ...

    @property
    def max_attempts(self) -> int:
        """Maximum number of attempts of one request, including the first."""
        ...


class AsyncMinimalRetryStrategy(Protocol):
    """The methods of a strategy that may wait before it answers, as in smithy-core since 0.6.

    Its three methods are ``async def``, all of them. An ``abandon`` is a plain method here too: a caller that was
    cancelled cannot wait for it.
    """

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return the token of a request's first attempt."""
        ...

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Return the token of the next attempt, given that of the attempt that failed with ``error``."""
        ...

    async def record_success(self, *, token: RetryToken) -> None:
        """Take back the token of the attempt that succeeded."""
        ...


class AsyncRetryStrategy(AsyncMinimalRetryStrategy, Protocol):
    """The strategy of the Smithy design in the shape that is awaited: the methods, and the two attributes."""

    @property
    def backoff_strategy(self) -> RetryBackoffStrategy:
        """The backoff that computes the delays of the tokens."""
        ...

    @property
    def max_attempts(self) -> int:
        """Maximum number of attempts of one request, including the first."""
        ...


AnyRetryStrategy = MinimalRetryStrategy | AsyncMinimalRetryStrategy


def is_async(strategy: AnyRetryStrategy) -> TypeGuard[AsyncMinimalRetryStrategy]:
    """Tell whether the methods of ``strategy`` are ``async def``."""
    return inspect.iscoroutinefunction(strategy.refresh_retry_token_for_retry)


@runtime_checkable
class ErrorRetryInfo(Protocol):
    """An error that carries information about retries.

    A class that inherits the protocol has its defaults. They hold for any other error without an attribute as well.
    """

    is_retry_safe: bool | None = None
    """Whether a retry is allowed; None, like False, permits none."""
    retry_after: float | None = None
    """Seconds that should pass before a retry."""
    is_throttling_error: bool = False
    """Whether the service asked for fewer requests."""


@runtime_checkable
class HasFault(Protocol):
    """An error that knows who is at fault."""

    fault: PartyAtFault
    """Who; None if unknown."""
