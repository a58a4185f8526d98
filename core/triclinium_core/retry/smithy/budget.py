"""Budget strategy, which limits the number of retries to a share of the number of first attempts.

Source: Marc Brooker, "Fixing retries with token buckets and circuit breakers" (2022-02-28); decision S21.
"""

from __future__ import annotations

from triclinium_core.retry.backoff import Random
from triclinium_core.retry.checks import check_number
from triclinium_core.retry.smithy.backoff import ExponentialRetryBackoffStrategy
from triclinium_core.retry.smithy.base import BaseRetryStrategy
from triclinium_core.retry.smithy.classification import ErrorInfo
from triclinium_core.retry.smithy.protocols import RetryBackoffStrategy, RetryError, RetryToken
from triclinium_core.retry.smithy.quota import SCOPES_MAX
from triclinium_core.retry.smithy.tokens import SingleUseToken, require_token
from triclinium_core.shown import total_repr

ATTEMPTS_MAX = 1_000
"""Default maximum number of attempts of one request. Normally the budget stops the retries earlier."""


class BudgetRetryStrategy(BaseRetryStrategy):
    """Strategy that permits safe retries within a budget that grows with each first attempt.

    Each first attempt adds ``deposit`` to the budget, and each retry takes 1 from it. In the long run there are at most
    ``deposit`` retries per request, however many attempts fail. For a short time, ``capacity`` permits additional
    retries. A success adds nothing. Use one strategy for all requests to a service, and only in one thread, such as
    that of an event loop.

    Args:
        rng: random source for the backoff.
        capacity: initial and maximum budget of each scope. A retry needs more than 1 in the budget.
        deposit: amount that each first attempt adds to the budget. 0.1 permits one retry for ten requests.
        max_attempts: maximum number of attempts of one request, including the first. 0 means 1, because the strategy
            never refuses the first attempt.
        backoff: backoff strategy. Default: 25 ms, doubled up to 20 s, half of it random.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range.
    """

    def __init__(
        self,
        *,
        rng: Random,
        capacity: float = 5.0,
        deposit: float = 0.1,
        max_attempts: int = ATTEMPTS_MAX,
        backoff: RetryBackoffStrategy | None = None,
    ) -> None:
        super().__init__(max_attempts, ExponentialRetryBackoffStrategy(rng=rng) if backoff is None else backoff)
        self._capacity = check_number(capacity, "capacity", 0.0)
        self._deposit = check_number(deposit, "deposit", 0.0)
        self._missing: dict[str | None, float] = {}
        """Difference between ``capacity`` and the budget, by scope. A scope with a full budget has no entry."""

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}(capacity={self._capacity:g}, deposit={self._deposit:g})"

    def available_budget(self, token_scope: str | None = None) -> float:
        """Return the remaining budget of a scope."""
        return self._capacity - self._missing.get(token_scope, 0.0)

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> SingleUseToken:
        """Return the token for a first attempt, and add its deposit to the budget. Never refuse the token.

        Raises:
            ArgumentError: ``token_scope`` is neither a string nor None.
        """
        token = super().acquire_initial_retry_token(token_scope=token_scope)
        if self._missing:
            token.deposit = self._refund(self._deposit, token_scope)
        return token

    def abandon(self, *, token: RetryToken) -> None:
        """Release the token of an attempt that will not be made, and undo its change to the budget.

        Raises:
            ArgumentError: the token was used before, or another strategy issued it. The budget has not changed.
        """
        mine = require_token(token, self, "token")
        super().abandon(token=token)
        if mine.quota_acquired:
            self._refund(float(mine.quota_acquired), mine.token_scope)
        elif mine.deposit:
            self._take(mine.deposit, mine.token_scope)

    def _charge(self, error: Exception, info: ErrorInfo, scope: str | None, delay: float) -> int:
        available = self.available_budget(scope)
        if available <= 1.0:
            raise RetryError(
                f"{type(error).__name__} is not retried: a retry takes 1 from the budget of "
                f"{'all requests without a scope' if scope is None else f'scope {scope!r}'} and needs more "
                f"than 1, but {available:g} of {self._capacity:g} is left; each first attempt adds {self._deposit:g}",
                retry_after=delay,
            ) from error
        self._take(1.0, scope)
        return 1

    def _take(self, amount: float, scope: str | None) -> None:
        # Removing the scope and inserting it again makes it the newest entry of the dict.
        self._missing[scope] = min(self._missing.pop(scope, 0.0) + amount, self._capacity)
        if len(self._missing) > SCOPES_MAX:
            del self._missing[next(iter(self._missing))]

    def _refund(self, amount: float, scope: str | None) -> float:
        """Add ``amount`` to the budget of a scope, up to its capacity. Return the amount that was added."""
        missing = self._missing.get(scope, 0.0)
        if missing > amount:
            self._missing[scope] = missing - amount
            return amount
        self._missing.pop(scope, None)
        return missing
