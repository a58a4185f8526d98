"""Codec of operations: requests byte by byte, and results of responses with valid and invalid lengths."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation import document_operations, results
from triclinium_core.kv.operation.catalogue import OPERATIONS
from triclinium_core.kv.operation.codec_parts import Dialect, MalformedResponse
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.manifest.manifest_request import GetCollectionsManifest
from triclinium_core.kv.operation.operation_codec import CODECS, decode_response, encode_operation
from triclinium_core.kv.operation.replica.replica_requests import LookupInReplica
from triclinium_core.kv.operation.scan.scan_requests import SCAN_OPERATIONS
from triclinium_core.kv.operation.subdocument.specs import EncodedMutation, LookupInSpec, MutateInSpec, StoreSemantics
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn
from triclinium_core.kv.wire.compression import inflate
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame, encode_response
from triclinium_core.kv.wire.frame_buffer import CLIENT_ACCEPTS, SERVER_ACCEPTS, FrameBuffer
from triclinium_core.retry.couchbase import Status
from triclinium_core.retry.couchbase.tables.kv_responses import is_success
from triclinium_core.transcoding.flags import BINARY_FLAGS, JSON_FLAGS, STRING_FLAGS
from triclinium_core.transcoding.transcoder import RawBinaryTranscoder

TRAVEL = document_operations.Keyspace("travel")
ALL_FEATURES = frozenset(int(feature) for feature in HelloFeature)
PLAIN = Dialect(frozenset(), compression=False)
BARE = Dialect(bare=True)
RAW = RawBinaryTranscoder()


def header(fields: str, cas: str = "00" * 8) -> str:
    """Return a header: magic, opcode, key and extras length, datatype, vbucket, body length; the opaque is 0x01020304."""
    return f"{fields} 01020304 {cas}"


def encode(
    operation: document_operations.Operation, dialect: Dialect = PLAIN, *, vbucket: int = 0x0123, prefix: bytes = b""
) -> bytes:
    """Encode an operation ten seconds before its deadline, with the opaque that ``header`` returns."""
    return encode_operation(operation, dialect, opaque=0x01020304, vbucket=vbucket, prefix=prefix, time_left=10.0)


def parts(data: bytes) -> Frame:
    """Parse an encoded request, and return its frame."""
    (frame,) = FrameBuffer(SERVER_ACCEPTS).receive(data)
    return frame


def response(opcode: int = 0, **parts: Any) -> Frame:
    """Return a response as the frame that the client receives."""
    data = encode_response(opcode, opaque=1, **parts)
    (frame,) = FrameBuffer(CLIENT_ACCEPTS).receive(data)
    return frame


class Sent(NamedTuple):
    """Operation with its request on the wire; spaces separate header, extras, key and value."""

    operation: document_operations.Operation
    wire: str


def mutations(*specs: MutateInSpec) -> tuple[EncodedMutation, ...]:
    """Encode specs, and return them."""
    return tuple(spec.encode(document_operations.JSON_TRANSCODER) for spec in specs)


ELSEWHERE = (*SCAN_OPERATIONS, GetCollectionsManifest)
"""Operations whose requests have their own test files."""

CAS = "1122334455667788"
SENT = (
    Sent(document_operations.Noop(document_operations.Keyspace(None)), header("80 0a 0000 00 00 0123 00000000")),
    Sent(document_operations.Get(TRAVEL, "ada"), header("80 00 0003 00 00 0123 00000003") + " 616461"),
    Sent(document_operations.GetReplica(TRAVEL, "ada", 2), header("80 83 0003 00 00 0123 00000003") + " 616461"),
    Sent(document_operations.Exists(TRAVEL, "ada"), header("80 a0 0003 01 00 0123 00000004") + " 02 616461"),
    Sent(
        document_operations.GetAndTouch(TRAVEL, "ada", 3600),
        header("80 1d 0003 04 00 0123 00000007") + " 00000e10 616461",
    ),
    Sent(
        document_operations.GetAndLock(TRAVEL, "ada", 15), header("80 94 0003 04 00 0123 00000007") + " 0000000f 616461"
    ),
    Sent(
        document_operations.Unlock(TRAVEL, "ada", results.Cas(0x1122334455667788)),
        header("80 95 0003 00 00 0123 00000003", CAS) + " 616461",
    ),
    Sent(document_operations.Touch(TRAVEL, "ada", 1), header("80 1c 0003 04 00 0123 00000007") + " 00000001 616461"),
    Sent(document_operations.Remove(TRAVEL, "ada"), header("80 04 0003 00 00 0123 00000003") + " 616461"),
    Sent(
        document_operations.Remove(TRAVEL, "ada", results.Cas(0x1122334455667788)),
        header("80 04 0003 00 00 0123 00000003", CAS) + " 616461",
    ),
    Sent(
        document_operations.Insert(TRAVEL, "ada", b"{}", JSON_FLAGS, 0x0E10),
        header("80 02 0003 08 00 0123 0000000d") + " 02000000 00000e10 616461 7b7d",
    ),
    Sent(
        document_operations.Upsert(TRAVEL, "ada", b"xy", BINARY_FLAGS),
        header("80 01 0003 08 00 0123 0000000d") + " 03000002 00000000 616461 7879",
    ),
    Sent(
        document_operations.Replace(TRAVEL, "ada", b"", STRING_FLAGS, cas=results.Cas(0x1122334455667788)),
        header("80 03 0003 08 00 0123 0000000b", CAS) + " 04000004 00000000 616461",
    ),
    Sent(document_operations.Append(TRAVEL, "ada", b"xy"), header("80 0e 0003 00 00 0123 00000005") + " 616461 7879"),
    Sent(
        document_operations.Prepend(TRAVEL, "ada", b"xy", results.Cas(0x1122334455667788)),
        header("80 0f 0003 00 00 0123 00000005", CAS) + " 616461 7879",
    ),
    Sent(
        document_operations.Increment(TRAVEL, "ada", 5, 10, 0x0E10),
        header("80 05 0003 14 00 0123 00000017") + " 0000000000000005 000000000000000a 00000e10 616461",
    ),
    Sent(
        document_operations.Increment(TRAVEL, "ada", initial=0),
        header("80 05 0003 14 00 0123 00000017") + " 0000000000000001 0000000000000000 00000000 616461",
    ),
    # Without an initial value, an expiry of all ones keeps the server from creating the counter.
    Sent(
        document_operations.Decrement(TRAVEL, "ada", 2**64 - 1, None, 60),
        header("80 06 0003 14 00 0123 00000017") + " ffffffffffffffff 0000000000000000 ffffffff 616461",
    ),
    Sent(
        LookupIn(TRAVEL, "ada", (LookupInSpec.get("a.b"), LookupInSpec.exists("c"), LookupInSpec.count(""))),
        header("80 d0 0003 00 00 0123 00000013") + " 616461 c500 0003 612e62 c600 0001 63 d200 0000",
    ),
    Sent(
        LookupIn(TRAVEL, "ada", (LookupInSpec.get(""),), access_deleted=True),
        header("80 d0 0003 01 00 0123 00000008") + " 04 616461 0000 0000",
    ),
    Sent(
        LookupInReplica(TRAVEL, "ada", (LookupInSpec.get(""),), replica=3),
        header("80 d0 0003 01 00 0123 00000008") + " 20 616461 0000 0000",
    ),
    Sent(
        MutateIn(
            TRAVEL,
            "ada",
            mutations(
                MutateInSpec.upsert("a", 1, create_parents=True),
                MutateInSpec.remove("b"),
                MutateInSpec.decrement("c", 258),
            ),
            results.Cas(0x1122334455667788),
        ),
        header("80 d1 0003 00 00 0123 00000023", CAS)
        + " 616461 c801 0001 00000001 61 31 c900 0001 00000000 62 cf00 0001 00000004 63 2d323538",
    ),
    Sent(
        MutateIn(
            TRAVEL,
            "ada",
            mutations(MutateInSpec.replace("", [1, 2])),
            expiry=0x0E10,
            store_semantics=StoreSemantics.UPSERT,
        ),
        header("80 d1 0003 05 00 0123 00000015") + " 00000e10 01 616461 0100 0000 00000005 5b312c325d",
    ),
    Sent(
        MutateIn(TRAVEL, "ada", mutations(MutateInSpec.remove("")), expiry=0x0E10),
        header("80 d1 0003 04 00 0123 0000000f") + " 00000e10 616461 0400 0000 00000000",
    ),
)


@rows("sent", SENT)
def test_request(sent: Sent) -> None:
    """The bytes of each request are those that the protocol's documentation shows."""
    assert sent.wire.replace(" ", "") == encode(sent.operation).hex()


