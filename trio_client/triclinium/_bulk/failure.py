"""Exception of a bulk block with failures that its body did not look at."""

from __future__ import annotations

from collections.abc import Mapping

from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import CouchbaseException
from triclinium_core.shown import short_repr

LISTED_MAX = 20
"""Maximum number of failures that the exception lists."""


class BulkFailure(CouchbaseException, rfc_class=CouchbaseException):
    """Operations of a bulk block failed, and its body used neither ``result()`` nor ``error`` of their outcomes.

    It is not an exception group: ``except BulkFailure`` catches it. The RFCs have no bulk operations.
    """

    # Tracebacks show the module from which users import the class.
    __module__ = "triclinium.errors"

    count: int = 0
    """Number of failures that the body did not use."""
    failures: tuple[tuple[str, Exception], ...] = ()
    """Key and exception of the first unused failures, at most 20; fewer if failures were dropped to save memory."""
    counts: Mapping[type[Exception], int] = {}
    """Number of unused failures by class of the exception."""

    def __reduce__(self) -> tuple[object, ...]:
        names = ("count", "failures", "counts")
        return type(self), (self.message, self.context), {name: getattr(self, name) for name in names}


def bulk_failure(
    taken: int, failures: tuple[tuple[str, Exception], ...], counts: Mapping[type[Exception], int]
) -> BulkFailure:
    """Return the exception for the failures that the body did not use.

    Args:
        taken: number of items that the block took from its source.
        failures: key and exception of the first failures.
        counts: number of failures by class of the exception.
    """
    count = sum(counts.values())
    classes = ", ".join(f"{kind.__name__} {number}" for kind, number in counts.items())
    first = "".join(f"; the first is {short_repr(key)}: {error}" for key, error in failures[:1])
    error = BulkFailure(
        f"{count} of {taken} operations failed and went unchecked ({classes}){first}; "
        "read outcome.result() of each, or pass errors='collect'",
        ErrorContext(),
    )
    error.count, error.failures, error.counts = count, failures, dict(counts)
    return error
