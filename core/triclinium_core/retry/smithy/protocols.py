"""Interfaces of the Smithy retry design: tokens, strategies, backoffs, and errors with retry information.

The interfaces are structural types. A strategy of another library therefore works with this package, and the strategies
of this package work with the other library.

Source: the Smithy Python retry design, "Specification", "Error Classification", "Backoff Strategy".
"""

from __future__ import annotations

import inspect
from typing import Literal, Protocol, TypeGuard, runtime_checkable

PartyAtFault = Literal["client", "server"] | None
"""Party that caused an error, or None if it is unknown. The design names this type ``Fault`` (decision D72)."""


class RetryError(Exception):
    """The strategy refuses a token.

    After a failed attempt, the caller of the request receives the error of that attempt instead.

    Args:
        retry_after: delay in seconds that the retry would have had, if the quota was too low; None otherwise.
    """

    def __init__(self, message: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RetryToken(Protocol):
    """State of the retries of one request.

    The caller uses it once: to refresh it, to record a success, or to abandon it.
    """

    @property
    def retry_count(self) -> int:
        """Number of attempts so far, excluding the first."""
        ...

    @property
    def retry_delay(self) -> float:
        """Seconds to wait before the attempt for which the strategy issued the token."""
        ...


class RetryBackoffStrategy(Protocol):
    """Stateless object that computes the delay before a retry.

    It may have a second method, ``compute_following_backoff_delay(previous_delay)``. The strategies of this package
    then call only that method. They pass the delay before the attempt that failed, in seconds; 0 for a first attempt
    (decision S23).
    """

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the delay in seconds before retry ``retry_attempt``. 1 is the first retry, and 0 has no delay."""
        ...


class MinimalRetryStrategy(Protocol):
    """Synchronous strategy with only the methods that this library requires. Many requests share one strategy.

    It may have a fourth method, ``abandon(*, token)``, which receives the token of an attempt that is never made
    (decision S11).
    """

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return the token for the first attempt of a request.

        Args:
            token_scope: scope of the request. A strategy may have a separate quota for each scope; None is also a
                scope.

        Raises:
            RetryError: the strategy issues no token. The caller may still send the request once.
        """
        ...

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Return the token for the next attempt, after the attempt with ``token_to_renew`` failed with ``error``.

        Raises:
            RetryError: the strategy permits no further attempt.
        """
        ...

    def record_success(self, *, token: RetryToken) -> None:
        """Record that the attempt with ``token`` succeeded."""
        ...


class RetryStrategy(MinimalRetryStrategy, Protocol):
    """Synchronous strategy of the Smithy design, with two attributes that other code may read.

    All strategies of this package have both attributes. Functions of this library also accept a
    ``MinimalRetryStrategy``, which needs neither.
    """

    @property
    def backoff_strategy(self) -> RetryBackoffStrategy:
        """Backoff that computes the delays of the tokens."""
        ...

    @property
    def max_attempts(self) -> int:
        """Maximum number of attempts of one request, including the first."""
        ...


class AsyncMinimalRetryStrategy(Protocol):
    """Asynchronous strategy with only the methods that this library requires, as in smithy-core since 0.6.

    All three methods are ``async def``. A method ``abandon`` is synchronous here too, because an ``await`` in a
    cancelled caller would be cancelled too.
    """

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return the token for the first attempt of a request."""
        ...

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Return the token for the next attempt, after the attempt with ``token_to_renew`` failed with ``error``."""
        ...

    async def record_success(self, *, token: RetryToken) -> None:
        """Record that the attempt with ``token`` succeeded."""
        ...


class AsyncRetryStrategy(AsyncMinimalRetryStrategy, Protocol):
    """Asynchronous strategy of the Smithy design, with the same two attributes as ``RetryStrategy``."""

    @property
    def backoff_strategy(self) -> RetryBackoffStrategy:
        """Backoff that computes the delays of the tokens."""
        ...

    @property
    def max_attempts(self) -> int:
        """Maximum number of attempts of one request, including the first."""
        ...


AnyRetryStrategy = MinimalRetryStrategy | AsyncMinimalRetryStrategy


def is_async(strategy: AnyRetryStrategy) -> TypeGuard[AsyncMinimalRetryStrategy]:
    """Return whether the methods of ``strategy`` are ``async def``."""
    return inspect.iscoroutinefunction(strategy.refresh_retry_token_for_retry)


@runtime_checkable
class ErrorRetryInfo(Protocol):
    """Error that carries retry information.

    A class that inherits from this protocol has its defaults. If an error lacks an attribute, the default applies.
    """

    is_retry_safe: bool | None = None
    """Whether a retry is safe. None, which means unknown, permits no retry, like False."""
    retry_after: float | None = None
    """Minimum delay before a retry, in seconds; None for no minimum."""
    is_throttling_error: bool = False
    """Whether the service requests a lower rate."""


@runtime_checkable
class HasFault(Protocol):
    """Error that names the party that caused it."""

    fault: PartyAtFault
    """Party that caused the error; None if unknown."""