def test_every_operation_has_a_case() -> None:
    """Each operation has a codec, and a case in this file or its own test file."""
    assert set(OPERATIONS) == {type(sent.operation) for sent in SENT} | set(ELSEWHERE) == set(CODECS)


@rows("sent", SENT)
@rows("features", [frozenset(), ALL_FEATURES])
def test_prefix_stands_before_the_key(sent: Sent, features: frozenset[int]) -> None:
    """The codec puts the prefix before the key; an operation without a key gets no prefix."""
    frame = parts(encode(sent.operation, Dialect(features), prefix=b"\x80\x01"))

    assert (b"" if isinstance(sent.operation, document_operations.Noop) else b"\x80\x01ada") == frame.key


def test_key_is_utf8() -> None:
    """The codec encodes a key as UTF-8."""
    assert "ключ💡".encode() == parts(encode(document_operations.Get(TRAVEL, "ключ💡"))).key


@pytest.mark.parametrize("kind", [document_operations.Upsert, document_operations.Replace])
def test_preserve_expiry(kind: type[document_operations.Upsert | document_operations.Replace]) -> None:
    """``preserve_expiry`` adds the empty framing extra 5, and a flexible header for it."""
    operation = kind(TRAVEL, "ada", b"xy", 0, preserve_expiry=True)
    features = frozenset({HelloFeature.PRESERVE_TTL, HelloFeature.ALT_REQUEST})
    opcode = {document_operations.Upsert: "01", document_operations.Replace: "03"}[kind]
    wire = f"08{opcode}010308000123" + "0000000e" + "01020304" + "00" * 8 + "50" + "00" * 8 + "616461" + "7879"

    assert wire == encode(operation, Dialect(features, compression=False)).hex()


