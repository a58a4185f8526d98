"""Model of the documents, which determines the results that callers may still receive.

Theory of operation. An operation is applied, if at all, at one instant after its submission: before its settlement if
it was acknowledged, otherwise at any time. So each operation is an interval, and a document's history is a set of
intervals. A write that may have been applied adds to the contents that a reader may find. A write that was certainly
applied, because it was acknowledged or a reader saw it, removes the contents of writes that ended before it began. If a
reader finds other contents, the result is wrong, and the model raises ``Violation``.

The model sees only submissions and settlements, not nodes or bytes, so it fits any driver.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from triclinium_core import errors
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.results import (
    Cas,
    CounterResult,
    ExistsResult,
    GetResult,
    LookupInResult,
    MutateInResult,
    MutationResult,
    Result,
)
from triclinium_core.kv.operation.subdocument.subdocument_requests import MutateIn
from triclinium_core.retry.couchbase import may_be_applied
from triclinium_core.testing.fakes.store.documents import LOCKED_CAS
from triclinium_core.testing.oracle import unique_lists, unique_values
from triclinium_core.testing.oracle.document_history import DocumentHistory
from triclinium_core.testing.oracle.submissions import Instant, Place, Submission, Violation

DROP = 0
"""Token for the removal of a document because its collection was dropped, without an operation."""


class Lock(NamedTuple):
    """A lock that a caller certainly holds. No other caller can change the document before the time ``until``."""

    cas: Cas
    until: float


class Model:
    """History of all documents, as the callers of all clients see it.

    Feed the model the operations and results of callers: it raises ``Violation`` if no history allows a result. Values
    must come from ``unique_values``, so that a document identifies its writers, and only these callers may write. The
    owner sets ``now`` to the time in seconds.
    """

    def __init__(self) -> None:
        self.unique_values: unique_values.UniqueValues = unique_values.UniqueValues()
        self.now: float = 0.0
        self.submissions: dict[int, Submission] = {}
        self._histories: defaultdict[Place, DocumentHistory] = defaultdict(DocumentHistory)
        self._by_fragment: dict[bytes, Submission] = {}
        self._counts: list[Submission] = []
        self._locks: dict[Place, Lock] = {}
        self._steps = 0

    @property
    def open(self) -> Sequence[Submission]:
        """Operations with waiting callers, oldest first."""
        return [submission for submission in self.submissions.values() if submission.is_open]

    @property
    def locks(self) -> Mapping[Place, Lock]:
        """Locks that are certainly held."""
        return {place: lock for place, lock in self._locks.items() if lock.until > self.now}

    def known_cas(self, place: Place) -> Sequence[Cas]:
        """Return the CAS values of a document that callers know, oldest first."""
        return self._histories[place].known_cas

    def may_be_locked(self, submission: Submission) -> bool:
        """Return whether the document may be locked while this operation is open."""
        return self._histories[submission.place].may_be_locked(submission)

    def submitted(self, token: int, operation: document_operations.Operation) -> Submission | None:
        """Record a submission with new values, and return the submission; None for an operation on no document."""
        if not isinstance(operation, document_operations.DocumentOperation):
            return None
        submission = Submission(token, operation, self.instant())
        self._record_value(submission)
        self.submissions[token] = submission
        self._histories[submission.place].submissions.append(submission)
        lock = self._locks.get(submission.place)
        if lock is not None and lock.cas == submission.cas:
            # The holder of the lock may change or unlock the document, which releases the lock.
            del self._locks[submission.place]
        return submission

    def completed(self, token: int, result: Result) -> None:
        """Record a success."""
        submission = self.submissions.get(token)
        if submission is None:
            return
        submission.settled = self.instant()
        history = self._histories[submission.place]
        _check_existence(history, submission, result)
        history.check_cas_was_current(submission)
        match result:
            case GetResult(cas, _, data):
                self._take_content(submission, data)
                self._take_cas(submission, cas, data)
            case CounterResult(content, cas):
                self._take_content(submission, b"%d" % content)
                self._take_cas(submission, cas, None)
            case MutationResult(cas) | MutateInResult(cas):
                self._take_cas(submission, cas, None)
            case LookupInResult():
                for data in unique_lists.lists_found(result):
                    self._take_content(submission, data)
            case _:
                pass
        submission.was_applied(submission.settled)
        if isinstance(submission.operation, document_operations.GetAndLock) and isinstance(result, GetResult):
            until = submission.begin[0] + submission.operation.lock_time
            self._locks[submission.place] = Lock(result.cas, min(until, history.exists_until(submission.begin)))

    def failed(self, token: int, error: errors.CouchbaseException) -> None:
        """Record a failure."""
        submission = self.submissions.get(token)
        if submission is None:
            return
        submission.settled = self.instant()
        if not may_be_applied(error):
            _void(submission)
        history = self._histories[submission.place]
        match error:
            case errors.DocumentNotFoundException():
                history.check_absent(submission)
            case errors.DocumentExistsException():
                history.check_present(submission)
            case errors.CasMismatchException() if not isinstance(submission.operation, document_operations.Unlock):
                history.check_cas_is_outdated(submission)
            case _:
                pass

    def abandoned(self, token: int, *, ambiguous: bool) -> None:
        """Record that a caller left; ``ambiguous`` means that the client reports the operation as possibly applied."""
        submission = self.submissions.get(token)
        if submission is not None and submission.is_open:
            submission.settled = self.instant()
            if not ambiguous:
                _void(submission)

    def dropped(self, keyspace: document_operations.Keyspace) -> None:
        """Record that a collection was dropped now, which removes every document in it."""
        for place, history in self._histories.items():
            if place.keyspace == keyspace:
                removal = Submission(DROP, document_operations.Remove(place.keyspace, place.key), self.instant())
                removal.settled = self.instant()
                removal.was_applied(removal.settled)
                history.submissions.append(removal)
                self._locks.pop(place, None)

    def quieted(self) -> None:
        """Record that nothing is in progress, so settled operations that are not applied yet never will be."""
        instant = self.instant()
        for submission in self.submissions.values():
            if not submission.is_open:
                submission.over_by = min(submission.over_by, instant)

    def instant(self) -> Instant:
        """Return the current instant, which is later than all instants returned before."""
        self._steps += 1
        return self.now, self._steps

    def _record_value(self, submission: Submission) -> None:
        operation, fragment = submission.operation, unique_lists.written_by(submission.operation)
        if isinstance(operation, document_operations.Count):
            if operation.delta != 4 ** len(self._counts):
                raise ValueError(
                    f"delta={operation.delta} must be the newest of model.unique_values.counter(); "
                    "in a rule, call submit_count, which uses it"
                )
            self._counts.append(submission)
        elif isinstance(operation, document_operations.Store | document_operations.Concatenate) or fragment is not None:
            if fragment is None or fragment in self._by_fragment:
                shown = getattr(operation, "value", fragment)
                raise ValueError(
                    f"value={shown!r} must be new and from model.unique_values.fragment(); "
                    "in a rule, call submit_document or submit_list, which use it"
                )
            self._by_fragment[fragment] = submission

    def _take_cas(self, submission: Submission, cas: Cas, data: bytes | None) -> None:
        if cas != LOCKED_CAS:
            self._histories[submission.place].learn_cas(submission, cas, data)

    def _take_content(self, reader: Submission, data: bytes) -> None:
        """Check the content of a document, and record that its writers were applied."""
        try:
            root, parts = self._read(data)
        except unique_values.Unreadable as error:
            raise Violation(f"{reader}: {error}") from error
        if isinstance(reader.operation, document_operations.Count) and reader is not root and reader not in parts:
            raise Violation(f"the result of {reader} lacks its own change")
        history = self._histories[reader.place]
        history.check_content(reader, root, parts)
        if reader is root and isinstance(reader.operation, document_operations.Count):
            history.check_absent(reader)
        root.created = True
        for writer in (root, *parts):
            writer.was_applied(reader.settled)

    def _read(self, data: bytes) -> tuple[Submission, Sequence[Submission]]:
        """Return the creator and the other writers of this content; raise ``Unreadable`` for impossible content."""
        if data.isdigit():
            signs = [1 if isinstance(count.operation, document_operations.Increment) else -1 for count in self._counts]
            position, applied = unique_values.read_counter(int(data), signs)
            return self._counts[position], [self._counts[other] for other in applied]
        is_list = data.startswith((b"{", b"["))
        fragments = unique_lists.read_list(data) if is_list else unique_values.read_fragments(data)
        unknown = [fragment for fragment in fragments if fragment not in self._by_fragment]
        if unknown:
            raise unique_values.Unreadable(f"{data!r} has {unknown[0]!r}, which was never written")
        writers = [self._by_fragment[fragment] for fragment in fragments]
        if is_list:
            root, *parts = writers
            if not root.may_create or not all(isinstance(part.operation, MutateIn) for part in parts):
                raise unique_values.Unreadable(f"the writes in {data!r} have an impossible order")
            return root, parts
        before = [writer for writer in writers if isinstance(writer.operation, document_operations.Prepend)]
        behind = [writer for writer in writers if isinstance(writer.operation, document_operations.Append)]
        root = writers[len(before)] if len(before) < len(writers) else writers[0]
        if not isinstance(root.operation, document_operations.Store) or writers != [*before, root, *behind]:
            raise unique_values.Unreadable(f"the writes in {data!r} have an impossible order")
        return root, [*before, *behind]


def _check_existence(history: DocumentHistory, submission: Submission, result: Result) -> None:
    """Check that the document may have existed, or may have been missing, if the result implies that."""
    operation = submission.operation
    if isinstance(operation, document_operations.Insert) or (isinstance(result, ExistsResult) and not result.exists):
        history.check_absent(submission)
    elif isinstance(operation, document_operations.Replace) or not submission.may_create:
        history.check_present(submission)


def _void(submission: Submission) -> None:
    if submission.applied_by < submission.settled:
        raise Violation(f"{submission} was found applied, but its error rules that out")
    submission.is_void = True
