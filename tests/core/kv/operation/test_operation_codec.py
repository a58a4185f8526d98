"""Codec of operations: requests byte by byte, and results of responses with valid and invalid lengths."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.core.kv.operation.examples import make
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation import document_operations as ops, results
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

TRAVEL = ops.Keyspace("travel")
ALL_FEATURES = frozenset(int(feature) for feature in HelloFeature)
PLAIN = Dialect(frozenset(), compression=False)
BARE = Dialect(bare=True)
RAW = RawBinaryTranscoder()


def header(fields: str, cas: str = "00" * 8) -> str:
    """Return a header: magic, opcode, key and extras length, datatype, vbucket, body length; the opaque is 0x01020304."""
    return f"{fields} 01020304 {cas}"


def encode(operation: ops.Operation, dialect: Dialect = PLAIN, *, vbucket: int = 0x0123, prefix: bytes = b"") -> bytes:
    """Encode an operation ten seconds before its deadline, with the opaque of ``header``."""
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

    operation: ops.Operation
    wire: str


def mutations(*specs: MutateInSpec) -> tuple[EncodedMutation, ...]:
    """Encode specs, and return them."""
    return tuple(spec.encode(ops.JSON_TRANSCODER) for spec in specs)


ELSEWHERE: tuple[type[ops.Operation], ...] = (*SCAN_OPERATIONS, GetCollectionsManifest)
"""Operations whose requests have their own test files."""

CAS, CAS_NUMBER = "1122334455667788", results.Cas(0x1122334455667788)
SENT = (
    Sent(ops.Noop(ops.Keyspace(None)), header("80 0a 0000 00 00 0123 00000000")),
    Sent(ops.Get(TRAVEL, "ada"), header("80 00 0003 00 00 0123 00000003") + " 616461"),
    Sent(ops.GetReplica(TRAVEL, "ada", 2), header("80 83 0003 00 00 0123 00000003") + " 616461"),
    Sent(ops.Exists(TRAVEL, "ada"), header("80 a0 0003 01 00 0123 00000004") + " 02 616461"),
    Sent(ops.GetAndTouch(TRAVEL, "ada", 3600), header("80 1d 0003 04 00 0123 00000007") + " 00000e10 616461"),
    Sent(ops.GetAndLock(TRAVEL, "ada", 15), header("80 94 0003 04 00 0123 00000007") + " 0000000f 616461"),
    Sent(ops.Unlock(TRAVEL, "ada", CAS_NUMBER), header("80 95 0003 00 00 0123 00000003", CAS) + " 616461"),
    Sent(ops.Touch(TRAVEL, "ada", 1), header("80 1c 0003 04 00 0123 00000007") + " 00000001 616461"),
    Sent(ops.Remove(TRAVEL, "ada"), header("80 04 0003 00 00 0123 00000003") + " 616461"),
    Sent(ops.Remove(TRAVEL, "ada", CAS_NUMBER), header("80 04 0003 00 00 0123 00000003", CAS) + " 616461"),
    Sent(
        ops.Insert(TRAVEL, "ada", b"{}", JSON_FLAGS, 0x0E10),
        header("80 02 0003 08 00 0123 0000000d") + " 02000000 00000e10 616461 7b7d",
    ),
    Sent(
        ops.Upsert(TRAVEL, "ada", b"xy", BINARY_FLAGS),
        header("80 01 0003 08 00 0123 0000000d") + " 03000002 00000000 616461 7879",
    ),
    Sent(
        ops.Replace(TRAVEL, "ada", b"", STRING_FLAGS, cas=CAS_NUMBER),
        header("80 03 0003 08 00 0123 0000000b", CAS) + " 04000004 00000000 616461",
    ),
    Sent(ops.Append(TRAVEL, "ada", b"xy"), header("80 0e 0003 00 00 0123 00000005") + " 616461 7879"),
    Sent(ops.Prepend(TRAVEL, "ada", b"xy", CAS_NUMBER), header("80 0f 0003 00 00 0123 00000005", CAS) + " 616461 7879"),
    Sent(
        ops.Increment(TRAVEL, "ada", 5, 10, 0x0E10),
        header("80 05 0003 14 00 0123 00000017") + " 0000000000000005 000000000000000a 00000e10 616461",
    ),
    Sent(
        ops.Increment(TRAVEL, "ada", initial=0),
        header("80 05 0003 14 00 0123 00000017") + " 0000000000000001 0000000000000000 00000000 616461",
    ),
    # Without an initial value, an expiry of all ones keeps the server from creating the counter.
    Sent(
        ops.Decrement(TRAVEL, "ada", 2**64 - 1, None, 60),
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
            CAS_NUMBER,
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
    """Each request is encoded to exactly the expected header, extras, key and value."""
    assert sent.wire.replace(" ", "") == encode(sent.operation).hex()


def test_every_operation_has_a_case() -> None:
    """Each operation has a codec, and a case in this file or its own test file."""
    assert set(OPERATIONS) == {type(sent.operation) for sent in SENT} | set(ELSEWHERE) == set(CODECS)


@rows("sent", SENT)
@rows("features", [frozenset(), ALL_FEATURES])
def test_prefix_stands_before_the_key(sent: Sent, features: frozenset[int]) -> None:
    """The codec puts the prefix before the key; an operation without a key gets no prefix."""
    frame = parts(encode(sent.operation, Dialect(features), prefix=b"\x80\x01"))

    assert (b"" if isinstance(sent.operation, ops.Noop) else b"\x80\x01ada") == frame.key


def test_key_is_utf8() -> None:
    """The codec encodes a key as UTF-8."""
    assert "ключ💡".encode() == parts(encode(ops.Get(TRAVEL, "ключ💡"))).key


@pytest.mark.parametrize(("kind", "opcode"), [(ops.Upsert, "01"), (ops.Replace, "03")])
def test_preserve_expiry(kind: type[ops.Upsert | ops.Replace], opcode: str) -> None:
    """``preserve_expiry`` adds the empty framing extra 5, and a flexible header for it."""
    operation = kind(TRAVEL, "ada", b"xy", 0, preserve_expiry=True)
    features = frozenset({HelloFeature.PRESERVE_TTL, HelloFeature.ALT_REQUEST})
    wire = f"08{opcode}010308000123" + "0000000e" + "01020304" + "00" * 8 + "50" + "00" * 8 + "616461" + "7879"

    assert wire == encode(operation, Dialect(features, compression=False)).hex()


DURABLE = Dialect(frozenset({HelloFeature.SYNC_REPLICATION, HelloFeature.ALT_REQUEST}), compression=False)
MUTATIONS = [sent for sent in SENT if isinstance(sent.operation, ops.Mutation)]
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
    ops.Noop: Opcode.NOOP,
    ops.Get: Opcode.GET,
    ops.Exists: Opcode.GET,
    ops.GetAndTouch: Opcode.GET_AND_TOUCH,
    ops.Touch: Opcode.TOUCH,
    ops.Remove: Opcode.DELETE,
    ops.Insert: Opcode.ADD,
    ops.Upsert: Opcode.SET,
    ops.Replace: Opcode.REPLACE,
    ops.Append: Opcode.APPEND,
    ops.Prepend: Opcode.PREPEND,
    ops.Increment: Opcode.INCREMENT,
    ops.Decrement: Opcode.DECREMENT,
}
"""Opcode of each operation that a plain memcached server supports (decision C27)."""


def test_every_write_can_be_durable() -> None:
    """A write accepts a durability level unless it only changes an expiry or a lock (RFC 0053)."""
    assert {
        ops.Insert,
        ops.Upsert,
        ops.Replace,
        ops.Remove,
        ops.Append,
        ops.Prepend,
        ops.Increment,
        ops.Decrement,
        MutateIn,
    } == {operation for operation in OPERATIONS if issubclass(operation, ops.Mutation)}


@rows("sent", MUTATIONS)
def test_no_level_is_not_sent(sent: Sent) -> None:
    """If a write has no durability level, its frame has a plain header without framing extras."""
    assert sent.wire.replace(" ", "") == encode(sent.operation, DURABLE).hex()


@pytest.mark.parametrize("kind", [ops.Upsert, ops.Replace])
def test_durability_beside_a_preserved_expiry(kind: type[ops.Upsert | ops.Replace]) -> None:
    """A write with a durability level and ``preserve_expiry`` has both framing extras."""
    operation = kind(TRAVEL, "ada", b"xy", 0, preserve_expiry=True, durability=DurabilityLevel.MAJORITY)

    assert "1301232850" == parts(encode(operation, Dialect(ALL_FEATURES))).framing_extras.hex()


PRESERVING = [kind(TRAVEL, "ada", b"xy", 0, preserve_expiry=True) for kind in (ops.Upsert, ops.Replace)]
DURING = [msgspec.structs.replace(sent.operation, durability=DurabilityLevel.MAJORITY) for sent in MUTATIONS]


@rows(
    ("option", "operations", "feature"),
    [("preserve_expiry", PRESERVING, HelloFeature.PRESERVE_TTL), ("durability", DURING, HelloFeature.SYNC_REPLICATION)],
)
def test_options_that_need_two_features(option: str, operations: list[ops.Operation], feature: HelloFeature) -> None:
    """If one of two features is missing, an option raises an error that names the missing feature."""
    for operation in operations:
        for missing in (feature, HelloFeature.ALT_REQUEST):
            with pytest.raises(errors.FeatureNotAvailableException, match=f"{option} needs the feature {missing.name}"):
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
@rows("kind", [ops.Insert, ops.Upsert, ops.Replace])
def test_datatype(
    kind: type[ops.Insert | ops.Upsert | ops.Replace], flags: int, features: set[int], compression: bool, expected: int
) -> None:
    """A request sets a datatype bit only if the bit applies and was negotiated (RFC 0055 "Datatype Field Handling")."""
    frame = parts(encode(kind(TRAVEL, "ada", LONG, flags), Dialect(frozenset(features), compression=compression)))

    assert expected == frame.datatype
    assert LONG == (inflate(frame.value) if expected & SNAPPY_BIT else frame.value)


@pytest.mark.parametrize("value", [b"", b"short", bytes(range(256))], ids=["empty", "short", "noise"])
def test_compression_that_does_not_pay(value: bytes) -> None:
    """If a value is short or does not shrink enough, the codec sends it uncompressed."""
    frame = parts(encode(ops.Upsert(TRAVEL, "ada", value, BINARY_FLAGS), Dialect(ALL_FEATURES)))

    assert (0, value) == (frame.datatype, frame.value)


@pytest.mark.parametrize("kind", [ops.Append, ops.Prepend])
def test_fragments_are_no_documents(kind: type[ops.Append | ops.Prepend]) -> None:
    """The codec sends appended and prepended values uncompressed and without a datatype."""
    frame = parts(encode(kind(TRAVEL, "ada", LONG), Dialect(ALL_FEATURES)))

    assert (0, LONG) == (frame.datatype, frame.value)


@rows("operation", [*(sent.operation for sent in SENT), *(make(kind) for kind in ELSEWHERE)])
def test_bare_mode(operation: ops.Operation) -> None:
    """For plain memcached, the codec uses plain headers and memcached's opcodes, and rejects an operation that has
    none.
    """
    if type(operation) not in BARE_OPCODES:
        with pytest.raises(errors.FeatureNotAvailableException, match=f"plain memcached .*{operation.name}"):
            encode(operation, BARE)
        return

    frame = parts(encode(operation, BARE, vbucket=0))

    assert (0x80, BARE_OPCODES[type(operation)], 0, 0) == (frame.magic, frame.opcode, frame.status, frame.datatype)


# Responses.

FLAGS = bytes.fromhex("02000000")
TOKEN = bytes.fromhex("00000000000000aa00000000000000bb")
COUNTER = bytes.fromhex("000000000000002a")
# Fields: deleted, flags, expiry, sequence number, datatype.
META = bytes.fromhex("000000000200000000000e10000000000000000701")
DELETED_META = b"\x00\x00\x00\x01" + META[4:]
NO_TOKEN = results.MutationResult(results.Cas(9))
WITH_TOKEN = results.MutationResult(results.Cas(9), results.MutationToken("travel", 77, 0xAA, 0xBB))

REPLICA = ops.GetReplica(TRAVEL, "k", transcoder=RAW)
GET, LOCK, TOUCHED = (
    ops.Get(TRAVEL, "k", RAW),
    ops.GetAndLock(TRAVEL, "k", transcoder=RAW),
    ops.GetAndTouch(TRAVEL, "k", 1, RAW),
)
WRITES: tuple[ops.Operation, ...] = (
    ops.Insert(TRAVEL, "k", b"", 0),
    ops.Upsert(TRAVEL, "k", b"", 0),
    ops.Replace(TRAVEL, "k", b"", 0),
    ops.Remove(TRAVEL, "k"),
    ops.Append(TRAVEL, "k", b""),
    ops.Prepend(TRAVEL, "k", b""),
)
COUNTS: tuple[ops.Operation, ...] = (ops.Increment(TRAVEL, "k"), ops.Decrement(TRAVEL, "k"))


EXISTS = ops.Exists(TRAVEL, "k")
TOUCH = ops.Touch(TRAVEL, "k", 1)
THERE, ABSENT = results.ExistsResult(True, results.Cas(9)), results.ExistsResult(False, results.Cas(0))


ANSWERED: tuple[tuple[ops.Operation, Frame, results.Result], ...] = (
    *(
        (
            operation,
            response(operation.opcode, cas=9, extras=FLAGS, value=b"v"),
            results.GetResult(results.Cas(9), JSON_FLAGS, b"v", RAW),
        )
        for operation in (GET, LOCK, TOUCHED)
    ),
    (
        REPLICA,
        response(0x83, cas=9, extras=FLAGS, value=b"v"),
        results.GetReplicaResult(results.Cas(9), JSON_FLAGS, b"v", RAW, is_replica=True),
    ),
    # If the document is locked, the server sends a CAS of all ones instead of the real one.
    (
        GET,
        response(cas=2**64 - 1, extras=b"\0\0\0\0", value=b""),
        results.GetResult(results.Cas(0xFFFF_FFFF_FFFF_FFFF), 0, b"", RAW),
    ),
    *((operation, response(operation.opcode, cas=9), NO_TOKEN) for operation in WRITES),
    *((operation, response(operation.opcode, cas=9, extras=TOKEN), WITH_TOKEN) for operation in WRITES),
    *(
        (operation, response(operation.opcode, cas=9, value=COUNTER), results.CounterResult(42, results.Cas(9)))
        for operation in COUNTS
    ),
    *(
        (
            operation,
            response(operation.opcode, cas=9, extras=TOKEN, value=b"\xff" * 8),
            results.CounterResult(2**64 - 1, results.Cas(9), WITH_TOKEN.mutation_token),
        )
        for operation in COUNTS
    ),
    # A plain memcached server sends no mutation token; the client accepts one from a server that does.
    (
        ops.Upsert(ops.Keyspace(None), "k", b"", 0),
        response(1, cas=9, extras=TOKEN),
        results.MutationResult(results.Cas(9), results.MutationToken("", 77, 0xAA, 0xBB)),
    ),
    (TOUCH, response(0x1C, cas=9), NO_TOKEN),
    # A plain memcached server adds the flags to this response.
    (TOUCH, response(0x1C, cas=9, extras=FLAGS), NO_TOKEN),
    (ops.Unlock(TRAVEL, "k", results.Cas(1)), response(0x95), results.Done()),
    (ops.Noop(TRAVEL), response(0x0A), results.Done()),
    (EXISTS, response(0xA0, cas=9, extras=META), THERE),
    (EXISTS, response(0xA0, cas=9, extras=META[:20]), THERE),
    (EXISTS, response(0xA0, cas=9, extras=DELETED_META), ABSENT),
    (EXISTS, response(0xA0, status=1, value=b"Not found"), ABSENT),
    (EXISTS, response(0x00, cas=9, extras=FLAGS, value=b"v"), THERE),
    (EXISTS, response(0x00, status=1), ABSENT),
)


@rows(("operation", "frame", "result"), ANSWERED)
def test_response(operation: ops.Operation, frame: Frame, result: results.Result) -> None:
    """The codec builds the result from the extras and the value of the response."""
    assert result == decode_response(operation, frame, vbucket=77)


@rows(
    ("operation", "extras_sizes", "value_sizes"),
    [
        (GET, {4}, None),
        (REPLICA, {4}, None),
        (LOCK, {4}, None),
        (TOUCHED, {4}, None),
        *((operation, {0, 16}, None) for operation in WRITES),
        *((operation, {0, 16}, {8}) for operation in COUNTS),
        (TOUCH, None, None),
        (ops.Unlock(TRAVEL, "k", results.Cas(1)), None, None),
        (ops.Noop(TRAVEL), None, None),
        (EXISTS, {*range(20, 40)}, None),
    ],
)
def test_impossible_lengths(
    operation: ops.Operation, extras_sizes: set[int] | None, value_sizes: set[int] | None
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
def test_hostile_responses(operation: ops.Operation, extras: bytes, value: bytes, status: int, cas: int) -> None:
    """Arbitrary responses yield a result or raise MalformedResponse."""
    if not is_success(operation.name, status):
        return
    frame = response(operation.opcode, status=status, cas=cas, extras=extras, value=value)
    try:
        result = decode_response(operation, frame, vbucket=1)
    except MalformedResponse:
        return

    assert isinstance(result, results.Result)
