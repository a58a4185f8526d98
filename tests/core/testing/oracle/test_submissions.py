"""Submission of one operation, with its caller's knowledge and the certain facts about it."""

from __future__ import annotations

import math

import pytest

from tests.core.testing.asked import HOTELS, at, exists, get, increment, lock, named, remove, touch, upsert
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.catalogue import OPERATIONS
from triclinium_core.kv.operation.replica.replica_requests import LookupInReplica
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn
from triclinium_core.kv.operation.validation import RELATIVE_EXPIRY_MAX
from triclinium_core.testing.oracle.submissions import CHANGES_CAS, NEVER, Place, Submission


def submission(operation: document_operations.DocumentOperation) -> Submission:
    """Return an operation that was submitted at 1 s."""
    return Submission(7, operation, at(1))


def test_new_submission() -> None:
    """A new submission is open and nothing about it is certain; once its caller has a result, it is closed."""
    begun = submission(upsert(keyspace=HOTELS))

    assert (7, at(1), Place(HOTELS, "ada")) == (begun.token, begun.begin, begun.place)
    assert (NEVER, NEVER, NEVER) == (begun.settled, begun.applied_by, begun.over_by)
    assert begun.is_open
    assert not begun.is_void
    assert "operation 7 (upsert 'ada')" == repr(begun)
    begun.settled = at(2)
    assert not begun.is_open


def test_operations_that_change_the_cas() -> None:
    """Writes, locks and touches change the CAS; reads, existence checks and unlocks do not."""
    kinds = [kind for kind in OPERATIONS if issubclass(kind, document_operations.DocumentOperation)]

    reads = {
        document_operations.Get,
        document_operations.GetReplica,
        document_operations.Exists,
        document_operations.Unlock,
        LookupIn,
        LookupInReplica,
    }

    assert reads == {kind for kind in kinds if not issubclass(kind, CHANGES_CAS)}


@pytest.mark.parametrize(
    "operation",
    [
        upsert(expiry=10),
        touch(10),
        document_operations.GetAndTouch(HOTELS, "ada", 10),
        document_operations.Increment(HOTELS, "ada", 1, 1 << 48, 10),
    ],
    ids=named,
)
def test_expiry(operation: document_operations.DocumentOperation) -> None:
    """A document may expire at its expiry after the submission, and has expired at its expiry after the application."""
    begun = submission(operation)

    assert (at(11), (math.inf, 0)) == begun.expiry()

    begun.was_applied((3.0, 5))

    assert (at(11), at(13)) == begun.expiry()


@pytest.mark.parametrize("operation", [upsert(), touch(), increment(), lock(), get(), exists(), remove()], ids=named)
def test_no_expiry(operation: document_operations.DocumentOperation) -> None:
    """An operation without an expiry, or one that was not applied, lets nothing expire."""
    refused = submission(upsert(expiry=10))
    refused.is_void = True

    assert submission(operation).expiry() is refused.expiry() is None


def test_absolute_expiry() -> None:
    """An expiry above the maximum duration is a date: the document may expire immediately, with no known end."""
    relative = submission(upsert(expiry=RELATIVE_EXPIRY_MAX))
    absolute = submission(upsert(expiry=RELATIVE_EXPIRY_MAX + 1))
    for begun in (relative, absolute):
        begun.was_applied(at(2))

    assert (at(1 + RELATIVE_EXPIRY_MAX), at(2 + RELATIVE_EXPIRY_MAX)) == relative.expiry()
    assert (at(1), NEVER) == absolute.expiry()


def test_applied() -> None:
    """The earliest evidence gives the application time; an applied operation is over by then, unless it was over
    earlier.
    """
    begun, over = submission(document_operations.Insert(HOTELS, "ada", b"<1>", 0)), submission(upsert())
    for second in (5, 3, 4):
        begun.was_applied(at(second))
    over.over_by = at(2)
    over.was_applied(at(4))

    assert (at(3), at(3)) == (begun.applied_by, begun.over_by)
    assert (at(4), at(2)) == (over.applied_by, over.over_by)
