"""Operations of callers, and histories that a test composes from operations, their times and their known effects."""

from __future__ import annotations

from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.results import Cas
from triclinium_core.testing.oracle.document_history import DocumentHistory
from triclinium_core.testing.oracle.submissions import NEVER, Instant, Submission
from triclinium_core.transcoding.flags import BINARY_FLAGS

TRAVEL = document_operations.Keyspace("travel")
HOTELS = document_operations.Keyspace("travel", "inventory", "hotel")
HOTELS_ID = 8


def get(keyspace: document_operations.Keyspace = TRAVEL) -> document_operations.Get:
    """Return a read."""
    return document_operations.Get(keyspace, "ada")


def exists() -> document_operations.Exists:
    """Return an existence check."""
    return document_operations.Exists(TRAVEL, "ada")


def upsert(
    value: bytes = b"<1>",
    expiry: int = 0,
    *,
    preserve_expiry: bool = False,
    keyspace: document_operations.Keyspace = TRAVEL,
) -> document_operations.Upsert:
    """Return a write that creates the document if it does not exist."""
    return document_operations.Upsert(keyspace, "ada", value, BINARY_FLAGS, expiry, preserve_expiry)


def replace(cas: int = 0, value: bytes = b"<9>") -> document_operations.Replace:
    """Return a write to an existing document. Unless ``cas`` is 0, the document must have this CAS."""
    return document_operations.Replace(TRAVEL, "ada", value, BINARY_FLAGS, 0, False, Cas(cas))


def append(value: bytes = b"<2>") -> document_operations.Append:
    """Return an append."""
    return document_operations.Append(TRAVEL, "ada", value)


def prepend(value: bytes = b"<3>") -> document_operations.Prepend:
    """Return a prepend."""
    return document_operations.Prepend(TRAVEL, "ada", value)


def remove(cas: int = 0) -> document_operations.Remove:
    """Return a removal."""
    return document_operations.Remove(TRAVEL, "ada", Cas(cas))


def touch(expiry: int = 0) -> document_operations.Touch:
    """Return a touch with a new expiry; 0 removes the expiry."""
    return document_operations.Touch(TRAVEL, "ada", expiry)


def lock(seconds: int = 5) -> document_operations.GetAndLock:
    """Return a read that locks."""
    return document_operations.GetAndLock(TRAVEL, "ada", seconds)


def increment(initial: int | None = None, delta: int = 1) -> document_operations.Increment:
    """Return an increment, which creates a missing counter only if ``initial`` is given."""
    return document_operations.Increment(TRAVEL, "ada", delta, initial)


def named(value: object) -> str | None:
    """Return the id of a parameter: an operation's name, another object's class name, or None for a plain value."""
    if isinstance(value, document_operations.Operation):
        return value.name
    return None if isinstance(value, int | float | str | bytes | None) else type(value).__name__


def at(seconds: float) -> Instant:
    """Return the first instant at this time in seconds."""
    return seconds, 0


class Scene:
    """History of one document with the knowledge of its callers. Times are in seconds."""

    def __init__(self) -> None:
        self.history = DocumentHistory()

    def acknowledged(
        self, operation: document_operations.DocumentOperation, begin: float, settled: float
    ) -> Submission:
        """Add an operation that succeeded."""
        submission = self.asked(operation, begin, settled)
        submission.was_applied(at(settled))
        return submission

    def asked(self, operation: document_operations.DocumentOperation, begin: float, settled: float) -> Submission:
        """Add an operation with an unknown result, which may have been applied or may still be applied."""
        submission = Submission(len(self.history.submissions) + 1, operation, at(begin))
        submission.settled = at(settled)
        self.history.submissions.append(submission)
        return submission

    def refused(self, operation: document_operations.DocumentOperation, begin: float, settled: float) -> Submission:
        """Add an operation whose caller knows that it was not applied."""
        submission = self.asked(operation, begin, settled)
        submission.is_void = True
        return submission

    def waits(self, operation: document_operations.DocumentOperation, begin: float) -> Submission:
        """Add an operation whose caller still waits for its result."""
        submission = self.asked(operation, begin, 0)
        submission.settled = NEVER
        return submission
