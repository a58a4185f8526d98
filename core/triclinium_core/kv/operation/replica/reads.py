"""Read of all copies of a document: its operations, and its result if some of them fail.

Source: SDK-RFC 0053 "GetAnyReplica", "GetAllReplicas"; SDK-RFC 0076; decision D13.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from triclinium_core.errors import CouchbaseException, DocumentNotFoundException, DocumentUnretrievableException
from triclinium_core.kv.operation import results
from triclinium_core.kv.operation.document_operations import JSON_TRANSCODER, Get, GetReplica, Keyspace, Operation
from triclinium_core.kv.operation.replica.replica_requests import LookupInReplica
from triclinium_core.kv.operation.subdocument.specs import LookupInSpec, check_specs
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn
from triclinium_core.kv.operation.validation import REPLICAS_MAX
from triclinium_core.retry.couchbase import subject
from triclinium_core.transcoding.transcoder import Transcoder

R = TypeVar("R")

_REPLICAS = range(1, REPLICAS_MAX + 1)
_ABSENT = (DocumentNotFoundException, DocumentUnretrievableException)
"""Errors that mean only that a copy is absent: the copy lacks the document, or the map lacks the copy."""


class ReplicaReads(Generic[R]):
    """A ``FanOut`` that reads the copies of a document and delivers them in the order in which they arrive.

    Args:
        reads: one read of each possible copy, the active one first. Reads of replicas that the bucket does not keep are
            omitted. Without a map, the number of replicas is unknown, and the excess reads fail once there is a map.
        as_copy: converts the result of a read to a copy.
        first_only: whether the first copy ends the call, and finding no copy is a failure.
    """

    wakeup: float = math.inf

    def __init__(self, reads: Sequence[Operation], as_copy: Callable[[object], R], *, first_only: bool) -> None:
        self.bucket: str | None = reads[0].keyspace.bucket
        self._as_copy = as_copy
        self._first_only = first_only
        self._unsent = reads
        self._unsettled = len(reads)
        self._arrived: list[R] = []
        self._is_found = False
        self._errors: dict[int, CouchbaseException] = {}
        """Errors by number of the copy."""
        self._ending: Exception | None = None
        """Exception of the driver."""

    @property
    def errors(self) -> tuple[CouchbaseException, ...]:
        """Errors of the copies that could not be read so far, the active one first."""
        return tuple(self._errors[copy] for copy in sorted(self._errors))

    @property
    def is_over(self) -> bool:
        """Whether no further copy is needed or will arrive."""
        return not self._unsettled or self._ending is not None or (self._first_only and self._is_found)

    @property
    def failure(self) -> Exception | None:
        """Exception of the driver, or the first error other than an absent copy if no copy was found.

        With ``first_only``, ``DocumentUnretrievableException`` if all copies are absent. None in all other cases.
        """
        if self._ending is not None or self._is_found or not self.is_over:
            return self._ending
        failure = next((error for error in self.errors if not isinstance(error, _ABSENT)), None)
        if failure is not None or not self._first_only:
            return failure
        context = self.errors[0].context
        return DocumentUnretrievableException(
            f"{subject(context)}: neither the active copy nor a replica has the document", context
        )

    def next_operations(self, now: float, *, replicas: int | None = None) -> Sequence[Operation]:
        """Return the reads of all copies that the bucket may have, once."""
        reads, self._unsent = self._unsent, ()
        unsent = tuple(read for read in reads if replicas is None or read.copy <= replicas)
        self._unsettled -= len(reads) - len(unsent)
        return unsent

    def settled(self, operation: Operation, outcome: object, *, vbuckets: int, replicas: int | None) -> None:
        """Record the outcome of a read."""
        if self.is_over:
            return
        self._unsettled -= 1
        if isinstance(outcome, CouchbaseException):
            # A copy that the bucket does not keep is not missing.
            if replicas is None or operation.copy <= replicas:
                self._errors[operation.copy] = outcome
        elif isinstance(outcome, Exception):
            self._ending = outcome
        else:
            self._is_found = True
            self._arrived.append(self._as_copy(outcome))

    def take(self) -> Sequence[R]:
        """Return the copies that have arrived since the last call."""
        arrived, self._arrived = self._arrived, []
        return arrived

    def close(self) -> Sequence[Operation]:
        """Return no operations: nodes keep no state for a read."""
        return ()


def whole_document_reads(
    keyspace: Keyspace, key: str, transcoder: Transcoder = JSON_TRANSCODER, *, first_only: bool = False
) -> ReplicaReads[results.GetReplicaResult]:
    """Return reads of a document from the active copy and from each replica that a bucket can have.

    Raises:
        InvalidArgumentException: an argument is wrong.
    """
    replicas = (GetReplica(keyspace, key, replica, transcoder) for replica in _REPLICAS)
    return ReplicaReads((Get(keyspace, key, transcoder), *replicas), _as_copy, first_only=first_only)


def partial_reads(
    keyspace: Keyspace,
    key: str,
    specs: Sequence[LookupInSpec],
    transcoder: Transcoder = JSON_TRANSCODER,
    *,
    first_only: bool = False,
) -> ReplicaReads[results.LookupInReplicaResult]:
    """Return lookups of parts of a document in the active copy and in each replica that a bucket can have.

    Raises:
        InvalidArgumentException: an argument is wrong.
    """
    checked = check_specs(specs, LookupInSpec)
    replicas = (LookupInReplica(keyspace, key, checked, False, transcoder, replica) for replica in _REPLICAS)
    active = LookupIn(keyspace, key, checked, False, transcoder)
    return ReplicaReads((active, *replicas), _as_partial_copy, first_only=first_only)


def _as_copy(result: object) -> results.GetReplicaResult:
    if isinstance(result, results.GetReplicaResult):
        return result
    assert isinstance(result, results.GetResult)
    return results.GetReplicaResult(result.cas, result.flags, result.data, result.transcoder, is_replica=False)


def _as_partial_copy(result: object) -> results.LookupInReplicaResult:
    assert isinstance(result, results.LookupInResult)
    return (
        result
        if isinstance(result, results.LookupInReplicaResult)
        else results.as_lookup_of_copy(result, is_replica=False)
    )
