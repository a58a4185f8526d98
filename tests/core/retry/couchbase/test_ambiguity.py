"""Rule that decides whether a failed operation may have been applied."""

from __future__ import annotations

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.couchbase import RetryReason, may_be_applied


@rows(
    ("error", "may_be"),
    [
        (errors.AmbiguousTimeoutException(), True),
        (errors.DurabilityAmbiguousException(), True),
        (errors.UnambiguousTimeoutException(), False),
        (errors.DocumentNotFoundException(), False),
        (errors.RequestCanceledException(), False),
        *(
            (
                errors.RequestCanceledException("", ErrorContext(refused_reason=reason)),
                reason in (RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, RetryReason.UNKNOWN),
            )
            for reason in RetryReason
        ),
    ],
)
def test_ambiguous_failures(error: errors.CouchbaseException, may_be: bool) -> None:
    """A failed operation may have been applied only if its error, or the reason of its refused retry, is ambiguous."""
    assert may_be == may_be_applied(error)
