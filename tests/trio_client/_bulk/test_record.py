"""Record and outcomes of a bulk block."""

from __future__ import annotations

import pytest
import trio

from tests.rows import rows
from triclinium import errors
from triclinium._bulk.failure import LISTED_MAX
from triclinium._bulk.record import KEYS_MAX, BulkOutcome, BulkRecord
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.couchbase import RetryReason

MISSING = errors.DocumentNotFoundException("no such document")


class MineError(Exception):
    """Exception of a user's strategy or transcoder."""


def record(*, changes: bool = True, concurrency: int = 64) -> BulkRecord:
    """Return a record."""
    return BulkRecord(changes=changes, concurrency=concurrency)


def fail(into: BulkRecord, count: int, error: Exception = MISSING) -> list[BulkOutcome[int]]:
    """Record failures of documents, and return their outcomes."""
    into.taken += count
    return [into.failed(f"k{number}", error, was_submitted=True) for number in range(count)]


def test_the_outcome_of_a_success() -> None:
    """The outcome of a success has the result and no error."""
    outcome = BulkOutcome(7)

    assert (7, None) == (outcome.result(), outcome.error)
    assert "<BulkOutcome 7>" == repr(outcome)


def test_the_outcome_of_a_failure() -> None:
    """Each ``result`` of a failure raises an equal exception with the same context; ``error`` returns the original."""
    into = record()
    context = ErrorContext(operation="get", key="ada")
    error = errors.DocumentNotFoundException("no such document", context)
    (outcome,) = fail(into, 1, error)
    raised = []
    for _ in range(2):
        with pytest.raises(errors.DocumentNotFoundException) as caught:
            outcome.result()
        raised.append(caught.value)

    assert raised[0] is not raised[1]
    assert [str(error)] * 2 == [str(each) for each in raised]
    assert all(each.context is context for each in raised)
    assert outcome.error is error
    assert error.__traceback__ is None
    assert into.failure() is None
    assert "no such document" in repr(outcome)


def test_a_repr_uses_no_failure() -> None:
    """The repr of an outcome does not count as a use of its failure."""
    into = record()
    (outcome,) = fail(into, 1)
    repr(outcome)

    assert into.failure() is not None


@rows(
    ("error", "was_submitted", "is_ambiguous"),
    [
        (MISSING, True, False),
        (errors.InvalidArgumentException(), False, False),
        (errors.AmbiguousTimeoutException(), True, True),
        (errors.UnambiguousTimeoutException(), True, False),
        (errors.DurabilityAmbiguousException(), True, True),
        (
            errors.RequestCanceledException("", ErrorContext(refused_reason=RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT)),
            True,
            True,
        ),
        (errors.InternalError(), True, True),
        (trio.ClosedResourceError(), True, True),
        (trio.ClosedResourceError(), False, False),
        (MineError(), True, True),
        (MineError(), False, False),
    ],
)
def test_failures_are_sorted(error: Exception, was_submitted: bool, is_ambiguous: bool) -> None:
    """A failure is ambiguous only if the operation changes a document, was submitted, and may have been applied."""
    writes, reads = record(), record(changes=False)
    for each in (writes, reads):
        each.failed("ada", error, was_submitted=was_submitted)

    assert (["ada"] if is_ambiguous else []) == writes.ambiguous.keys
    assert ([] if is_ambiguous else ["ada"]) == writes.not_applied.keys
    assert (["ada"], []) == (reads.not_applied.keys, reads.ambiguous.keys)


def test_lists_are_bounded() -> None:
    """A list keeps only the first 1,000 keys; its count includes all of them."""
    into = record()
    fail(into, 1500)
    for number in range(1200):
        into.ended(f"a{number}", is_ambiguous=True)

    assert KEYS_MAX == 1000
    assert ([f"k{number}" for number in range(1000)], 1500) == (into.not_applied.keys, into.not_applied.count)
    assert ([f"a{number}" for number in range(1000)], 1200) == (into.ambiguous.keys, into.ambiguous.count)


def test_kept_failures_are_bounded() -> None:
    """A block that is not iterated keeps a bounded number of failures, and counts all of them."""
    into = record(concurrency=3)
    fail(into, 5000)
    failure = into.failure()

    assert len(into._first_unused) == 3 + LISTED_MAX
    assert failure is not None
    assert 5000 == failure.count
