"""Strategy that refuses every retry, with which a test gets the first failure of an operation."""

from __future__ import annotations

from triclinium_core.retry.couchbase import RetryAction, RetryReason, RetryRequest


class NeverRetry:
    """Strategy that refuses every retry."""

    def retry_after(self, request: RetryRequest, reason: RetryReason) -> RetryAction:
        """Refuse the retry."""
        return RetryAction.no_retry()
