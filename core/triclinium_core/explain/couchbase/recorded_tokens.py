"""Wrapper of a token strategy that records the last request for a retry, and what the retry cost the quota."""

from __future__ import annotations

from typing import cast

from triclinium_core.retry.combined.permits import Permit
from triclinium_core.retry.combined.reason_infos import FailedAttemptError
from triclinium_core.retry.combined.strategies import PermitIssuer
from triclinium_core.retry.smithy import MinimalRetryStrategy, RetryToken, StandardRetryStrategy

SHOWN_CLAUSE = "decision T2"


class RecordedTokens:
    """Wrapper of a synchronous token strategy that records the last request for a retry.

    Args:
        issuer: strategy, with its scope if it has one.
    """

    def __init__(self, issuer: PermitIssuer) -> None:
        self.scope: str | None = issuer.token_scope
        self._strategy = cast(MinimalRetryStrategy, issuer.strategy)
        self.shown: FailedAttemptError | None = None
        """Last error that the strategy received; None if it received no error."""
        self.before: int | None = None
        """Units in the quota before the last request for a retry; None without a quota or such a request."""

    def tokens(self) -> Permit:
        """Return the permit of a request, with its first token acquired."""
        tokens = Permit(self, self.scope)
        tokens.acquire()
        return tokens

    @property
    def available(self) -> int | None:
        """Units in the quota; None if the strategy has no quota."""
        strategy = self._strategy
        return strategy.available_quota(self.scope) if isinstance(strategy, StandardRetryStrategy) else None

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return the token that the strategy issues."""
        return self._strategy.acquire_initial_retry_token(token_scope=token_scope)

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Record ``error`` and return the token that the strategy issues. Exceptions of the strategy propagate."""
        assert isinstance(error, FailedAttemptError)
        self.shown, self.before = error, self.available
        return self._strategy.refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)

    def record_success(self, *, token: RetryToken) -> None:
        """Pass the success on to the strategy."""
        self._strategy.record_success(token=token)

    def facts(self) -> dict[str, object] | None:
        """Return the last error and the quota as JSON values; None if the strategy received no error."""
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
        """Return a sentence on the last error that the strategy received."""
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