@pytest.mark.parametrize("missing", [HelloFeature.PRESERVE_TTL, HelloFeature.ALT_REQUEST])
@pytest.mark.parametrize("kind", [document_operations.Upsert, document_operations.Replace])
def test_preserve_expiry_needs_two_features(
    kind: type[document_operations.Upsert | document_operations.Replace], missing: HelloFeature
) -> None:
    """If one of two features is missing, ``preserve_expiry`` raises an error that names the missing feature."""
    operation = kind(TRAVEL, "ada", b"xy", 0, preserve_expiry=True)

    with pytest.raises(errors.FeatureNotAvailableException, match=f"preserve_expiry needs the feature {missing.name}"):
        encode(operation, Dialect(ALL_FEATURES - {missing}))


DURABLE = Dialect(frozenset({HelloFeature.SYNC_REPLICATION, HelloFeature.ALT_REQUEST}), compression=False)
MUTATIONS = [sent for sent in SENT if isinstance(sent.operation, document_operations.Mutation)]
LEVELS = {
    DurabilityLevel.MAJORITY: "01",
    DurabilityLevel.MAJORITY_AND_PERSIST_TO_ACTIVE: "02",
    DurabilityLevel.PERSIST_TO_MAJORITY: "03",
}


@rows("level", LEVELS)
@rows("sent", MUTATIONS)
def test_durability(sent: Sent, level: DurabilityLevel) -> None:
    """A durability level adds framing extra 1, which has the level and 9 s in milliseconds, and a flexible header."""
    operation = msgspec.structs.replace(sent.operation, durability=level)
    # Fields of the frame without a durability level.
    _, opcode, key_size, extras_size, datatype, vbucket, body_size, opaque, cas, *body = sent.wire.split()
    header_of_both = f"{extras_size}{datatype}{vbucket}{int(body_size, 16) + 4:08x}{opaque}{cas}"
    wire = f"08{opcode}04{key_size[2:]}{header_of_both}13{LEVELS[level]}2328{''.join(body)}"

    assert wire == encode(operation, DURABLE).hex()


BARE_OPCODES = {
    document_operations.Noop: Opcode.NOOP,
    document_operations.Get: Opcode.GET,
    document_operations.Exists: Opcode.GET,
    document_operations.GetAndTouch: Opcode.GET_AND_TOUCH,
    document_operations.Touch: Opcode.TOUCH,
    document_operations.Remove: Opcode.DELETE,
    document_operations.Insert: Opcode.ADD,
    document_operations.Upsert: Opcode.SET,
    document_operations.Replace: Opcode.REPLACE,
    document_operations.Append: Opcode.APPEND,
    document_operations.Prepend: Opcode.PREPEND,
    document_operations.Increment: Opcode.INCREMENT,
    document_operations.Decrement: Opcode.DECREMENT,
}
"""Opcode of each operation that a plain memcached server supports (decision C27)."""


