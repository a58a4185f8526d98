"""What callers ask for, and histories made by hand: when each operation was asked for, and what is certain of it."""

from __future__ import annotations

from triclinium_core.kv.operation.document_operations import (
    Append,
    DocumentOperation,
    Exists,
    Get,
    GetAndLock,
    Increment,
    Keyspace,
    Operation,
    Prepend,
    Remove,
    Replace,
    Touch,
    Upsert,
)
from triclinium_core.kv.operation.results import Cas
from triclinium_core.testing.oracle.document_history import DocumentHistory
from triclinium_core.testing.oracle.submissions import NEVER, Instant, Submission
from triclinium_core.transcoding.flags import BINARY_FLAGS

TRAVEL = Keyspace("travel")
HOTELS = Keyspace("travel", "inventory", "hotel")
HOTELS_ID = 8


def get(keyspace: Keyspace = TRAVEL) -> Get:
    """Return a read."""
    return Get(keyspace, "ada")


def exists() -> Exists:
    """Return a question."""
    return Exists(TRAVEL, "ada")


def upsert(
    value: bytes = b"<1>", expiry: int = 0, *, preserve_expiry: bool = False, keyspace: Keyspace = TRAVEL
) -> Upsert:
    """Return a write that creates the document where there is none."""
    return Upsert(keyspace, "ada", value, BINARY_FLAGS, expiry, preserve_expiry)


def replace(cas: int = 0, value: bytes = b"<9>") -> Replace:
    """Return a write that needs a document, of this version unless 0."""
    return Replace(TRAVEL, "ada", value, BINARY_FLAGS, 0, False, Cas(cas))


def append(value: bytes = b"<2>") -> Append:
    """Return a write of a part."""
    return Append(TRAVEL, "ada", value)


def prepend(value: bytes = b"<3>") -> Prepend:
    """Return a write of a part in front."""
    return Prepend(TRAVEL, "ada", value)


def remove(cas: int = 0) -> Remove:
    """Return a removal."""
    return Remove(TRAVEL, "ada", Cas(cas))


def touch(expiry: int = 0) -> Touch:
    """Return a new expiry; none where it is 0."""
    return Touch(TRAVEL, "ada", expiry)


def lock(seconds: int = 5) -> GetAndLock:
    """Return a read that locks."""
    return GetAndLock(TRAVEL, "ada", seconds)


def increment(initial: int | None = None, delta: int = 1) -> Increment:
    """Return a count, which creates the document only where it has an initial value."""
    return Increment(TRAVEL, "ada", delta, initial)


def named(value: object) -> str | None:
    """Return the id of a parameter: the word for an operation, the class of another object, None for a plain value."""
    if isinstance(value, Operation):
        return value.name
    return None if isinstance(value, int | float | str | bytes | None) else type(value).__name__


def at(seconds: float) -> Instant:
    """Return the moment at which a second begins."""
    return seconds, 0


class Scene:
    """The history of one document, as its callers know it; times are seconds."""

    def __init__(self) -> None:
        self.history = DocumentHistory()

    def acknowledged(self, operation: DocumentOperation, begin: float, settled: float) -> Submission:
        """Add an operation whose caller was told of success."""
        submission = self.asked(operation, begin, settled)
        submission.was_applied(at(settled))
        return submission

    def asked(self, operation: DocumentOperation, begin: float, settled: float) -> Submission:
        """Add an operation of which nobody knows whether it has been applied, or ever will be."""
        submission = Submission(len(self.history.submissions) + 1, operation, at(begin))
        submission.settled = at(settled)
        self.history.submissions.append(submission)
        return submission

    def refused(self, operation: DocumentOperation, begin: float, settled: float) -> Submission:
        """Add an operation whose caller was told that it was not applied."""
        submission = self.asked(operation, begin, settled)
        submission.is_void = True
        return submission

    def waits(self, operation: DocumentOperation, begin: float) -> Submission:
        """Add an operation whose caller waits."""
        submission = self.asked(operation, begin, 0)
        submission.settled = NEVER
        return submission
