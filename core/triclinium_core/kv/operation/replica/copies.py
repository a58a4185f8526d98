"""All copies of one document: the requests that read them, and what it means when some of them do not succeed.

Source: SDK-RFC 0053 "GetAnyReplica", "GetAllReplicas"; SDK-RFC 0076.
"""

from __future__ import annotations

from collections.abc import Sequence

from triclinium_core.errors import CouchbaseException, DocumentNotFoundException, DocumentUnretrievableException
from triclinium_core.kv.operation.replica.requests import LookupInReplica
from triclinium_core.kv.operation.requests import JSON_TRANSCODER, Get, GetReplica, Keyspace, Operation
from triclinium_core.kv.operation.results import (
    GetReplicaResult,
    GetResult,
    LookupInReplicaResult,
    LookupInResult,
    as_lookup_of_copy,
)
from triclinium_core.kv.operation.subdocument.requests import LookupIn
from triclinium_core.kv.operation.subdocument.specs import LookupInSpec
from triclinium_core.kv.operation.validation import REPLICAS_MAX
from triclinium_core.retry.couchbase.failures import subject
from triclinium_core.transcoding.transcoder import Transcoder

_REPLICAS = range(1, REPLICAS_MAX + 1)
_ABSENT = (DocumentNotFoundException, DocumentUnretrievableException)
"""What says no more than that there is nothing to be read: the copy lacks the document, or the map lacks the copy."""


def whole_document_reads(keyspace: Keyspace, key: str, transcoder: Transcoder = JSON_TRANSCODER) -> Sequence[Operation]:
    """Return a read of the active copy, and one of each replica that a bucket can have.

    How many there are is not known before there is a map; what asks for one too many fails at once.

    Raises:
        InvalidArgumentException: an argument is wrong.
    """
    replicas = [GetReplica(keyspace, key, replica, transcoder) for replica in _REPLICAS]
    return (Get(keyspace, key, transcoder), *replicas)


def partial_reads(
    keyspace: Keyspace, key: str, specs: tuple[LookupInSpec, ...], transcoder: Transcoder = JSON_TRANSCODER
) -> Sequence[Operation]:
    """Return a lookup of parts in the active copy, and one in each replica that a bucket can have.

    Raises:
        InvalidArgumentException: an argument is wrong.
    """
    replicas = [LookupInReplica(keyspace, key, specs, False, transcoder, replica) for replica in _REPLICAS]
    return (LookupIn(keyspace, key, specs, False, transcoder), *replicas)


def as_copy(result: GetResult) -> GetReplicaResult:
    """Return what was read as one copy of several."""
    if isinstance(result, GetReplicaResult):
        return result
    return GetReplicaResult(result.cas, result.flags, result.data, result.transcoder, is_replica=False)


def as_partial_copy(result: LookupInResult) -> LookupInReplicaResult:
    """Return what was read of one copy of several."""
    return result if isinstance(result, LookupInReplicaResult) else as_lookup_of_copy(result, is_replica=False)


def is_missed(read: Operation, replicas: int | None) -> bool:
    """Tell whether a copy that could not be read is one that there should be.

    Args:
        replicas: how many the bucket keeps of each document; None where that is not known.
    """
    return replicas is None or read.copy <= replicas


def failure_of(errors: Sequence[CouchbaseException]) -> CouchbaseException | None:
    """Return why no copy could be read; None where none of them is there.

    Args:
        errors: what came of the reads, of which none succeeded.
    """
    return next((error for error in errors if not isinstance(error, _ABSENT)), None)


def unretrievable(errors: Sequence[CouchbaseException]) -> CouchbaseException:
    """Return what a reader of any copy is told when there is none to be had.

    Args:
        errors: what came of the reads, of which none succeeded.
    """
    failure = failure_of(errors)
    if failure is not None:
        return failure
    context = errors[0].context
    return DocumentUnretrievableException(f"{subject(context)}: neither it nor any of its replicas is there", context)