def test_every_write_can_be_durable() -> None:
    """A write accepts a durability level unless it only changes an expiry or a lock (RFC 0053)."""
    assert {
        document_operations.Insert,
        document_operations.Upsert,
        document_operations.Replace,
        document_operations.Remove,
        document_operations.Append,
        document_operations.Prepend,
        document_operations.Increment,
        document_operations.Decrement,
        MutateIn,
    } == {type(sent.operation) for sent in MUTATIONS}
    assert {operation for operation in OPERATIONS if issubclass(operation, document_operations.Mutation)} == {
        type(sent.operation) for sent in MUTATIONS
    }


@rows("sent", MUTATIONS)
def test_no_level_is_not_sent(sent: Sent) -> None:
    """If a write has no durability level, its frame has a plain header without framing extras."""
    assert sent.wire.replace(" ", "") == encode(sent.operation, DURABLE).hex()


@pytest.mark.parametrize("kind", [document_operations.Upsert, document_operations.Replace])
def test_durability_beside_a_preserved_expiry(
    kind: type[document_operations.Upsert | document_operations.Replace],
) -> None:
    """A write with a durability level and ``preserve_expiry`` has both framing extras."""
    operation = kind(TRAVEL, "ada", b"xy", 0, preserve_expiry=True, durability=DurabilityLevel.MAJORITY)

    assert "1301232850" == parts(encode(operation, Dialect(ALL_FEATURES))).framing_extras.hex()


@rows("missing", [HelloFeature.SYNC_REPLICATION, HelloFeature.ALT_REQUEST])
@rows("sent", MUTATIONS)
def test_durability_needs_two_features(sent: Sent, missing: HelloFeature) -> None:
    """If one of two features is missing, a durability level raises an error that names the missing feature."""
    operation = msgspec.structs.replace(sent.operation, durability=DurabilityLevel.MAJORITY)

    with pytest.raises(errors.FeatureNotAvailableException, match=f"durability needs the feature {missing.name}"):
        encode(operation, Dialect(ALL_FEATURES - {missing}))


LONG = b'{"words":"' + b"again and " * 40 + b'"}'
JSON_BIT, SNAPPY_BIT = 0x01, 0x02


@rows(
    ("flags", "features", "compression", "expected"),
    [
        (JSON_FLAGS, {HelloFeature.JSON, HelloFeature.SNAPPY}, True, JSON_BIT | SNAPPY_BIT),
        (JSON_FLAGS, {HelloFeature.JSON, HelloFeature.SNAPPY}, False, JSON_BIT),
        (JSON_FLAGS, {HelloFeature.JSON}, True, JSON_BIT),
        (JSON_FLAGS, {HelloFeature.SNAPPY}, True, SNAPPY_BIT),
        (JSON_FLAGS, {HelloFeature.SNAPPY_EVERYWHERE}, True, 0),
        (JSON_FLAGS, set(), True, 0),
        (BINARY_FLAGS, {HelloFeature.JSON, HelloFeature.SNAPPY}, True, SNAPPY_BIT),
        (STRING_FLAGS, {HelloFeature.JSON}, True, 0),
        (0x0200_BEEF, {HelloFeature.JSON}, True, JSON_BIT),
        (0, {HelloFeature.JSON}, True, 0),
    ],
)
@rows("kind", [document_operations.Insert, document_operations.Upsert, document_operations.Replace])
def test_datatype(
    kind: type[document_operations.Insert | document_operations.Upsert | document_operations.Replace],
    flags: int,
    features: set[int],
    compression: bool,
    expected: int,
) -> None:
    """A request sets a datatype bit only if the bit applies and was negotiated (RFC 0055 "Datatype Field Handling")."""
    frame = parts(encode(kind(TRAVEL, "ada", LONG, flags), Dialect(frozenset(features), compression=compression)))

    assert expected == frame.datatype
    assert LONG == (inflate(frame.value) if expected & SNAPPY_BIT else frame.value)


@pytest.mark.parametrize("value", [b"", b"short", bytes(range(256))], ids=["empty", "short", "noise"])
def test_compression_that_does_not_pay(value: bytes) -> None:
    """If a value is short or does not shrink enough, the codec sends it uncompressed."""
    frame = parts(encode(document_operations.Upsert(TRAVEL, "ada", value, BINARY_FLAGS), Dialect(ALL_FEATURES)))

    assert (0, value) == (frame.datatype, frame.value)


