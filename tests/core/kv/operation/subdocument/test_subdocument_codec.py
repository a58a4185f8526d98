"""Codec of sub-document operations: order of specs, limits, required features and malformed responses."""

from __future__ import annotations

import struct

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.core.kv.operation.test_operation_codec import ALL_FEATURES, encode, mutations, parts, response
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation.codec_parts import Dialect, MalformedResponse
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.operation_codec import decode_response
from triclinium_core.kv.operation.results import LookupInResult, MutateInResult, MutationToken
from triclinium_core.kv.operation.subdocument.specs import LookupInSpec, MutateInSpec, MutationMacro, StoreSemantics
from triclinium_core.kv.operation.subdocument.subdocument_codec import wire_order
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn
from triclinium_core.kv.wire.constants import KEY_SIZE_MAX, VALUE_SIZE_MAX, HelloFeature, Opcode
from triclinium_core.kv.wire.subdocument import MUTATION_SPEC, MUTATIONS_SIZE_MAX
from triclinium_core.retry.couchbase import Status
from triclinium_core.transcoding.transcoder import RawBinaryTranscoder

TRAVEL = Keyspace("travel")
EVERYTHING = Dialect(ALL_FEATURES)
SPECS = (
    LookupInSpec.get("b1"),
    LookupInSpec.get("x1", xattr=True),
    LookupInSpec.exists("b2"),
    LookupInSpec.count("x2", xattr=True),
)
LOOKUP = LookupIn(TRAVEL, "ada", SPECS)
MUTATION = MutateIn(
    TRAVEL,
    "ada",
    mutations(
        MutateInSpec.increment("b1"),
        MutateInSpec.increment("x1", xattr=True),
        MutateInSpec.upsert("b2", 1),
        MutateInSpec.upsert("x2", MutationMacro.CAS),
    ),
)


def outcome(status: int, value: bytes = b"") -> bytes:
    """Return the outcome of a spec, encoded as in a lookup response."""
    return struct.pack(">HI", status, len(value)) + value


def returned(index: int, value: bytes, status: int = 0) -> bytes:
    """Return the outcome of a spec, encoded as in a mutation response."""
    return struct.pack(">BHI", index, status, len(value)) + value


def look_up(body: bytes, status: int = 0) -> LookupInResult:
    """Return the result of a lookup whose response has this body."""
    result = decode_response(LOOKUP, response(Opcode.SUBDOC_MULTI_LOOKUP, status=status, cas=9, value=body), vbucket=7)
    assert isinstance(result, LookupInResult)
    return result


def mutate(body: bytes, status: int = 0, extras: bytes = b"") -> MutateInResult:
    """Return the result of a mutation whose response has this body."""
    frame = response(Opcode.SUBDOC_MULTI_MUTATION, status=status, cas=9, value=body, extras=extras)
    result = decode_response(MUTATION, frame, vbucket=7)
    assert isinstance(result, MutateInResult)
    return result


def test_the_largest_mutation() -> None:
    """A mutation of the maximum size can be encoded with all other parts; one more byte fails its constructor."""
    values = [bytes(VALUE_SIZE_MAX), bytes(MUTATIONS_SIZE_MAX - VALUE_SIZE_MAX - 2 * (MUTATION_SPEC.size + 1))]
    specs = tuple(MutateInSpec.upsert("a", value).encode(RawBinaryTranscoder()) for value in values)
    largest = MutateIn(
        TRAVEL,
        "k" * KEY_SIZE_MAX,
        specs,
        expiry=1,
        preserve_expiry=True,
        store_semantics=StoreSemantics.UPSERT,
        durability=DurabilityLevel.MAJORITY,
    )

    assert len(encode(largest, EVERYTHING, prefix=b"\xff\xff\xff\xff\x0f")) > MUTATIONS_SIZE_MAX
    with pytest.raises(errors.ValueTooLargeException, match="specs has"):
        MutateIn(TRAVEL, "ada", (specs[0], msgspec.structs.replace(specs[1], value=specs[1].value + b"x")))


def test_attributes_are_sent_first() -> None:
    """The codec sends specs of extended attributes first, because the server refuses any other order."""
    assert [1, 3, 0, 2] == wire_order(SPECS) == wire_order(MUTATION.specs)
    value = parts(encode(LOOKUP, EVERYTHING)).value
    assert b"c5040002" + b"7831" + b"d2040002" + b"7832" + b"c5000002" + b"6231" == value.hex().encode()[:-12]
    value = parts(encode(MUTATION, EVERYTHING)).value
    assert value.index(b"x1") < value.index(b"x2") < value.index(b"b1") < value.index(b"b2")


