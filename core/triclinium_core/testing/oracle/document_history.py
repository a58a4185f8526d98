"""Possible states of one document, with which each result that a caller gets is compared.

A *reader* is an operation whose caller got a result or an error. ``Submission`` defines all times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from triclinium_core.kv.operation.document_operations import Concatenate, Count, GetAndLock, GetAndTouch, Remove, Touch
from triclinium_core.kv.operation.results import Cas
from triclinium_core.kv.operation.subdocument.subdocument_requests import MutateIn
from triclinium_core.testing.oracle.submissions import BEFORE_ALL, CHANGES_CAS, Instant, Submission, Violation
from triclinium_core.testing.oracle.unique_lists import written_by


class _Version(NamedTuple):
    """Version of a document with a known CAS."""

    begin: Instant
    """Submission time of the first operation that returned this version."""
    settled: Instant
    """Time at which a caller first got this version."""
    data: bytes | None = None
    mutation: Submission | None = None
    """Operation that created this version; None if only reads returned it."""


class DocumentHistory:
    """All operations on one document, in order of submission."""

    def __init__(self) -> None:
        self.submissions: list[Submission] = []
        self._versions: dict[int, _Version] = {}

    @property
    def known_cas(self) -> Sequence[Cas]:
        """CAS values from results, oldest first."""
        return [Cas(cas) for cas in self._versions]

    def check_absent(self, reader: Submission) -> None:
        """Raise ``Violation`` if the document certainly existed."""
        if not self._is_over(BEFORE_ALL, reader):
            return
        for other in self._others(reader):
            if isinstance(other.operation, Remove) and not self._is_over(other.over_by, reader):
                return
            expiry = other.expiry()
            if expiry is not None and self._may_have_expired(other, expiry, reader):
                return
        raise Violation(f"{reader} found no document, but one certainly existed")

    def check_present(self, reader: Submission) -> None:
        """Raise ``Violation`` if the document certainly did not exist."""
        if not any(other.may_create and not self._is_over(other.over_by, reader) for other in self._others(reader)):
            raise Violation(f"{reader} found a document, but certainly none existed")

    def check_content(self, reader: Submission, root: Submission, parts: Iterable[Submission]) -> None:
        """Raise ``Violation`` unless the document may have been created by ``root`` and then changed by ``parts``."""
        seen = {root, *parts}
        for writer in seen:
            if writer.is_void or writer.place != reader.place:
                raise Violation(f"{reader} found {writer}, which was never applied to this document")
        if self._is_over(root.over_by, reader):
            raise Violation(f"{reader} found the value of {root}, which was certainly replaced")
        for writer in self._others(reader):
            is_part = not writer.created and (
                isinstance(writer.operation, Concatenate | Count)
                or (isinstance(writer.operation, MutateIn) and written_by(writer.operation) is not None)
            )
            if is_part and writer not in seen and writer.begin > root.over_by and writer.applied_by < reader.begin:
                raise Violation(f"{reader} did not find {writer}, which was certainly applied")

    def check_cas_was_current(self, reader: Submission) -> None:
        """Raise ``Violation`` unless the CAS of ``reader`` may have been current."""
        version = self._versions.get(reader.cas)
        if version is None:
            return
        for other in self._others(reader):
            is_change = isinstance(other.operation, CHANGES_CAS)
            if is_change and other.begin > version.settled and other.applied_by < reader.begin:
                raise Violation(f"{reader} succeeded with a CAS that {other} had replaced")

    def check_cas_is_outdated(self, reader: Submission) -> None:
        """Raise ``Violation`` unless the CAS of ``reader`` may have been replaced."""
        version = self._versions.get(reader.cas)
        if version is None:
            return
        for other in self._others(reader):
            is_another_change = isinstance(other.operation, CHANGES_CAS) and other is not version.mutation
            if is_another_change and other.over_by > version.begin:
                return
        raise Violation(f"{reader} got a CAS mismatch, but the document was not changed")

    def learn_cas(self, reader: Submission, cas: int, data: bytes | None) -> None:
        """Record a CAS that ``reader`` got; raise ``Violation`` if the CAS belongs to another version."""
        mutation = reader if isinstance(reader.operation, CHANGES_CAS) else None
        version = _Version(reader.begin, reader.settled, data, mutation)
        known = self._versions.get(cas)
        if known is not None:
            if known.data is not None and data is not None and known.data != data:
                raise Violation(f"{reader}: CAS {cas} belongs to {known.data!r}, not to {data!r}")
            if known.mutation is not None and mutation is not None:
                raise Violation(f"{reader} got CAS {cas}, which belongs to {known.mutation}")
            version = _Version(
                min(known.begin, reader.begin), known.settled, known.data or data, known.mutation or mutation
            )
        self._versions[cas] = version

    def may_be_locked(self, reader: Submission) -> bool:
        """Return whether the document may be locked while ``reader`` is open."""
        return any(
            isinstance(other.operation, GetAndLock)
            and other.begin < reader.settled
            and other.over_by[0] + other.operation.lock_time >= reader.begin[0]
            for other in self._others(reader)
        )

    def exists_until(self, since: Instant) -> float:
        """Return the time in seconds until which a document that existed at ``since`` cannot expire, or infinity."""
        expiries = [expiry for other in self.submissions if (expiry := other.expiry()) is not None]
        return min((begin[0] for begin, end in expiries if end > since), default=float("inf"))

    def _others(self, reader: Submission) -> Iterator[Submission]:
        return (other for other in self.submissions if other is not reader and not other.is_void)

    def _is_over(self, instant: Instant, reader: Submission) -> bool:
        """Return whether a state that lasted until ``instant`` had certainly ended before ``reader`` began."""
        return any(
            other.begin > instant and other.applied_by < reader.begin
            for other in self._others(reader)
            if other.created or isinstance(other.operation, Remove)
        )

    def _may_have_expired(self, owner: Submission, expiry: tuple[Instant, Instant], reader: Submission) -> bool:
        begin, end = expiry
        if begin > reader.settled or self._is_over(end, reader):
            return False
        # A write after ``owner`` and before the expiry replaces or removes the expiry, unless the write preserves it.
        return not any(
            other.begin > owner.over_by and other.applied_by < begin
            for other in self._others(reader)
            if other.created or isinstance(other.operation, Touch | GetAndTouch | Remove)
            if not getattr(other.operation, "preserve_expiry", False)
        )