@pytest.mark.parametrize("kind", [document_operations.Append, document_operations.Prepend])
def test_fragments_are_no_documents(kind: type[document_operations.Append | document_operations.Prepend]) -> None:
    """The codec sends appended and prepended values uncompressed and without a datatype."""
    frame = parts(encode(kind(TRAVEL, "ada", LONG), Dialect(ALL_FEATURES)))

    assert (0, LONG) == (frame.datatype, frame.value)


@rows("sent", SENT)
def test_bare_mode(sent: Sent) -> None:
    """For plain memcached, the codec uses plain headers and memcached's opcodes, and rejects an operation that has
    none.
    """
    kind = type(sent.operation)
    if kind not in BARE_OPCODES:
        with pytest.raises(errors.FeatureNotAvailableException, match="plain memcached"):
            encode(sent.operation, BARE)
        return

    frame = parts(encode(sent.operation, BARE, vbucket=0))

    assert (0x80, BARE_OPCODES[kind], 0, 0) == (frame.magic, frame.opcode, frame.status, frame.datatype)


def test_bare_mode_refuses_locks_replicas_and_parts() -> None:
    """Plain memcached supports all operations except locks, replica reads, sub-document operations and scans."""
    assert {
        document_operations.GetAndLock,
        document_operations.GetReplica,
        document_operations.Unlock,
        LookupIn,
        LookupInReplica,
        MutateIn,
        *ELSEWHERE,
    } == set(OPERATIONS) - set(BARE_OPCODES)


# Responses.

FLAGS = bytes.fromhex("02000000")
TOKEN = bytes.fromhex("00000000000000aa00000000000000bb")
COUNTER = bytes.fromhex("000000000000002a")
# Fields: deleted, flags, expiry, sequence number, datatype.
META = bytes.fromhex("000000000200000000000e10000000000000000701")
DELETED_META = b"\x00\x00\x00\x01" + META[4:]
NO_TOKEN = results.MutationResult(results.Cas(9))
WITH_TOKEN = results.MutationResult(results.Cas(9), results.MutationToken("travel", 77, 0xAA, 0xBB))

REPLICA = document_operations.GetReplica(TRAVEL, "k", transcoder=RAW)
GET, LOCK, TOUCHED = (
    document_operations.Get(TRAVEL, "k", RAW),
    document_operations.GetAndLock(TRAVEL, "k", transcoder=RAW),
    document_operations.GetAndTouch(TRAVEL, "k", 1, RAW),
)
WRITES: tuple[document_operations.Operation, ...] = (
    document_operations.Insert(TRAVEL, "k", b"", 0),
    document_operations.Upsert(TRAVEL, "k", b"", 0),
    document_operations.Replace(TRAVEL, "k", b"", 0),
    document_operations.Remove(TRAVEL, "k"),
    document_operations.Append(TRAVEL, "k", b""),
    document_operations.Prepend(TRAVEL, "k", b""),
)
COUNTS: tuple[document_operations.Operation, ...] = (
    document_operations.Increment(TRAVEL, "k"),
    document_operations.Decrement(TRAVEL, "k"),
)


class Answered(NamedTuple):
    """Response to an operation, with the expected result."""

    operation: document_operations.Operation
    frame: Frame
    result: results.Result