def test_lookup_results_keep_the_callers_order() -> None:
    """Lookup results have the order of the caller's specs, whatever the order on the wire is."""
    body = outcome(0, b"1") + outcome(0xC1) + outcome(0, b'"b"') + outcome(0xC0)
    result = look_up(body, 0xCC)

    assert ((0, b'"b"'), (0, b"1"), (0xC0, b""), (0xC1, b"")) == result.outcomes
    assert (9, SPECS, False, "ada") == (result.cas, result.specs, result.is_deleted, result.context.key)


@pytest.mark.parametrize(
    ("status", "is_deleted"),
    [(Status.SUCCESS, False), (Status.SUBDOC_SUCCESS_DELETED, True), (0xCC, False), (0xD3, True)],
)
def test_deleted_documents(status: int, is_deleted: bool) -> None:
    """The status of a response shows whether the document is deleted."""
    assert is_deleted is look_up(outcome(0) * 4, status).is_deleted


def test_mutation_results_keep_the_callers_order() -> None:
    """Mutation results have the order of the caller's specs; a spec without a value has None."""
    result = mutate(returned(0, b"1") + returned(2, b"-2"), extras=struct.pack(">QQ", 0xAA, 0xBB))

    assert (b"-2", b"1", None, None) == result.values
    assert (9, MutationToken("travel", 7, 0xAA, 0xBB)) == (result.cas, result.mutation_token)
    assert mutate(b"", Status.SUBDOC_SUCCESS_DELETED).is_deleted
    assert mutate(b"").mutation_token is None


@rows(
    "body",
    [
        b"",
        outcome(0) * 3,
        outcome(0) * 5,
        outcome(0) * 3 + outcome(0)[:-1],
        outcome(0) * 4 + b"x",
        outcome(0) * 3 + struct.pack(">HI", 0, 1),
        outcome(0) * 3 + struct.pack(">HI", 0, 2**32 - 1) + b"x",
    ],
)
@rows("status", [0, 0xCC, 0xCD, 0xD3])
def test_malformed_lookups(body: bytes, status: int) -> None:
    """A lookup response with too few or too many outcomes, or with an excessive length, raises MalformedResponse."""
    with pytest.raises(MalformedResponse):
        look_up(body, status)


@pytest.mark.parametrize(
    "body",
    [
        b"\0",
        returned(0, b"1")[:-1],
        returned(4, b"1"),
        returned(255, b"1"),
        returned(0, b"1") + returned(0, b"1"),
        returned(0, b"1", 0xC0),
        struct.pack(">BHI", 0, 0, 2) + b"1",
        struct.pack(">BHI", 0, 0, 2**32 - 1),
        returned(0, b"1") + b"\0\0\0",
    ],
)
def test_malformed_mutations(body: bytes) -> None:
    """A body with an unknown or repeated index, a failure in a success or a wrong length is malformed, and so is a
    mutation token of another size.
    """
    with pytest.raises(MalformedResponse):
        mutate(body)
    with pytest.raises(MalformedResponse):
        mutate(b"", extras=b"a mutation token has 16 bytes")


@given(st.binary(max_size=80), st.sampled_from([0, 0xCC, 0xCD, 0xD3]), st.binary(max_size=20))
def test_hostile_bodies(body: bytes, status: int, extras: bytes) -> None:
    """Arbitrary bodies yield a result or raise MalformedResponse."""
    for operation in (LOOKUP, MUTATION):
        try:
            frame = response(operation.opcode, status=status, value=body, extras=extras)
            result = decode_response(operation, frame, vbucket=1)
        except MalformedResponse:
            continue
        assert isinstance(result, LookupInResult | MutateInResult)


@pytest.mark.parametrize("operation", [LOOKUP, MUTATION], ids=lambda operation: operation.name)
def test_attributes_need_a_feature(operation: LookupIn | MutateIn) -> None:
    """Without the XATTR feature, a spec of an extended attribute raises an error that names the feature."""
    with pytest.raises(errors.FeatureNotAvailableException, match="xattr needs the feature XATTR, which this server"):
        encode(operation, Dialect(ALL_FEATURES - {HelloFeature.XATTR}))


def test_creating_as_deleted_needs_a_feature() -> None:
    """Without the feature SUBDOC_CREATE_AS_DELETED, ``create_as_deleted`` raises an error that names the feature."""
    operation = MutateIn(
        TRAVEL,
        "ada",
        mutations(MutateInSpec.upsert("_x", 1, xattr=True)),
        store_semantics=StoreSemantics.INSERT,
        access_deleted=True,
        create_as_deleted=True,
    )

    assert b"\x0e" == parts(encode(operation, EVERYTHING)).extras
    with pytest.raises(
        errors.FeatureNotAvailableException, match="create_as_deleted needs the feature SUBDOC_CREATE_AS"
    ):
        encode(operation, Dialect(ALL_FEATURES - {HelloFeature.SUBDOC_CREATE_AS_DELETED}))
