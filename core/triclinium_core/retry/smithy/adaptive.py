"""The adaptive strategy: the standard one, and every send waits for a rate that the service bears.

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
    """The standard strategy that also holds requests back once a service has throttled, first attempts too.

    The delay of each token is as long as the backoff and the rate both need; so whoever sends waits for the delay of the
    first token as well. There is one rate for all scopes: use a strategy for each service.

    Args:
        clock: tells the present in seconds, such as ``trio.current_time``. It must not go back, so a strategy serves one
            run of an event loop.
        rng, max_attempts, numbers, quota_capacity, clamp_retry_after, backoff, throttling_backoff: as for
            ``StandardRetryStrategy``.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range. Each method raises it too, having
            changed nothing, if the clock goes back.
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
                f"clock={shown(clock)} must return the present in seconds when it is called, as trio.current_time does",
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
        """Requests a second that are allowed; None as long as the service has not throttled."""
        return self._limiter.rate if self._limiter.is_enabled else None

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> SingleUseToken:
        """Return the token of a first attempt, which is never refused; its delay is what the rate needs.

        Raises:
            ArgumentError: ``token_scope`` is neither a string nor None.
        """
        token = super().acquire_initial_retry_token(token_scope=token_scope)
        self._reserve(token, self._clock())
        return token

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> SingleUseToken:
        """Return the token of the next attempt; a throttling ``error`` lowers the rate also where there is none.

        Raises:
            RetryError: as for ``StandardRetryStrategy``.
            ArgumentError: as for ``StandardRetryStrategy``.
        """
        now = self._clock()
        self._limiter.advance(now)
        try:
            token = super().refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)
        except RetryError:
            self._hear(error, now)
            raise
        self._hear(error, now)
        self._reserve(token, now)
        return token

    def record_success(self, *, token: RetryToken) -> None:
        """Take back the token of the attempt that succeeded; the quota gets its part, and the rate may rise.

        Raises:
            ArgumentError: the token is used up, or not from here.
        """
        now = self._clock()
        self._limiter.advance(now)
        super().record_success(token=token)
        self._limiter.on_success(now)

    def abandon(self, *, token: RetryToken) -> None:
        """Take back the token of an attempt that will not be made; quota and rate are as if it had not been asked for.

        Raises:
            ArgumentError: the token is used up, or not from here.
        """
        holds_slot = require_token(token, self, "token").holds_slot
        super().abandon(token=token)
        if holds_slot:
            self._limiter.give_back()

    def _hear(self, error: Exception, now: float) -> None:
        if classify(error).is_throttling_error:
            self._limiter.on_throttle(now)
        else:
            self._limiter.on_success(now)

    def _reserve(self, token: SingleUseToken, now: float) -> None:
        wait = self._limiter.acquire(now)
        token.retry_delay = max(token.retry_delay, wait)
        token.holds_slot = self._limiter.is_enabled and wait < WAIT_MAX
