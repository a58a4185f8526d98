"""Reads of all copies of a document: the operations, the results, and the errors if no copy exists."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.document_operations import Get, GetReplica, Keyspace
from triclinium_core.kv.operation.fan_out import FanOut
from triclinium_core.kv.operation.replica.reads import ReplicaReads, partial_reads, whole_document_reads
from triclinium_core.kv.operation.replica.replica_requests import LookupInReplica
from triclinium_core.kv.operation.results import Cas, GetReplicaResult, GetResult, LookupInResult, as_lookup_of_copy
from triclinium_core.kv.operation.subdocument.specs import LookupInSpec
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn
from triclinium_core.transcoding.transcoder import RawBinaryTranscoder

TRAVEL = Keyspace("travel")
RAW = RawBinaryTranscoder()
SPECS = (LookupInSpec.get("a"),)

MISSING = errors.DocumentNotFoundException("missing", ErrorContext(operation="get", key="ada"))
NOWHERE = errors.DocumentUnretrievableException("nowhere", ErrorContext(operation="get_replica", key="ada"))
LATE = errors.UnambiguousTimeoutException("late")
LOST = errors.CollectionNotFoundException("lost")
CLOSED = RuntimeError("the driver is closed")
ABSENT = (errors.DocumentNotFoundException, errors.DocumentUnretrievableException)


def found(copy: int) -> GetReplicaResult:
    """Return the result of a successful read of this copy."""
    return GetReplicaResult(Cas(5), 7, b"%d" % copy, RAW, is_replica=copy > 0)


def read(
    outcomes: Sequence[Exception], *, first_only: bool, replicas: int | None = 3
) -> ReplicaReads[GetReplicaResult]:
    """Return reads of all copies, which failed with ``outcomes`` in the order of the copies."""
    reads = whole_document_reads(TRAVEL, "ada", RAW, first_only=first_only)
    for operation, outcome in zip(reads.next_operations(0.0), outcomes, strict=True):
        reads.settled(operation, outcome, vbuckets=128, replicas=replicas)
    return reads


def test_all_possible_copies_are_read() -> None:
    """The first operations read the active copy and all possible replicas, in order and once each."""
    reads = whole_document_reads(TRAVEL, "ada", RAW)
    asked = reads.next_operations(0.0)

    assert [Get(TRAVEL, "ada", RAW), *(GetReplica(TRAVEL, "ada", each, RAW) for each in (1, 2, 3))] == list(asked)
    assert [0, 1, 2, 3] == [read.copy for read in asked]
    assert [(), (), ()] == [reads.next_operations(9.0), tuple(reads.take()), reads.close()]


@pytest.mark.parametrize("replicas", [0, 1, 3])
def test_missing_replicas_are_not_read(replicas: int) -> None:
    """If the number of replicas is known, only existing copies are read, and the reads end with the last of them."""
    reads = whole_document_reads(TRAVEL, "ada", RAW, first_only=True)
    asked = reads.next_operations(0.0, replicas=replicas)
    for operation in asked:
        assert not reads.is_over
        reads.settled(operation, MISSING, vbuckets=128, replicas=replicas)

    assert list(range(replicas + 1)) == [read.copy for read in asked]
    assert reads.is_over
    assert isinstance(reads.failure, errors.DocumentUnretrievableException)


def test_results_have_is_replica() -> None:
    """The result of a read has ``is_replica``: False for the active copy and True for a replica."""
    reads = whole_document_reads(TRAVEL, "ada", RAW)
    active, replica, *_ = reads.next_operations(0.0)
    reads.settled(replica, found(1), vbuckets=128, replicas=3)
    reads.settled(active, GetResult(Cas(5), 7, b"0", RAW), vbuckets=128, replicas=3)

    assert [found(1), found(0)] == list(reads.take())


def test_parts_of_all_copies() -> None:
    """A sub-document lookup in all copies sends one operation per copy; each result has ``is_replica``."""
    reads = partial_reads(TRAVEL, "ada", SPECS, RAW)
    asked = reads.next_operations(0.0)
    result = LookupInResult(Cas(5), SPECS, ((0, b"1"),), RAW, ErrorContext(), is_deleted=True)
    reads.settled(asked[0], result, vbuckets=128, replicas=3)
    reads.settled(asked[1], as_lookup_of_copy(result, is_replica=True), vbuckets=128, replicas=3)
    replicas = [LookupInReplica(TRAVEL, "ada", SPECS, False, RAW, each) for each in (1, 2, 3)]

    assert [LookupIn(TRAVEL, "ada", SPECS, False, RAW), *replicas] == list(asked)
    assert [as_lookup_of_copy(result, is_replica=each) for each in (False, True)] == list(reads.take())


def test_no_copy_has_it() -> None:
    """If no copy exists, a read of any copy fails with the context of the read of the active copy."""
    reported = read([MISSING, NOWHERE, NOWHERE, NOWHERE], first_only=True).failure

    assert isinstance(reported, errors.DocumentUnretrievableException)
    assert MISSING.context == reported.context
    assert "nor a replica" in str(reported)


@pytest.mark.parametrize(("replicas", "missed"), [(None, 4), (0, 1), (1, 2), (3, 4)])
def test_missing_copies_in_errors(replicas: int | None, missed: int) -> None:
    """``errors`` has one error for the active copy and one for each replica that the bucket has or may have."""
    reads = read([MISSING, NOWHERE, NOWHERE, NOWHERE], first_only=False, replicas=replicas)

    assert (MISSING, NOWHERE, NOWHERE, NOWHERE)[:missed] == reads.errors


OUTCOMES = st.sampled_from([None, None, MISSING, NOWHERE, LATE, LOST, CLOSED])


@given(st.permutations(range(4)), st.lists(OUTCOMES, min_size=4, max_size=4), st.booleans(), st.data())
def test_any_outcomes_in_any_order(
    order: list[int], outcomes: list[Exception | None], first_only: bool, data: st.DataObject
) -> None:
    """Each copy is returned once, in order of arrival; reads fail only without a copy or if the driver is closed."""
    reads: FanOut[GetReplicaResult] = whole_document_reads(TRAVEL, "ada", RAW, first_only=first_only)
    asked = reads.next_operations(0.0)
    taken: list[GetReplicaResult] = []
    expected: list[GetReplicaResult] = []
    ending: Exception | None = None
    for copy in order:
        was_over, outcome = reads.is_over, outcomes[copy]
        assert was_over == (ending is not None or (first_only and expected != []))
        assert reads.failure is ending
        reads.settled(asked[copy], outcome or found(copy), vbuckets=128, replicas=3)
        if not was_over and outcome is None:
            expected.append(found(copy))
        elif not was_over and outcome is CLOSED:
            ending = CLOSED
        if data.draw(st.booleans()):
            taken += reads.take()
    taken += reads.take()

    assert expected == taken
    assert reads.is_over
    if ending is not None or expected:
        assert reads.failure is ending
    else:
        first = next((each for each in outcomes if not isinstance(each, ABSENT)), None)
        assert reads.failure is first or (first is None and first_only)
        assert (reads.failure is None) == (first is None and not first_only)
