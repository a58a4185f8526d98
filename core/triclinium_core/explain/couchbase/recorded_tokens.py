"""A token strategy that records whether it was asked, and the cost to its quota."""

from __future__ import annotations

from typing import cast

from triclinium_core.retry.combined.permits import Permit
from triclinium_core.retry.combined.reason_infos import FailedAttemptError
from triclinium_core.retry.combined.strategies import TokenLender
from triclinium_core.retry.smithy import MinimalRetryStrategy, RetryToken, StandardRetryStrategy

SHOWN_CLAUSE = "decision T2"


class RecordedTokens:
    """Passes every question on to a token strategy that answers at once, and records the last one.

    Args:
        lender: the strategy, with its scope if it has one.
    """

    def __init__(self, lender: TokenLender) -> None:
        self.scope: str | None = lender.token_scope
        self._strategy = cast(MinimalRetryStrategy, lender.strategy)
        self.shown: FailedAttemptError | None = None
        """What the strategy was shown last; None where it was not asked about a failure."""
        self.before: int | None = None
        """What the quota had when the strategy was asked last; None where it has none."""

    def tokens(self) -> Permit:
        """Return the tokens of a request, the first of which was acquired."""
        tokens = Permit(self, self.scope)
        tokens.acquire()
        return tokens

    @property
    def available(self) -> int | None:
        """What the quota has now; None where the strategy has none."""
        strategy = self._strategy
        return strategy.available_quota(self.scope) if isinstance(strategy, StandardRetryStrategy) else None

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return what the strategy answers."""
        return self._strategy.acquire_initial_retry_token(token_scope=token_scope)

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Return what the strategy answers; whatever it raises passes."""
        assert isinstance(error, FailedAttemptError)
        self.shown, self.before = error, self.available
        return self._strategy.refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)

    def record_success(self, *, token: RetryToken) -> None:
        """Tell the strategy."""
        self._strategy.record_success(token=token)

    def facts(self) -> dict[str, object] | None:
        """Return what the strategy was shown, and what its quota has, as JSON values; None where it was not asked."""
        error = self.shown
        if error is None:
            return None
        return {
            "retry_safe": error.is_retry_safe,
            "throttling": error.is_throttling_error,
            "timeout": error.is_timeout_error,
            "retry_after": error.retry_after,
            "quota_before": self.before,
            "quota_after": self.available,
        }

    def words(self) -> str:
        """Return what the strategy was shown as a sentence."""
        error = self.shown
        assert error is not None
        kind = (
            "a throttling error" if error.is_throttling_error else "a timeout" if error.is_timeout_error else "an error"
        )
        safe = "safe" if error.is_retry_safe else "not safe"
        wish = "" if error.retry_after is None else f", after {error.retry_after:g} s"
        paid = ""
        if self.before is not None and self.available is not None:
            taken = self.before - self.available
            paid = (
                f" A retry takes {taken} from the quota, which then has {self.available}."
                if taken
                else (f" Its quota has {self.available}.")
            )
        return f"The strategy is shown {kind} that is {safe} to retry{wish} ({SHOWN_CLAUSE}).{paid}"
