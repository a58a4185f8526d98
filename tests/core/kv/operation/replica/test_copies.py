"""Reading all copies of a document: what is asked, and what it means when nobody has it."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict

from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import (
    CollectionNotFoundException,
    CouchbaseException,
    DocumentNotFoundException,
    DocumentUnretrievableException,
    UnambiguousTimeoutException,
)
from triclinium_core.kv.operation.replica.copies import (
    as_copy,
    as_partial_copy,
    failure_of,
    is_missed,
    partial_reads,
    unretrievable,
    whole_document_reads,
)
from triclinium_core.kv.operation.replica.requests import LookupInReplica
from triclinium_core.kv.operation.requests import Get, GetReplica, Keyspace
from triclinium_core.kv.operation.results import Cas, GetReplicaResult, GetResult, LookupInResult, as_lookup_of_copy
from triclinium_core.kv.operation.subdocument.requests import LookupIn
from triclinium_core.kv.operation.subdocument.specs import LookupInSpec
from triclinium_core.transcoding.transcoder import RawBinaryTranscoder

TRAVEL = Keyspace("travel")
RAW = RawBinaryTranscoder()
SPECS = (LookupInSpec.get("a"),)

MISSING = DocumentNotFoundException("missing", ErrorContext(operation="get", key="ada"))
NOWHERE = DocumentUnretrievableException("nowhere")
LATE = UnambiguousTimeoutException("late")
LOST = CollectionNotFoundException("lost")


def test_the_active_copy_and_as_many_replicas_as_there_can_be() -> None:
    """In the order of the map."""
    reads = whole_document_reads(TRAVEL, "ada", RAW)

    assert [Get(TRAVEL, "ada", RAW), *(GetReplica(TRAVEL, "ada", each, RAW) for each in (1, 2, 3))] == list(reads)
    assert [0, 1, 2, 3] == [read.copy for read in reads]


def test_parts_of_them() -> None:
    """Likewise."""
    reads = partial_reads(TRAVEL, "ada", SPECS, RAW)
    replicas = [LookupInReplica(TRAVEL, "ada", SPECS, False, RAW, each) for each in (1, 2, 3)]

    assert [LookupIn(TRAVEL, "ada", SPECS, False, RAW), *replicas] == list(reads)
    assert [0, 1, 2, 3] == [read.copy for read in reads]


def test_what_is_missed() -> None:
    """The active copy, and each replica that the bucket keeps, or may keep."""
    reads = whole_document_reads(TRAVEL, "ada")

    for replicas, missed in ((None, 4), (0, 1), (1, 2), (3, 4)):
        assert [True] * missed + [False] * (4 - missed) == [is_missed(read, replicas) for read in reads]


def test_a_copy_says_where_it_is_from() -> None:
    """What the read of the active copy returns does not by itself."""
    active = GetResult(Cas(5), 7, b"v", RAW)
    replica = GetReplicaResult(Cas(5), 7, b"v", RAW, is_replica=True)

    assert GetReplicaResult(Cas(5), 7, b"v", RAW, is_replica=False) == as_copy(active)
    assert replica is as_copy(replica)


def test_parts_of_a_copy_say_where_they_are_from() -> None:
    """And all else is as it was."""
    active = LookupInResult(Cas(5), SPECS, ((0, b"1"),), RAW, ErrorContext(), is_deleted=True)
    replica = as_lookup_of_copy(active, is_replica=True)

    assert [False, True] == [as_partial_copy(found).is_replica for found in (active, replica)]
    assert replica is as_partial_copy(replica)
    assert asdict(active) == {name: value for name, value in asdict(replica).items() if name != "is_replica"}


@pytest.mark.parametrize(
    ("errors", "failure"),
    [
        ([MISSING, NOWHERE, NOWHERE, NOWHERE], None),
        ([MISSING, MISSING, NOWHERE, NOWHERE], None),
        ([LATE, MISSING, NOWHERE, NOWHERE], LATE),
        ([MISSING, LATE, NOWHERE, NOWHERE], LATE),
        ([LOST, LATE, NOWHERE, NOWHERE], LOST),
        ([NOWHERE, LOST, LATE, NOWHERE], LOST),
    ],
    ids=lambda errors: "",
)
def test_why_there_is_none(errors: list[CouchbaseException], failure: CouchbaseException | None) -> None:
    """A copy that could not be asked may have it: the first failure that is more than an absence is told."""
    told = unretrievable(errors)

    assert failure is failure_of(errors)
    assert failure is None or failure is told


def test_no_copy_has_it() -> None:
    """The error tells of the document, and of the read of the active copy."""
    told = unretrievable([MISSING, NOWHERE, NOWHERE, NOWHERE])

    assert type(told) is DocumentUnretrievableException
    assert MISSING.context == told.context
    assert "get 'ada': neither it nor any of its replicas is there" == str(told)
