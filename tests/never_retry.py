"""The strategy of tests that want to see the first failure."""

from __future__ import annotations

from triclinium_core.retry.couchbase import RetryAction, RetryReason, RetryRequest


class NeverRetry:
    """Gives up at the first failure."""

    def retry_after(self, request: RetryRequest, reason: RetryReason) -> RetryAction:
        """Refuse."""
        return RetryAction.no_retry()
