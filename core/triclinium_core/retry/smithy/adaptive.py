"""Adaptive strategy: the standard strategy with a rate limit that adapts to throttling by the service.

Source: "adaptive" mode of the AWS SDKs; decision S9.
"""

from __future__ import annotations

from collections.abc import Callable

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.smithy.classification import classify
from triclinium_core.retry.smithy.numbers import AwsRetryNumbers
from triclinium_core.retry.smithy.protocols import RetryBackoffStrategy, RetryError, RetryToken
from triclinium_core.retry.smithy.rate_limiter import WAIT_MAX, RateLimiter
from triclinium_core.retry.smithy.standard import StandardRetryStrategy
from triclinium_core.retry.smithy.tokens import SingleUseToken, require_token
from triclinium_core.shown import shown


class AdaptiveRetryStrategy(StandardRetryStrategy):
    """Standard strategy that also limits the rate of all attempts, even first ones, once the service has throttled.

    The delay of each token satisfies both the backoff and the rate limit, so a caller must also wait for the delay of
    the first token. All scopes share one rate, so use a separate strategy for each service.

    Args:
        clock: function that returns the current time in seconds, such as ``trio.current_time``. The time must never
            decrease, so use a strategy in only one run of an event loop.
        rng, max_attempts, numbers, quota_capacity, clamp_retry_after, backoff, throttling_backoff: as for
            ``StandardRetryStrategy``.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range. Each method that reads the clock also raises
            it, and changes nothing, if the time has decreased.
    """

    def __init__(
        self,
        *,
        rng: Random,
        clock: Callable[[], float],
        max_attempts: int | None = None,
        numbers: AwsRetryNumbers = AwsRetryNumbers.OF_2026,
        quota_capacity: int | None = None,
        clamp_retry_after: bool = False,
        backoff: RetryBackoffStrategy | None = None,
        throttling_backoff: RetryBackoffStrategy | None = None,
    ) -> None:
        if not callable(clock):
            raise ArgumentError(
                f"clock={shown(clock)} must be a function that returns the time in seconds, such as trio.current_time",
                parameter="clock",
            )
        super().__init__(
            rng=rng,
            max_attempts=max_attempts,
            numbers=numbers,
            quota_capacity=quota_capacity,
            clamp_retry_after=clamp_retry_after,
            backoff=backoff,
            throttling_backoff=throttling_backoff,
        )
        self._clock = clock
        self._limiter = RateLimiter()

    @property
    def allowed_rate(self) -> float | None:
        """Allowed rate in requests per second; None if the service has never throttled."""
        return self._limiter.rate if self._limiter.is_enabled else None

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> SingleUseToken:
        """Return the token for a first attempt, with the delay that the rate limit requires. Never refuse it.

        Raises:
            ArgumentError: ``token_scope`` is neither a string nor None.
        """
        token = super().acquire_initial_retry_token(token_scope=token_scope)
        self._reserve(token, self._clock())
        return token

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> SingleUseToken:
        """Return the token for the next attempt. A throttling ``error`` lowers the rate even if this raises RetryError.

        Raises:
            RetryError: as for ``StandardRetryStrategy``.
            ArgumentError: as for ``StandardRetryStrategy``.
        """
        now = self._clock()
        self._limiter.advance(now)
        try:
            token = super().refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)
        except RetryError:
            self._update_rate(error, now)
            raise
        self._update_rate(error, now)
        self._reserve(token, now)
        return token

    def record_success(self, *, token: RetryToken) -> None:
        """Record that the attempt with ``token`` succeeded. This returns units to the quota, and may change the rate.

        Raises:
            ArgumentError: the token was used before, or another strategy issued it.
        """
        now = self._clock()
        self._limiter.advance(now)
        super().record_success(token=token)
        self._limiter.on_success(now)

    def abandon(self, *, token: RetryToken) -> None:
        """Release the token of an attempt that will not be made.

        This returns what the attempt took from the quota and the rate limiter.

        Raises:
            ArgumentError: the token was used before, or another strategy issued it.
        """
        holds_slot = require_token(token, self, "token").holds_slot
        super().abandon(token=token)
        if holds_slot:
            self._limiter.give_back()

    def _update_rate(self, error: Exception, now: float) -> None:
        if classify(error).is_throttling_error:
            self._limiter.on_throttle(now)
        else:
            self._limiter.on_success(now)

    def _reserve(self, token: SingleUseToken, now: float) -> None:
        wait = self._limiter.acquire(now)
        token.retry_delay = max(token.retry_delay, wait)
        token.holds_slot = self._limiter.is_enabled and wait < WAIT_MAX
