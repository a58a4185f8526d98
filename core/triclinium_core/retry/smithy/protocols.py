"""Interfaces of Smithy's retries: tokens, strategies, backoffs, and the description of an error.

They are structural: a strategy of another library works here, and ours work there.

Source: the Smithy Python retry design, "Specification", "Error Classification", "Backoff Strategy".
"""

from __future__ import annotations

import inspect
from typing import Literal, Protocol, TypeGuard, runtime_checkable

PartyAtFault = Literal["client", "server"] | None
"""Party at fault, None if unknown; ``Fault`` of the design (decision D72)."""


class RetryError(Exception):
    """Refusal of a further attempt by a strategy. The caller of a request gets the request's own last error instead.

    Args:
        retry_after: delay of the refused retry in seconds, if the quota refused it; None otherwise.
    """

    def __init__(self, message: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RetryToken(Protocol):
    """State of one request's retries. It can be used once, for a refresh or for a success."""

    @property
    def retry_count(self) -> int:
        """Number of attempts so far, excluding the first."""
        ...

    @property
    def retry_delay(self) -> float:
        """Seconds to wait before the attempt that the token is for."""
        ...


class RetryBackoffStrategy(Protocol):
    """Stateless computation of the delay before a retry.

    It may have a second method, ``compute_following_backoff_delay(previous_delay)``. The shipped strategies then call
    that method instead, with the delay of the previous attempt in seconds: 0 for a first attempt (decision S23).
    """

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the delay in seconds before retry ``retry_attempt``, where 1 is the first retry; 0 gives no delay."""
        ...


class MinimalRetryStrategy(Protocol):
    """Methods of a synchronous strategy: all that arguments of this library require.

    Many requests share one strategy.

    It may have a fourth method, ``abandon(*, token)``, which receives the tokens of attempts that are never made
    (decision S11).
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
        """Return the token of the next attempt after the attempt of ``token_to_renew`` failed with ``error``.

        Raises:
            RetryError: no further attempt is permitted.
        """
        ...

    def record_success(self, *, token: RetryToken) -> None:
        """Record the success of the attempt of ``token``."""
        ...


class RetryStrategy(MinimalRetryStrategy, Protocol):
    """Strategy of the Smithy design: the methods, and two attributes that other code may read.

    All shipped strategies have both. An argument also accepts a ``MinimalRetryStrategy``, which needs neither.
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
    """Methods of an asynchronous strategy, as in smithy-core since 0.6.

    All three methods are ``async def``. An ``abandon`` is synchronous here too: a cancelled caller cannot await it.
    """

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return the token of a request's first attempt."""
        ...

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Return the token of the next attempt after the attempt of ``token_to_renew`` failed with ``error``."""
        ...

    async def record_success(self, *, token: RetryToken) -> None:
        """Record the success of the attempt of ``token``."""
        ...


class AsyncRetryStrategy(AsyncMinimalRetryStrategy, Protocol):
    """Asynchronous strategy of the Smithy design: the methods, and the two attributes."""

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

    A class that inherits the protocol has its defaults. An error that lacks an attribute is treated as if it had the
    default.
    """

    is_retry_safe: bool | None = None
    """Whether a retry is safe; None, like False, does not permit one."""
    retry_after: float | None = None
    """Minimum delay before a retry, in seconds."""
    is_throttling_error: bool = False
    """Whether the service requests a lower rate."""


@runtime_checkable
class HasFault(Protocol):
    """Error that names the party at fault."""

    fault: PartyAtFault
    """Party at fault; None if unknown."""
