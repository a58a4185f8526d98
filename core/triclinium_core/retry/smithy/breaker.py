"""The breaker strategy: no retries while many attempts fail.

It stops retries, and no first attempts: nothing is refused that was not sent yet, which is what sets it apart from a
circuit breaker on a connection.

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
    """Retries what is safe to retry until ``max_attempts`` were made, while few attempts fail.

    It counts requests, and attempts that failed and were asked to be retried, for as long as it lives: there is no window.
    What succeeds after retries has failed as often as it was retried, so that the retries themselves keep the share up. Share one
    strategy among all requests to a service; it belongs to one thread, such as that of an event loop.

    Args:
        rng: draws for the backoff.
        max_attempts: attempts of one request, including the first; 0 means 1, because the first is never refused.
        failure_share: failed attempts for each request, up to which there are retries.
        backoff: replaces 25 ms, doubled up to 20 s, half of it random.

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
        """Requests and failed attempts of each scope."""

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_attempts={self._max_attempts}, failure_share={self._failure_share_max:g})"

    def failure_share(self, token_scope: str | None = None) -> float:
        """Return how many attempts of a scope failed for each of its requests; 0 where there were none."""
        requests, failures = self._counts.get(token_scope, (0, 0))
        return failures / requests if requests else 0.0

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> SingleUseToken:
        """Return the token of a first attempt, which is never refused, and count the request.

        Raises:
            ArgumentError: ``token_scope`` is neither a string nor None.
        """
        token = super().acquire_initial_retry_token(token_scope=token_scope)
        counts = self._counts.get(token_scope)
        if counts is None:
            self._count_anew(token_scope)
        else:
            counts[0] += 1
        return token

    def _refusal(self, info: ErrorInfo, count: int, scope: str | None) -> str | None:
        # A scope that was forgotten begins anew, with this request.
        if scope not in self._counts:
            self._count_anew(scope)
        self._counts[scope][1] += 1
        share = self.failure_share(scope)
        if share > self._failure_share_max:
            return (
                f"{share:.3g} attempts failed for each request, and above {self._failure_share_max:g} none is retried"
            )
        return super()._refusal(info, count, scope)

    def _count_anew(self, scope: str | None) -> None:
        """Count one request of a scope, and forget the scope that began first where there are too many."""
        self._counts[scope] = [1, 0]
        if len(self._counts) > SCOPES_MAX:
            del self._counts[next(iter(self._counts))]
