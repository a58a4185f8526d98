"""Standard strategy, which limits the attempts of each request and, by a shared quota, the retries in each scope.

Source: smithy-core 0.9's ``StandardRetryStrategy``, "standard" mode of the AWS SDKs; decisions S3 to S6 and S17 to S20.
"""

from __future__ import annotations

from triclinium_core.retry.backoff import Random
from triclinium_core.retry.checks import check_flag, check_type
from triclinium_core.retry.smithy.backoff import ExponentialRetryBackoffStrategy, Jitter, backoff_delay, check_backoff
from triclinium_core.retry.smithy.base import BaseRetryStrategy, at_least_retry_after
from triclinium_core.retry.smithy.classification import ErrorInfo
from triclinium_core.retry.smithy.numbers import AwsRetryNumbers
from triclinium_core.retry.smithy.protocols import RetryBackoffStrategy, RetryError, RetryToken
from triclinium_core.retry.smithy.quota import RetryQuota
from triclinium_core.retry.smithy.tokens import require_token
from triclinium_core.shown import total_repr


class StandardRetryStrategy(BaseRetryStrategy):
    """Strategy that permits safe retries as long as a shared quota has enough units for them.

    If all clients of a service use this strategy, they send little more than first attempts while the service is down.
    Use one strategy for all requests to a service, and only in one thread, such as that of an event loop.

    Args:
        rng: random source for the backoffs.
        max_attempts: maximum number of attempts of one request, including the first. 0 means 1, because the strategy
            never refuses the first attempt. Default: the value in ``numbers``.
        numbers: costs of retries, and defaults for the number of attempts, the quota and the backoffs.
        quota_capacity: initial and maximum quota of each scope; 0 permits no retry. Default: the value in ``numbers``.
        clamp_retry_after: whether a server's ``retry_after`` lengthens a backoff by at most 5 s. If False, a retry
            waits for all of ``retry_after``.
        backoff: backoff strategy. Default: full jitter, with the delays in ``numbers``.
        throttling_backoff: backoff strategy after throttling errors. Default: full jitter, with the delays in
            ``numbers``.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range.
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
        super().__init__(
            numbers.max_attempts if max_attempts is None else max_attempts,
            _full(rng, numbers.backoff_base, numbers.backoff_max) if backoff is None else backoff,
        )
        if throttling_backoff is None:
            throttling_backoff = _full(rng, numbers.throttling_backoff_base, numbers.backoff_max)
        self._throttling_backoff = check_backoff(throttling_backoff, "throttling_backoff")
        self._numbers = numbers
        self._quota = RetryQuota(numbers.quota_capacity if quota_capacity is None else quota_capacity)
        self._clamps = check_flag(clamp_retry_after, "clamp_retry_after")

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_attempts={self._max_attempts}, quota_capacity={self.quota_capacity})"

    @property
    def quota_capacity(self) -> int:
        """Initial and maximum quota of each scope."""
        return self._quota.capacity

    def available_quota(self, token_scope: str | None = None) -> int:
        """Return the remaining quota of a scope."""
        return self._quota.available(token_scope)

    def record_success(self, *, token: RetryToken) -> None:
        """Record that the attempt with ``token`` succeeded, and return the cost of that attempt to the quota.

        A first attempt returns 1 to the quota. The costs of earlier retries of the request are not returned.

        Raises:
            ArgumentError: the token was used before, or another strategy issued it. The quota has not changed.
        """
        mine = require_token(token, self, "token")
        mine.owner = None
        # Skip the release in the usual case that every quota is full.
        if self._quota.lacks:
            self._quota.release(mine.quota_acquired or 1, mine.token_scope)

    def abandon(self, *, token: RetryToken) -> None:
        """Release the token of an attempt that will not be made, for example because the deadline is too close.

        Return the cost of the attempt to the quota, because the attempt puts no load on the service.

        Raises:
            ArgumentError: the token was used before, or another strategy issued it. The quota has not changed.
        """
        mine = require_token(token, self, "token")
        mine.owner = None
        self._quota.release(mine.quota_acquired, mine.token_scope)

    def _delay(self, info: ErrorInfo, retry_attempt: int, previous: float) -> float:
        backoff = self._throttling_backoff if info.is_throttling_error else self._backoff
        delay = backoff_delay(backoff, retry_attempt, previous)
        return at_least_retry_after(delay, info.retry_after, clamped=self._clamps)

    def _charge(self, error: Exception, info: ErrorInfo, scope: str | None, delay: float) -> int:
        numbers, quota = self._numbers, self._quota
        cost = numbers.throttling_cost if info.is_throttling_error else numbers.retry_cost
        if info.is_timeout_error and numbers.timeout_cost is not None:
            cost = numbers.timeout_cost
        if not quota.acquire(cost, scope):
            raise RetryError(
                f"{type(error).__name__} is not retried: a retry costs {cost}, and the quota of "
                f"{'all requests without a scope' if scope is None else f'scope {scope!r}'} has "
                f"{quota.available(scope)} of {quota.capacity} left; "
                f"{'successes refill it' if cost <= quota.capacity else 'only a greater quota_capacity permits it'}",
                retry_after=delay,
            ) from error
        return cost


def _full(rng: Random, base: float, most: float) -> ExponentialRetryBackoffStrategy:
    return ExponentialRetryBackoffStrategy(rng=rng, base=base, max=most, jitter=Jitter.FULL)
