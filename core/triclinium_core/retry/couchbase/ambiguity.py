"""Rule that decides whether a failed operation may have been applied."""

from __future__ import annotations

from triclinium_core import errors
from triclinium_core.retry.couchbase.tables.reasons import RetryReason

AMBIGUOUS_ERRORS: tuple[type[errors.CouchbaseException], ...] = (
    errors.AmbiguousTimeoutException,
    errors.DurabilityAmbiguousException,
    # The node sent an invalid response, perhaps to an operation that it had applied.
    errors.DecodingFailureException,
)
"""Exceptions of operations that may have been applied, whatever their context."""

AMBIGUOUS_REASONS: frozenset[RetryReason] = frozenset({RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, RetryReason.UNKNOWN})
"""Retry reasons of attempts that may have been applied."""


def may_be_applied(error: errors.CouchbaseException) -> bool:
    """Return whether an operation that failed with ``error`` may have been applied, or may still be."""
    return isinstance(error, AMBIGUOUS_ERRORS) or error.context.refused_reason in AMBIGUOUS_REASONS