ANSWERED = (
    *(
        Answered(
            operation,
            response(operation.opcode, cas=9, extras=FLAGS, value=b"v"),
            results.GetResult(results.Cas(9), JSON_FLAGS, b"v", RAW),
        )
        for operation in (GET, LOCK, TOUCHED)
    ),
    Answered(
        REPLICA,
        response(0x83, cas=9, extras=FLAGS, value=b"v"),
        results.GetReplicaResult(results.Cas(9), JSON_FLAGS, b"v", RAW, is_replica=True),
    ),
    # If the document is locked, the server sends a CAS of all ones instead of the real one.
    Answered(
        GET,
        response(cas=2**64 - 1, extras=b"\0\0\0\0", value=b""),
        results.GetResult(results.Cas(0xFFFF_FFFF_FFFF_FFFF), 0, b"", RAW),
    ),
    *(Answered(operation, response(operation.opcode, cas=9), NO_TOKEN) for operation in WRITES),
    *(Answered(operation, response(operation.opcode, cas=9, extras=TOKEN), WITH_TOKEN) for operation in WRITES),
    *(
        Answered(operation, response(operation.opcode, cas=9, value=COUNTER), results.CounterResult(42, results.Cas(9)))
        for operation in COUNTS
    ),
    *(
        Answered(
            operation,
            response(operation.opcode, cas=9, extras=TOKEN, value=b"\xff" * 8),
            results.CounterResult(2**64 - 1, results.Cas(9), WITH_TOKEN.mutation_token),
        )
        for operation in COUNTS
    ),
    # A plain memcached server sends no mutation token; the client accepts one from a server that does.
    Answered(
        document_operations.Upsert(document_operations.Keyspace(None), "k", b"", 0),
        response(1, cas=9, extras=TOKEN),
        results.MutationResult(results.Cas(9), results.MutationToken("", 77, 0xAA, 0xBB)),
    ),
    Answered(document_operations.Touch(TRAVEL, "k", 1), response(0x1C, cas=9), NO_TOKEN),
    # A plain memcached server adds the flags to this response.
    Answered(document_operations.Touch(TRAVEL, "k", 1), response(0x1C, cas=9, extras=FLAGS), NO_TOKEN),
    Answered(document_operations.Unlock(TRAVEL, "k", results.Cas(1)), response(0x95), results.Done()),
    Answered(document_operations.Noop(TRAVEL), response(0x0A), results.Done()),
    Answered(
        document_operations.Exists(TRAVEL, "k"),
        response(0xA0, cas=9, extras=META),
        results.ExistsResult(True, results.Cas(9)),
    ),
    Answered(
        document_operations.Exists(TRAVEL, "k"),
        response(0xA0, cas=9, extras=META[:20]),
        results.ExistsResult(True, results.Cas(9)),
    ),
    Answered(
        document_operations.Exists(TRAVEL, "k"),
        response(0xA0, cas=9, extras=DELETED_META),
        results.ExistsResult(False, results.Cas(0)),
    ),
    Answered(
        document_operations.Exists(TRAVEL, "k"),
        response(0xA0, status=1, value=b"Not found"),
        results.ExistsResult(False, results.Cas(0)),
    ),
    Answered(
        document_operations.Exists(TRAVEL, "k"),
        response(0x00, cas=9, extras=FLAGS, value=b"v"),
        results.ExistsResult(True, results.Cas(9)),
    ),
    Answered(
        document_operations.Exists(TRAVEL, "k"), response(0x00, status=1), results.ExistsResult(False, results.Cas(0))
    ),
)


@rows("answered", ANSWERED)
def test_response(answered: Answered) -> None:
    """The codec builds the result from the extras and the value of the response."""
    assert answered.result == decode_response(answered.operation, answered.frame, vbucket=77)


@rows(
    ("operation", "extras_sizes", "value_sizes"),
    [
        (GET, {4}, None),
        (REPLICA, {4}, None),
        (LOCK, {4}, None),
        (TOUCHED, {4}, None),
        *((operation, {0, 16}, None) for operation in WRITES),
        *((operation, {0, 16}, {8}) for operation in COUNTS),
        (document_operations.Touch(TRAVEL, "k", 1), None, None),
        (document_operations.Unlock(TRAVEL, "k", results.Cas(1)), None, None),
        (document_operations.Noop(TRAVEL), None, None),
        (document_operations.Exists(TRAVEL, "k"), {*range(20, 40)}, None),
    ],
)
def test_impossible_lengths(
    operation: document_operations.Operation, extras_sizes: set[int] | None, value_sizes: set[int] | None
) -> None:
    """A success with an invalid length raises MalformedResponse; None marks an operation that accepts any length."""
    for extras_size in range(40):
        for value_size in (0, 1, 7, 8, 9, 100):
            frame = response(operation.opcode, extras=bytes(extras_size), value=bytes(value_size))
            is_possible = (extras_sizes is None or extras_size in extras_sizes) and (
                value_sizes is None or value_size in value_sizes
            )
            try:
                decode_response(operation, frame, vbucket=0)
            except MalformedResponse:
                assert not is_possible
            else:
                assert is_possible


@given(
    st.sampled_from([sent.operation for sent in SENT]),
    st.binary(max_size=60),
    st.binary(max_size=60),
    st.sampled_from([Status.SUCCESS, Status.KEY_NOT_FOUND]),
    st.integers(0, 2**64 - 1),
)
def test_hostile_responses(
    operation: document_operations.Operation, extras: bytes, value: bytes, status: int, cas: int
) -> None:
    """Arbitrary responses yield a result or raise MalformedResponse."""
    if not is_success(operation.name, status):
        return
    frame = response(operation.opcode, status=status, cas=cas, extras=extras, value=value)
    try:
        result = decode_response(operation, frame, vbucket=1)
    except MalformedResponse:
        return

    assert isinstance(result, results.Result)
