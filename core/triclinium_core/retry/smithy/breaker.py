"""Breaker strategy, which permits no retries while many attempts fail.

Unlike a circuit breaker on a connection, the strategy stops only retries, never first attempts.

Source: Marc Brooker, "Fixing retries with token buckets and circuit breakers" (2022-02-28); decision S22.
"""

from __future__ import annotations

from triclinium_core.retry.backoff import Random
from triclinium_core.retry.checks import check_number
from triclinium_core.retry.smithy.backoff import ExponentialRetryBackoffStrategy
from triclinium_core.retry.smithy.base import BaseRetryStrategy
from triclinium_core.retry.smithy.classification import ErrorInfo
from triclinium_core.retry.smithy.protocols import RetryBackoffStrategy
from triclinium_core.retry.smithy.quota import SCOPES_MAX
from triclinium_core.retry.smithy.tokens import SingleUseToken
from triclinium_core.shown import total_repr


class BreakerRetryStrategy(BaseRetryStrategy):
    """Strategy that permits up to ``max_attempts`` attempts if a retry is safe, but only while few attempts fail.

    In each scope, the strategy counts all requests, and all failed attempts for which a retry was requested, over its
    complete lifetime and not in a window of time. A request that succeeds after retries counts one failure for each
    retry, so retries that fail also raise the failure share. Use one strategy for all requests to a service, and only
    in one thread, such as that of an event loop.

    Args:
        rng: random source for the backoff.
        max_attempts: maximum number of attempts of one request, including the first. 0 means 1, because the strategy
            never refuses the first attempt.
        failure_share: maximum number of failed attempts per request. Above it, the strategy permits no retry.
        backoff: backoff strategy. Default: 25 ms, doubled up to 20 s, half of it random.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range.
    """

    def __init__(
        self,
        *,
        rng: Random,
        max_attempts: int = 4,
        failure_share: float = 0.1,
        backoff: RetryBackoffStrategy | None = None,
    ) -> None:
        super().__init__(max_attempts, ExponentialRetryBackoffStrategy(rng=rng) if backoff is None else backoff)
        self._failure_share_max = check_number(failure_share, "failure_share", 0.0)
        self._counts: dict[str | None, list[int]] = {}
        """Number of requests and number of failed attempts, by scope."""

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_attempts={self._max_attempts}, failure_share={self._failure_share_max:g})"

    def failure_share(self, token_scope: str | None = None) -> float:
        """Return the number of failed attempts divided by the number of requests in a scope; 0 without requests."""
        requests, failures = self._counts.get(token_scope, (0, 0))
        return failures / requests if requests else 0.0

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> SingleUseToken:
        """Return the token for a first attempt, and count the request. Never refuse the token.

        Raises:
            ArgumentError: ``token_scope`` is neither a string nor None.
        """
        token = super().acquire_initial_retry_token(token_scope=token_scope)
        counts = self._counts.get(token_scope)
        if counts is None:
            self._restart_count(token_scope)
        else:
            counts[0] += 1
        return token

    def _refusal(self, info: ErrorInfo, count: int, scope: str | None) -> str | None:
        # ``_restart_count`` of another scope may have dropped the counts of this scope.
        if scope not in self._counts:
            self._restart_count(scope)
        self._counts[scope][1] += 1
        share = self.failure_share(scope)
        if share > self._failure_share_max:
            return f"{share:.3g} attempts failed per request, and the limit for retries is {self._failure_share_max:g}"
        return super()._refusal(info, count, scope)

    def _restart_count(self, scope: str | None) -> None:
        """Start the counts of a scope with one request. If there are too many scopes, drop the one added first."""
        self._counts[scope] = [1, 0]
        if len(self._counts) > SCOPES_MAX:
            del self._counts[next(iter(self._counts))]
