"""Call that reads all copies of a document: its operations, and its result if some operations fail.

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
"""Errors of an absent copy: the copy does not have the document, or the map does not have the copy."""


class ReplicaReads(Generic[R]):
    """``FanOut`` that reads the copies of a document, and delivers them in the order in which they arrive.

    Args:
        reads: one read of each possible copy, the active copy first. The call omits reads of replicas that the bucket
            does not have. Without a map, the number of replicas is unknown, and excess reads fail once a map arrives.
        as_copy: function that converts the result of a read to the item to deliver.
        first_only: whether the call ends with the first copy, and fails if there is no copy.
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
        """Errors of failed reads, by number of the copy."""
        self._ending: Exception | None = None
        """Exception from the driver, not a ``CouchbaseException``, that ended the call; None if there was none."""

    @property
    def errors(self) -> tuple[CouchbaseException, ...]:
        """Errors of the reads that have failed so far, that of the active copy first."""
        return tuple(self._errors[copy] for copy in sorted(self._errors))

    @property
    def is_over(self) -> bool:
        """Whether the call needs no further copy, or no further copy will arrive."""
        return not self._unsettled or self._ending is not None or (self._first_only and self._is_found)

    @property
    def failure(self) -> Exception | None:
        """Exception to raise at the end of the call; None if the call succeeds, possibly without a copy.

        An exception from the driver comes first. Otherwise, if no copy was found, this is the first error other than
        that of an absent copy. With ``first_only`` and all copies absent, it is ``DocumentUnretrievableException``.
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
        """Return the reads of all copies that the bucket may have. Further calls return no operations."""
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
            # Ignore the error of a read of a replica that the bucket does not have.
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
        """Return no operations, because nodes keep no state for a read."""
        return ()


def whole_document_reads(
    keyspace: Keyspace, key: str, transcoder: Transcoder = JSON_TRANSCODER, *, first_only: bool = False
) -> ReplicaReads[results.GetReplicaResult]:
    """Return reads of a document from the active copy and from each replica that a bucket can have.

    Raises:
        InvalidArgumentException: an argument is invalid.
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
        InvalidArgumentException: an argument is invalid.
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
