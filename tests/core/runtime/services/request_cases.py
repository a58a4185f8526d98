"""Helpers that several tests of HTTP requests share."""

from __future__ import annotations

from tests.core.runtime.services.asking import Asking
from triclinium_core.contract import couchbase
from triclinium_core.retry.couchbase import RetryAction, RetryReason, RetryRequest


class Never:
    """Strategy that refuses every retry."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Refuse the retry."""
        return RetryAction.no_retry()


def refusals(simulation: Asking) -> list[couchbase.ReportRefusal]:
    """Return the refusals that the client has reported."""
    return [action for action in simulation.actions if isinstance(action, couchbase.ReportRefusal)]


BASIC = "QWRtaW5pc3RyYXRvcjpwYXNzd29yZA=="
"""Credentials of ``Asking``, encoded as its requests carry them."""
