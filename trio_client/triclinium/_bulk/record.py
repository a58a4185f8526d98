"""Record of a bulk block: counts, keys of failed operations, and failures that the body did not use."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Generic, Never, TypeVar

import msgspec
import trio

from triclinium._bulk.failure import LISTED_MAX, BulkFailure, bulk_failure
from triclinium._error_copies import copy_of
from triclinium_core.errors import CouchbaseException, InternalError
from triclinium_core.retry.couchbase import may_be_applied
from triclinium_core.shown import short_repr, total_repr

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

KEYS_MAX = 1000
"""Maximum number of keys in one list of a record."""


class BulkOutcome(msgspec.Struct, Generic[R_co], eq=False):
    """Outcome of one operation of a bulk block."""

    _result: R_co | None
    _error: Exception | None = None
    _record: BulkRecord | None = None
    """Record of the block, which counts the failure as unused; None without a failure, or once the body has used it."""
    _number: int = 0
    """Number of the failure in the record, from 1; 0 without a failure."""

    @total_repr
    def __repr__(self) -> str:
        return f"<BulkOutcome {short_repr(self._result if self._error is None else self._error)}>"

    def result(self) -> R_co:
        """Return the result of the operation.

        Raises:
            Exception: the exception that the single call would have raised.
        """
        if self._error is not None:
            raise copy_of(self.error or self._error)
        return self._result  # type: ignore[return-value]  # without an error, it has a result

    @property
    def error(self) -> Exception | None:
        """Exception of the operation; None if it succeeded."""
        if self._error is not None and self._record is not None:
            self._record.used(self._number, self._error)
            self._record = None
        return self._error


class KeyList:
    """First keys of one kind, at most ``KEYS_MAX``, and the number of all keys of that kind."""

    __slots__ = ("count", "keys")

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.count: int = 0

    def add(self, key: str) -> None:
        """Count a key, and keep it if it is among the first."""
        self.count += 1
        if len(self.keys) < KEYS_MAX:
            self.keys.append(key)


class BulkRecord:
    """Record of the items that a block has taken from its source.

    Args:
        changes: whether the operations change documents, so that a failed one may have been applied.
        concurrency: maximum number of items taken from the source whose outcomes the body has not taken.
    """

    def __init__(self, *, changes: bool, concurrency: int) -> None:
        self.changes: bool = changes
        self.taken: int = 0
        self.succeeded: int = 0
        self.not_applied: KeyList = KeyList()
        """Operations that were certainly not applied; all unsuccessful ones if the operations change no document."""
        self.ambiguous: KeyList = KeyList()
        """Unsuccessful operations that may have been or may still be applied."""
        self._failures: int = 0
        """Number of failed outcomes."""
        self._unused: Counter[type[Exception]] = Counter()
        """Number of failures that the body has not used, by class."""
        self._first_unused: dict[int, tuple[str, Exception]] = {}
        """Key and exception of the first failures that the body has not used, by the numbers of the failures."""
        self._kept_max: int = concurrency + LISTED_MAX
        """Maximum number of failures that are kept: more than are listed, because the body may still use some."""

    def failed(self, key: str, error: Exception, *, was_submitted: bool) -> BulkOutcome[Never]:
        """Record an operation that failed, and return its outcome."""
        self.ended(key, is_ambiguous=was_submitted and _may_be_applied(error))
        self._failures += 1
        self._unused[type(error)] += 1
        if len(self._first_unused) < self._kept_max:
            self._first_unused[self._failures] = key, error
        return BulkOutcome(None, error, self, self._failures)

    def ended(self, key: str, *, is_ambiguous: bool) -> None:
        """Record an operation that failed or was abandoned."""
        (self.ambiguous if is_ambiguous and self.changes else self.not_applied).add(key)

    def used(self, number: int, error: Exception) -> None:
        """Record that the body has used a failure."""
        self._first_unused.pop(number, None)
        self._unused[type(error)] -= 1

    def failure(self) -> BulkFailure | None:
        """Return the exception for the failures that the body has not used; None without any."""
        unused = +self._unused
        return (
            bulk_failure(self.taken, tuple(islice(self._first_unused.values(), LISTED_MAX)), unused) if unused else None
        )


def _may_be_applied(error: Exception) -> bool:
    """Return whether a submitted operation that failed with ``error`` may have been or may still be applied."""
    if isinstance(error, InternalError | trio.ClosedResourceError) or not isinstance(error, CouchbaseException):
        # The driver ended first, or a strategy of the user raised: the state of the operation is unknown.
        return True
    return may_be_applied(error)
