"""The standard strategy: a few attempts, and a quota that all requests of a scope share.

Source: smithy-core 0.9's ``StandardRetryStrategy``, "standard" mode of the AWS SDKs; decisions S3 to S6 and S17 to S20.
"""

from __future__ import annotations

from typing import Self

from triclinium_core.checks import check_flag, check_integer, check_type
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.smithy.backoff import (
    ExponentialRetryBackoffStrategy,
    Jitter,
    backoff_delay,
    check_backoff,
)
from triclinium_core.retry.smithy.classification import ErrorInfo
from triclinium_core.retry.smithy.numbers import AwsRetryNumbers
from triclinium_core.retry.smithy.protocols import RetryBackoffStrategy, RetryError, RetryToken
from triclinium_core.retry.smithy.quota import RetryQuota
from triclinium_core.retry.smithy.refusals import at_least_retry_after, refuse_hopeless, require_error
from triclinium_core.retry.smithy.tokens import SingleUseToken, require_scope, require_token


class StandardRetryStrategy:
    """Retries what is safe to retry, while the quota lasts.

    When a service is down, all its clients together send it little more than first attempts. Share one strategy among
    all requests to a service; it belongs to one thread, such as that of an event loop.

    Args:
        rng: draws for the backoffs.
        max_attempts: attempts of one request, the first among them; 0 means 1, for the first is never refused. That of
            ``numbers`` unless given.
        numbers: costs, backoffs, and what is not given here.
        quota_capacity: what the quota of each scope begins with; 0 permits no retry at all. That of ``numbers`` unless
            given.
        clamp_retry_after: whether a server's ``retry_after`` lengthens a backoff by 5 s at most. Without that, a retry
            waits for as long as the server asked.
        backoff: replaces the backoff of ``numbers``.
        throttling_backoff: replaces that after throttling errors.

    Raises:
        InvalidArgumentException: an argument is of the wrong type or out of range.
    """

    def __init__(
        self,
        *,
        rng: Random,
        max_attempts: int | None = None,
        numbers: AwsRetryNumbers = AwsRetryNumbers.OF_2026,
        quota_capacity: int | None = None,
        clamp_retry_after: bool = False,
        backoff: RetryBackoffStrategy | None = None,
        throttling_backoff: RetryBackoffStrategy | None = None,
    ) -> None:
        check_type(numbers, "numbers", AwsRetryNumbers)
        self._max_attempts = (
            numbers.max_attempts if max_attempts is None else check_integer(max_attempts, "max_attempts")
        )
        self._numbers = numbers
        self._quota = RetryQuota(numbers.quota_capacity if quota_capacity is None else quota_capacity)
        self._clamps = check_flag(clamp_retry_after, "clamp_retry_after")
        if backoff is None:
            backoff = _full(rng, numbers.backoff_base, numbers.backoff_max)
        if throttling_backoff is None:
            throttling_backoff = _full(rng, numbers.throttling_backoff_base, numbers.backoff_max)
        self._backoff = check_backoff(backoff, "backoff")
        self._throttling_backoff = check_backoff(throttling_backoff, "throttling_backoff")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_attempts={self._max_attempts}, quota_capacity={self.quota_capacity})"

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        # Settings are copied for a call; the quota is what all calls share.
        return self

    @property
    def max_attempts(self) -> int:
        """Attempts of one request, the first among them."""
        return self._max_attempts

    @property
    def backoff_strategy(self) -> RetryBackoffStrategy:
        """What computes the delays, but for those after throttling errors."""
        return self._backoff

    @property
    def quota_capacity(self) -> int:
        """What the quota of each scope begins with, and never exceeds."""
        return self._quota.capacity

    def available_quota(self, token_scope: str | None = None) -> int:
        """Return what is left of the quota of a scope."""
        return self._quota.available(token_scope)

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> SingleUseToken:
        """Return the token of a first attempt, which takes nothing from the quota and is never refused.

        Raises:
            InvalidArgumentException: ``token_scope`` is neither a string nor None.
        """
        if token_scope is not None:
            require_scope(token_scope)
        return SingleUseToken(self, token_scope)

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> SingleUseToken:
        """Return the token of the next attempt; the one given is used up, also where there is none.

        Raises:
            RetryError: ``error`` is not safe to retry, the attempts are used up, or the quota is, and then
                ``retry_after`` has the delay that there would have been. ``error`` is its cause.
            InvalidArgumentException: the token is used up or not from here, ``error`` is no exception, or the backoff computed
                no delay; nothing has changed then.
        """
        token = require_token(token_to_renew, self, "token_to_renew")
        info = require_error(error)
        refuse_hopeless(token, error, info, self._max_attempts)
        count, scope = token.retry_count + 1, token.token_scope
        backoff = self._throttling_backoff if info.is_throttling_error else self._backoff
        delay = at_least_retry_after(backoff_delay(backoff, count), info.retry_after, clamped=self._clamps)
        cost = self._cost(info)
        token.use()
        if not self._quota.acquire(cost, scope):
            raise RetryError(
                f"{type(error).__name__} is not retried: that costs {cost}, and the quota of "
                f"{'all requests without a scope' if scope is None else f'scope {scope!r}'} has "
                f"{self._quota.available(scope)} of {self._quota.capacity} left; "
                f"{'successes refill it' if cost <= self._quota.capacity else 'a greater quota_capacity permits it'}",
                retry_after=delay,
            ) from error
        return SingleUseToken(self, scope, count, delay, cost)

    def record_success(self, *, token: RetryToken) -> None:
        """Take back the token of the attempt that succeeded, and give back to the quota what that attempt took from it.

        A first attempt gives back 1. What earlier retries of the request took is not given back.

        Raises:
            InvalidArgumentException: the token is used up, or not from here; the quota has not changed then.
        """
        mine = require_token(token, self, "token")
        mine.use()
        # Nearly always every quota is full.
        if self._quota.lacks:
            self._quota.release(mine.quota_acquired or 1, mine.token_scope)

    def abandon(self, *, token: RetryToken) -> None:
        """Take back the token of an attempt that will not be made, such as one that its deadline leaves no time for.

        What the attempt took from the quota is given back, for it loads nobody.

        Raises:
            InvalidArgumentException: the token is used up, or not from here; the quota has not changed then.
        """
        mine = require_token(token, self, "token")
        mine.use()
        self._quota.release(mine.quota_acquired, mine.token_scope)

    def _cost(self, info: ErrorInfo) -> int:
        if info.is_timeout_error and self._numbers.timeout_cost is not None:
            return self._numbers.timeout_cost
        return self._numbers.throttling_cost if info.is_throttling_error else self._numbers.retry_cost


def _full(rng: Random, base: float, most: float) -> ExponentialRetryBackoffStrategy:
    return ExponentialRetryBackoffStrategy(rng=rng, base=base, max=most, jitter=Jitter.FULL)
